/** The requests that clients of the model send, each with what the documents let a caller choose. */

/** A gift in a path: by its shortcode where one is given, else by its id. */
export interface GiftPath {
  readonly gift: string;
  readonly shortcode?: string | undefined;
}

/** A receiver of a purchase; without a field, a gift that is shared by its URL. */
export interface Receiver {
  readonly user_id?: string;
  readonly phone_number?: string;
}

/** `key` of any writing operation is its `Idempotency-Key`. */
interface Keyed {
  readonly key?: string | undefined;
}

/** The parameters of a list in pages by cursor (docs/api/conventions.md#pages-by-cursor). */
export interface Page {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
  /** Sent as `Gift-Position`. */
  readonly position?: string | undefined;
}

/** Buys gifts. `order` is the order reference: all purchases of a history have different ones. */
export interface Purchase extends Keyed {
  readonly kind: 'purchase';
  readonly product: string;
  readonly payment: string;
  readonly receivers: readonly Receiver[];
  readonly order: string;
}

export interface Redeem extends GiftPath, Keyed {
  readonly kind: 'redeem';
  readonly location: string;
}

/** Reverses a redemption: its id, `latest`, or `key:` and the idempotency key of the redemption. */
export interface Unredeem extends GiftPath, Keyed {
  readonly kind: 'unredeem';
  readonly redemption: string;
}

export interface Claim extends GiftPath, Keyed {
  readonly kind: 'claim';
}

/** Generates a voucher of format V1 or V2, or answers the one that there is. */
export interface MakeVoucher extends GiftPath, Keyed {
  readonly kind: 'makeVoucher';
  readonly version: 1 | 2;
  readonly segment?: string | undefined;
}

/** Shows a V2 voucher. */
export interface GetVoucher extends GiftPath {
  readonly kind: 'getVoucher';
}

export interface GetGift extends GiftPath {
  readonly kind: 'getGift';
}

/** Lists the redemptions of one gift. */
export interface ListRedemptions extends GiftPath {
  readonly kind: 'listRedemptions';
}

/** Looks up what became of a redemption of a gift with this key. */
export interface LookUpKey extends GiftPath {
  readonly kind: 'lookUpKey';
  readonly of: string;
}

/** An action of support on a gift (docs/support.md#endpoints). */
export interface Support extends Keyed {
  readonly kind: 'block' | 'unblock' | 'supportUnredeem' | 'replace';
  readonly gift: string;
}

export interface Extend extends Keyed {
  readonly kind: 'extend';
  readonly gift: string;
  /** `YYYY-MM-DD`. */
  readonly expiryDate: string;
}

export interface Reassign extends Keyed {
  readonly kind: 'reassign';
  readonly gift: string;
  readonly user: string;
}

/** Refunds gifts of a purchase; none named: all. */
export interface Refund extends Keyed {
  readonly kind: 'refund';
  readonly transaction: string;
  readonly gifts: readonly string[];
}

export interface GetTransaction {
  readonly kind: 'getTransaction';
  readonly transaction: string;
}

/** A page of the gifts of a purchase. */
export interface ListTransactionGifts {
  readonly kind: 'listTransactionGifts';
  readonly transaction: string;
  readonly page: number;
  readonly perPage: number;
}

/** A page of the caller's purchases. */
export interface ListTransactions extends Page {
  readonly kind: 'listTransactions';
}

/** A page of the caller's gifts. */
export interface ListGifts extends Page {
  readonly kind: 'listGifts';
  readonly as?: 'holder' | 'sender' | undefined;
  readonly status?: string | undefined;
}

/** A page of the redemptions that count for the caller's merchant. */
export interface ListMerchantRedemptions extends Page {
  readonly kind: 'listMerchantRedemptions';
}

/** A page of the event feed. */
export interface ListEvents extends Page {
  readonly kind: 'listEvents';
  readonly types?: readonly string[] | undefined;
}

/** Totals by merchant and day, for an auditor. */
export interface Totals {
  readonly kind: 'totals';
}

/** Compares the ledgers of a day with the log, for support or an auditor. */
export interface Reconcile {
  readonly kind: 'reconcile';
  /** `YYYY-MM-DD`. */
  readonly day: string;
}

/** What support's actions do to one gift. */
export type SupportOperation = Support | Extend | Reassign;

/** What concerns one gift. */
export type GiftOperation =
  Redeem | Unredeem | Claim | MakeVoucher | GetVoucher | GetGift | ListRedemptions | LookUpKey | SupportOperation;

/** A page of a list by cursor. */
export type ListOperation = ListTransactions | ListGifts | ListMerchantRedemptions | ListEvents;

/** A request of a client. */
export type Operation =
  GiftOperation | ListOperation | Purchase | Refund | GetTransaction | ListTransactionGifts | Totals | Reconcile;

const GIFT_KINDS: ReadonlySet<string> = new Set<GiftOperation['kind']>([
  'redeem',
  'unredeem',
  'claim',
  'makeVoucher',
  'getVoucher',
  'getGift',
  'listRedemptions',
  'lookUpKey',
  'block',
  'unblock',
  'supportUnredeem',
  'replace',
  'extend',
  'reassign',
]);
const READS: ReadonlySet<string> = new Set<Operation['kind']>([
  'getVoucher',
  'getGift',
  'listRedemptions',
  'lookUpKey',
  'getTransaction',
  'listTransactionGifts',
  'listTransactions',
  'listGifts',
  'listMerchantRedemptions',
  'listEvents',
  'totals',
  'reconcile',
]);

/** Whether it concerns one gift. */
export function concernsGift(operation: Operation): operation is GiftOperation {
  return GIFT_KINDS.has(operation.kind);
}

/** Whether it is a page of a list by cursor. */
export function isList(operation: Operation): operation is ListOperation {
  return ['listTransactions', 'listGifts', 'listMerchantRedemptions', 'listEvents'].includes(operation.kind);
}

/** Whether it changes nothing. */
export function isRead({ kind }: Operation): boolean {
  return READS.has(kind);
}

/** The route of a write with the gift or transaction in it: an idempotency key is scoped to it. */
export function routeOf(operation: Operation): string {
  switch (operation.kind) {
    case 'unredeem':
      return `unredeem ${operation.gift} ${operation.redemption}`;
    case 'makeVoucher':
      return `makeVoucher ${operation.version} ${operation.gift}`;
    case 'refund':
      return `refund ${operation.transaction}`;
    default:
      return 'gift' in operation ? `${operation.kind} ${operation.gift}` : operation.kind;
  }
}

/** Fields of an operation that are no part of its body. */
const NOT_IN_BODY = new Set(['kind', 'key', 'gift', 'shortcode', 'redemption', 'version', 'transaction']);

/** The body of a write, for comparison with another one of its route. */
export function bodyOf(operation: Operation): string {
  return JSON.stringify(Object.entries(operation).filter(([name]) => !NOT_IN_BODY.has(name)));
}
