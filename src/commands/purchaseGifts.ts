/** See docs/api/purchases.md#buy-gifts, docs/api/purchases.md#purchase-outcome */
import { inSlices } from '../lib/async/slices.js';
import { daysAfter } from '../lib/days.js';
import { isStaff } from '../domain/account.js';
import { fold } from '../domain/decider.js';
import { phoneSubject, purchaseSubject } from '../domain/personalFields.js';
import { normalisePhoneNumber } from '../domain/phoneNumber.js';
import { type GiftsPurchased, type PurchaseReceiver, transactionStream } from '../domain/purchase/events.js';
import { type MadePurchase, purchaseAggregate } from '../domain/purchase/state.js';
import { brokenCardLimit } from '../domain/purchase/decisions.js';
import { Refusal } from '../domain/refusal.js';
import { type SendingFacts, sendTime } from '../domain/purchase/sending.js';
import { randomBytes } from '../lib/world.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import { accountAtLogEnd, type AccountDocument, accountInLog } from '../projections/accounts.js';
import type { CatalogueView } from '../projections/catalogue/view.js';
import { sealText, type Subjects } from '../runtime/personal/index.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { ChargeOutcomes } from './chargeOutcomes.js';
import { idFrom } from './commandIds.js';
import { type CommandContext, transact } from './transact.js';
import { keyedHash } from '../domain/keyedHash.js';
import { UnavailableError } from '../ports/unavailable.js';

export interface PurchaseDeps {
  readonly events: EventStore;
  readonly accounts: ReadModel<AccountDocument>;
  readonly catalogue: CatalogueView;
  readonly subjects: Subjects;
  readonly outcomes: ChargeOutcomes;
  readonly chargeWaitMs: number;
}

export interface PurchaseRequest {
  readonly product_id: string;
  readonly payment_reference: string;
  readonly message: string;
  /** Receivers, one for each gift; absent: one gift to be shared by URL. */
  readonly receivers?: readonly { readonly phone_number?: string; readonly user_id?: string }[];
  /** Time of sending, with its zone; absent: receivers are notified at once. */
  readonly send_at?: string;
  /** The caller's own name for the purchase. */
  readonly reference_id?: string;
}

export interface Purchased {
  readonly transactionId: string;
  readonly state: MadePurchase;
  readonly history: readonly RecordedEvent[];
  readonly position: Position | undefined;
  readonly replayed: boolean;
}

export const transactionIdOf = (context: Pick<CommandContext, 'commandId'>): string =>
  idFrom(context.commandId, 'transaction', 128);

/**
 * The transaction of an earlier run of this command; with `upTo`, as it was at that event.
 * @throws Refusal `idempotency_key_reused`
 */
export async function findPurchase(
  deps: PurchaseDeps,
  context: CommandContext,
  upTo?: Position,
): Promise<Purchased | undefined> {
  const transactionId = transactionIdOf(context);
  const history = await deps.events.read(transactionStream(transactionId));
  const [first] = history;
  if (first === undefined) return undefined;
  const same = await hasBodyOf(
    deps.subjects,
    first.data as GiftsPurchased['data'],
    first.metadata.bodyHash,
    context.bodyHash,
  );
  if (!same) throw new Refusal('idempotency_key_reused');
  const last = upTo === undefined ? -1 : history.findLastIndex(({ position }) => position === upTo);
  return last < 0 ? settle(deps, transactionId, true) : purchasedOf(transactionId, history.slice(0, last + 1), true);
}

/**
 * @throws Refusal in the order of docs/api/purchases.md#purchase-refusals (reference, access, product, amount,
 * receivers, time of sending), with the field that is refused; UnavailableError
 */
