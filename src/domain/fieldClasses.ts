/**
 * Secret fields of events are never shown; personal ones are masked, unless requested with a reason
 * (docs/support.md#shown-events). `[]` in a path stands for every item of a list.
 */
import type { AccessEvent } from './access.js';
import type { AccountEvent } from './account.js';
import type { CatalogueEvent } from './catalogue.js';
import type { GiftEvent } from './gift/events.js';
import type { NotificationEvent } from './notification.js';
import type { ParkedEvent } from './parked.js';
import type { PurchaseEvent } from './purchase/events.js';
import type { OutwardEvent } from './outward.js';
import type { LogRestored } from './restored.js';
import type { LogVerified } from './logVerified.js';
import type { TreeEvent } from './treeHeads.js';
import type { VoucherCodeEvent } from './voucherCode.js';
import type { WalletEvent } from './wallet.js';
import type { WebhookEndpointEvent } from './webhookEndpoint.js';

export type AnyDomainEvent =
  | AccessEvent
  | AccountEvent
  | CatalogueEvent
  | GiftEvent
  | NotificationEvent
  | LogRestored
  | LogVerified
  | OutwardEvent
  | ParkedEvent
  | PurchaseEvent
  | TreeEvent
  | VoucherCodeEvent
  | WalletEvent
  | WebhookEndpointEvent;

export interface FieldClasses<P extends string = string> {
  readonly secret: readonly P[];
  readonly personal: readonly P[];
}

type PathsOf<D> = D extends object
  ? { [F in keyof D & string]-?: `${F}${'' | PathsBelow<NonNullable<D[F]>>}` }[keyof D & string]
  : never;
type PathsBelow<V> = V extends readonly (infer Item)[] ? `[]${'' | PathsBelow<NonNullable<Item>>}` : `.${PathsOf<V>}`;

const OPEN = { secret: [], personal: [] } as const satisfies FieldClasses;
const USER = {
  secret: ['password_hash'],
  personal: ['username', 'name', 'phone_number', 'device_tokens[]'],
} as const satisfies FieldClasses;
const CLIENT = { secret: ['secret_hash'], personal: [] } as const satisfies FieldClasses;
const PAYMENT_METHOD = { secret: [], personal: ['customer'] } as const satisfies FieldClasses;