export async function purchaseGifts(
  deps: PurchaseDeps,
  userId: string,
  context: CommandContext,
  request: PurchaseRequest,
): Promise<Purchased> {
  const transactionId = transactionIdOf(context);
  const { purchase, bodyHash } = await gather(deps, userId, context, request, transactionId);
  const { replayed } = await transact(
    deps.events,
    purchaseAggregate,
    transactionStream(transactionId),
    bodyHash === undefined ? context : { ...context, bodyHash },
    () => [{ type: 'GiftsPurchased', data: purchase }],
    [],
  );
  return settle(deps, transactionId, replayed);
}

async function settle(deps: PurchaseDeps, transactionId: string, replayed: boolean): Promise<Purchased> {
  const stream = transactionStream(transactionId);
  const outcome = deps.outcomes.watch(transactionId);
  const read = async (): Promise<Purchased> => purchasedOf(transactionId, await deps.events.read(stream), replayed);
  try {
    const found = await read();
    const waits = found.state.status === 'pending' && found.state.authentication === undefined;
    return waits && (await outcome.settled(deps.chargeWaitMs)) ? await read() : found;
  } finally {
    outcome.end();
  }
}

function purchasedOf(transactionId: string, history: readonly RecordedEvent[], replayed: boolean): Purchased {
  const state = fold(purchaseAggregate, history);
  if (state.status === 'none') throw new Error('a purchase was appended and is not there');
  return { transactionId, state, history, position: history.at(-1)?.position, replayed };
}

async function gather(
  deps: PurchaseDeps,
  userId: string,
  context: CommandContext,
  request: PurchaseRequest,
  transactionId: string,
): Promise<{ readonly purchase: GiftsPurchased['data']; readonly bodyHash: string | undefined }> {
  const method = await accountAtLogEnd(
    deps,
    `paymentMethod-${request.payment_reference}`,
    (shown) => shown.entry === 'paymentMethod' && shown.active && shown.users.includes(userId),
  );
  if (method?.entry !== 'paymentMethod' || !method.active)
    throw new Refusal('invalid_payment_reference', 'payment_reference');
  if (!method.users.includes(userId)) throw new Refusal('cannot_use_payment_method');
  const catalogue = deps.catalogue.current();
  const product = catalogue.products.get(request.product_id);
  if (product === undefined || !catalogue.sellable(product, userId)) throw new Refusal('invalid_product', 'product_id');
  const requested = request.receivers ?? [{}];
  const total = product.sale_price * requested.length;
  const broken = method.kind === 'card' ? brokenCardLimit(total) : undefined;
  if (broken !== undefined) throw new Refusal(broken);
  const receivers = await receiversOf(deps, requested);
  const expires_on = daysAfter(context.now, product.valid_days);
  const sending = sendingOf(request, receivers, { now: context.now, expires_on });
  const { bodyHash, ...personal } = await personalOf(deps, transactionId, request.message, receivers, context.bodyHash);
  const purchase = {
    transaction_id: transactionId,
    seed: randomBytes(32).toString('hex'),
    buyer_id: userId,
    product_id: product.id,
    brand_id: product.brand_id,
    product_name: product.name,
    sale_price: product.sale_price,
    total,
    payment_reference: request.payment_reference,
    expires_on,
    ...personal,
    ...sending,
    ...(request.reference_id === undefined ? {} : { reference_id: request.reference_id }),
  };
  return { purchase, bodyHash };
}

/**
 * Fields that events must not hold in the clear: numbers become ids, the message is sealed. New subjects are added at
 * once.
 */
async function personalOf(
  { subjects }: PurchaseDeps,
  transactionId: string,
  message: string,
  receivers: readonly NamedReceiver[],
  bodyHash: string | undefined,
): Promise<Pick<GiftsPurchased['data'], 'message' | 'receivers'> & { readonly bodyHash: string | undefined }> {
  const numbers = receivers.flatMap(({ number }) => (number === undefined ? [] : [phoneSubject(number)]));
  const keyed = message !== '' || (numbers.length > 0 && bodyHash !== undefined);
  const ids = await subjects.ids([...numbers, ...(keyed ? [purchaseSubject(transactionId)] : [])]);
  let next = 0;
  const named = receivers.map(({ user_id, number }): PurchaseReceiver => {
    if (number !== undefined) return { phone_id: ids[next++] as string };
    return user_id === undefined ? {} : { user_id };
  });
  const purchaseId = ids[next] ?? '';
  return {
    message: await sealText(subjects, purchaseId, message),
    receivers: named,
    bodyHash: keyed && bodyHash !== undefined ? await purchaseBodyHash(subjects, purchaseId, bodyHash) : bodyHash,
  };
}

/** A receiver as the request names them; the number is E.164. */
interface NamedReceiver {
  readonly user_id?: string;
  readonly number?: string;
}

function sendingOf(
  { send_at }: PurchaseRequest,
  receivers: readonly NamedReceiver[],
  facts: SendingFacts,
): Pick<GiftsPurchased['data'], 'send_at'> {
  if (send_at === undefined) return {};
  if (!receivers.some(({ user_id, number }) => user_id !== undefined || number !== undefined))
    throw new Refusal('nobody_to_send_to', 'send_at');
  return { send_at: sendTime(send_at, facts) };
}

async function receiversOf(
  deps: PurchaseDeps,
  requested: NonNullable<PurchaseRequest['receivers']>,
): Promise<NamedReceiver[]> {
  const receivers: NamedReceiver[] = [];
  const users = new Set<string>();
  await inSlices(requested, ({ phone_number, user_id }, index) => {
    if (user_id !== undefined) {
      users.add(user_id);
      receivers.push({ user_id });
    } else if (phone_number === undefined) {
      receivers.push({});
    } else {
      const number = normalisePhoneNumber(phone_number);
      if (number === undefined) throw new Refusal('invalid_phone_number', `receivers[${index}].phone_number`);
      receivers.push({ number });
    }
  });
  const ids = [...users];
  const found = await deps.accounts.getMany(ids.map((id) => `user-${id}`));
  for (const [index, id] of ids.entries()) {
    if (isReceiver(found[index]) || isReceiver(await accountInLog(deps.events, `user-${id}`))) continue;
    throw new Refusal(
      'receiver_not_found',
      `receivers[${requested.findIndex(({ user_id }) => user_id === id)}].user_id`,
    );
  }
  return receivers;
}

const isReceiver = (account: AccountDocument | undefined): boolean =>
  account?.entry === 'user' && account.active && !isStaff(account);

/**
 * The hash of a purchase's body in its event. A body may hold numbers, which could be guessed from a hash under
 * HASH_KEY alone: it is keyed by the purchase's data key, which ends with an erasure (docs/personal-data.md#erasure).
 * @param purchaseId id of the purchase's subject
 * @throws UnavailableError, also where it was erased a moment ago
 */
async function purchaseBodyHash(
  subjects: Pick<Subjects, 'secrets'>,
  purchaseId: string,
  bodyHash: string,
): Promise<string> {
  const key = (await subjects.secrets([purchaseId])).get(purchaseId);
  if (key === undefined) throw new UnavailableError('the purchase is being erased');
  return keyedHash(key)('body', bodyHash);
}

/**
 * Whether a repeated request has the body of the purchase. Once the purchase's data key is erased that can't be known,
 * and the body counts as the same.
 * @throws UnavailableError
 */
async function hasBodyOf(
  subjects: Pick<Subjects, 'find' | 'secrets'>,
  { transaction_id, message, receivers }: GiftsPurchased['data'],
  stored: string | undefined,
  bodyHash: string | undefined,
): Promise<boolean> {
  const personal = message !== '' || receivers.some(({ phone_id }) => phone_id !== undefined);
  if (!personal || stored === undefined || bodyHash === undefined) return stored === bodyHash;
  const [id] = await subjects.find([purchaseSubject(transaction_id)]);
  const key = id === undefined ? undefined : (await subjects.secrets([id])).get(id);
  return key === undefined || keyedHash(key)('body', bodyHash) === stored;
}