/** Secret and personal fields by event type. A path that leads to no field does not compile. */
export const FIELD_CLASSES = {
  IntegrationAdded: OPEN,
  IntegrationChanged: OPEN,
  IntegrationRetired: OPEN,
  MerchantAdded: OPEN,
  MerchantChanged: OPEN,
  MerchantRetired: OPEN,
  BrandAdded: OPEN,
  BrandChanged: OPEN,
  BrandRetired: OPEN,
  StoreAdded: OPEN,
  StoreChanged: OPEN,
  StoreRetired: OPEN,
  SegmentAdded: OPEN,
  SegmentChanged: OPEN,
  SegmentRetired: OPEN,
  ProductAdded: OPEN,
  ProductChanged: OPEN,
  ProductRetired: OPEN,
  CategoryAdded: OPEN,
  CategoryChanged: OPEN,
  CategoryRetired: OPEN,
  UserAdded: USER,
  UserChanged: USER,
  UserRetired: OPEN,
  ClientAdded: CLIENT,
  ClientChanged: CLIENT,
  ClientRetired: OPEN,
  PaymentMethodAdded: PAYMENT_METHOD,
  PaymentMethodChanged: PAYMENT_METHOD,
  PaymentMethodRetired: OPEN,
  PaymentMethodErased: OPEN,
  UsernameTaken: OPEN,
  UsernameGivenUp: OPEN,
  PhoneTaken: OPEN,
  PhoneGivenUp: OPEN,
  ErasureRequested: OPEN,
  ErasureStarted: OPEN,
  ErasureWithdrawn: OPEN,
  PersonErased: OPEN,
  VoucherCodeAdded: { secret: ['code', 'pin'], personal: [] },
  VoucherCodeChanged: { secret: ['pin'], personal: [] },
  VoucherCodeAssigned: OPEN,
  VoucherCodeWithdrawn: OPEN,
  WalletToppedUp: OPEN,
  WalletDebited: OPEN,
  WalletDebitRefused: OPEN,
  WalletCredited: OPEN,
  GiftsPurchased: { secret: ['seed', 'receivers[].phone_id'], personal: ['message'] },
  ChargeStarted: OPEN,
  PaymentCharged: OPEN,
  PaymentDeclined: OPEN,
  RefundRequested: OPEN,
  RefundStarted: OPEN,
  GiftsRefunded: OPEN,
  RefundRefused: OPEN,
  RefundFailed: OPEN,
  NothingRefunded: OPEN,
  PaymentAuthenticationRequired: OPEN,
  PaymentAuthenticationFailed: OPEN,
  RefundedAtProvider: OPEN,
  ProviderRefundSettled: OPEN,
  DisputeOpened: OPEN,
  DisputeClosed: OPEN,
  DisputeSettled: OPEN,
  SendRescheduled: OPEN,
  SendStarted: OPEN,
  SendFinished: OPEN,
  GiftIssued: { secret: ['receiver.phone_id'], personal: [] },
  GiftReleased: OPEN,
  GiftClaimed: OPEN,
  GiftRedeemed: OPEN,
  GiftUnredeemed: OPEN,
  RedemptionVoided: OPEN,
  VoucherAssigned: { secret: ['code', 'pin'], personal: [] },
  GiftCancelled: OPEN,
  GiftBlocked: OPEN,
  GiftUnblocked: OPEN,
  GiftReplaced: OPEN,
  ReplacementDeclined: OPEN,
  GiftReassigned: { secret: ['receiver.phone_id'], personal: [] },
  GiftExtended: OPEN,
  GiftExpiring: OPEN,
  GiftExpired: OPEN,
  ReminderDue: OPEN,
  NotificationStarted: OPEN,
  NotificationSent: OPEN,
  ReminderSent: OPEN,
  NotificationFailed: OPEN,
  NotificationUndelivered: OPEN,
  NotificationRequested: OPEN,
  WebhookEndpointCreated: OPEN,
  WebhookEndpointChanged: OPEN,
  WebhookSecretRotated: OPEN,
  WebhookEndpointDisabled: OPEN,
  WebhookEndpointEnabled: OPEN,
  WebhookEndpointDeleted: OPEN,
  WebhookPingRequested: OPEN,
  WebhookResendRequested: OPEN,
  WebhookRecoverRequested: OPEN,
  LogRestored: OPEN,
  LogVerified: OPEN,
  OutwardWorkStarted: OPEN,
  OutwardWorkHeld: OPEN,
  OutwardWorkResumed: OPEN,
  TreeStarted: { secret: ['salt_key'], personal: [] },
  TreeHeadSigned: OPEN,
  WorkParked: OPEN,
  WorkRetried: OPEN,
  WorkDiscarded: OPEN,
  RecordsShown: OPEN,
  OperationStarted: OPEN,
  OperationEnded: OPEN,
} as const satisfies { readonly [E in AnyDomainEvent as E['type']]: FieldClasses<PathsOf<E['data']>> };

/**
 * Paths of fields that are secret in any event. Keyed hashes and ids of numbers show that two events are about one
 * number.
 */
type SecretByName<P extends string> = P extends
  `${string}_hash` | `${string}phone_id` | `${string}seed` | `${string}pin`
  ? P
  : never;

/** Secret fields that `FIELD_CLASSES` does not list; this must be `never` (`test/domain/fieldClasses.test.ts`). */
export type UnlistedSecret = {
  [E in AnyDomainEvent as E['type']]: Exclude<
    SecretByName<PathsOf<E['data']>>,
    (typeof FIELD_CLASSES)[E['type']]['secret'][number]
  >;
}[AnyDomainEvent['type']];

/**
 * Fields about other people. A merchant is not shown who gave or got the gift that it redeemed; no role is shown the
 * ids of other people's gifts.
 */
const OF_OTHERS = ['sender_id', 'receiver', 'receivers', 'gift_ids', 'kept', 'replaces', 'replaced_by'];

/** Names of fields that a proof may have to hide: secret and personal ones, and those about other people. */
export function fieldsApart(): readonly string[] {
  const classes: readonly FieldClasses[] = Object.values(FIELD_CLASSES);
  const paths = classes.flatMap(({ secret, personal }) => [...secret, ...personal]);
  return [...new Set([...OF_OTHERS, ...paths.map((path) => path.replace(/\W.*/, ''))])].toSorted();
}
