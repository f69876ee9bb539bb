import { memorySubjects } from '../../support/fixtures/memorySubjects.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { giftHistory, namedGifts } from '../../../src/ops/history/giftHistory.js';
import type { AccessEvent } from '../../../src/domain/access.js';
import type { AccountEvent } from '../../../src/domain/account.js';
import type { CatalogueEvent } from '../../../src/domain/catalogue.js';
import type { AnyDomainEvent } from '../../../src/domain/fieldClasses.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { PARKED_NAMES, parkedStream } from '../../../src/domain/parked.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { OutwardEvent } from '../../../src/domain/outward.js';
import type { LogRestored } from '../../../src/domain/restored.js';
import type { LogVerified } from '../../../src/domain/logVerified.js';
import type { TreeEvent } from '../../../src/domain/treeHeads.js';
import { voucherCodeStream } from '../../../src/domain/voucherCode.js';
import { walletStream } from '../../../src/domain/wallet.js';
import type { WebhookEndpointEvent } from '../../../src/domain/webhookEndpoint.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';

const test = suite('audit/giftHistory');
const SEED = 'ab'.repeat(32);
const GIFT = deriveGiftIds(SEED, 1)[0]?.gift_id ?? '';
const STREAMS = {
  transaction: [transactionStream('t')],
  gift: [giftStream(GIFT)],
  notification: [notificationStream(GIFT)],
  parked: PARKED_NAMES.map(parkedStream),
  wallet: [walletStream('w')],
  code: [voucherCodeStream('s', 'code:C')],
} as const;

/** All that happens to gifts: the catalogue, accounts, who saw what and the tree are of no gift's life. */
type OfGifts = Exclude<
  AnyDomainEvent,
  | AccessEvent
  | AccountEvent
  | CatalogueEvent
  | LogRestored
  | LogVerified
  | OutwardEvent
  | TreeEvent
  | WebhookEndpointEvent
>['type'];

/**
 * Where an event of each type stands, in the order in which they are appended here; null: it is of no gift's life
 * either.
 */
const WHERE: Readonly<Record<OfGifts, keyof typeof STREAMS | null>> = {
  GiftsPurchased: 'transaction',
  ChargeStarted: 'transaction',
  WalletDebited: 'wallet',
  WalletDebitRefused: 'wallet',
  PaymentAuthenticationRequired: 'transaction',
  PaymentAuthenticationFailed: 'transaction',
  PaymentCharged: 'transaction',
  PaymentDeclined: 'transaction',
  GiftIssued: 'gift',
  SendRescheduled: 'transaction',
  SendStarted: 'transaction',
  GiftReleased: 'gift',
  SendFinished: 'transaction',
  GiftClaimed: 'gift',
  GiftRedeemed: 'gift',
  GiftUnredeemed: 'gift',
  RedemptionVoided: 'gift',
  VoucherAssigned: 'gift',
  GiftCancelled: 'gift',
  GiftBlocked: 'gift',
  GiftUnblocked: 'gift',
  GiftReassigned: 'gift',
  GiftReplaced: 'gift',
  ReplacementDeclined: 'gift',
  GiftExtended: 'gift',
  GiftExpiring: 'gift',
  GiftExpired: 'gift',
  ReminderDue: 'gift',
  ReminderSent: 'notification',
  NotificationStarted: 'notification',
  NotificationSent: 'notification',
  NotificationFailed: 'notification',
  NotificationUndelivered: 'notification',
  NotificationRequested: 'notification',
  RefundRequested: 'transaction',
  RefundStarted: 'transaction',
  WalletCredited: 'wallet',
  GiftsRefunded: 'transaction',
  RefundRefused: 'transaction',
  RefundFailed: 'transaction',
  NothingRefunded: 'transaction',
  RefundedAtProvider: 'transaction',
  ProviderRefundSettled: 'transaction',
  DisputeOpened: 'transaction',
  DisputeClosed: 'transaction',
  DisputeSettled: 'transaction',
  VoucherCodeAssigned: 'code',
  WorkParked: 'parked',
  WorkRetried: 'parked',
  WorkDiscarded: 'parked',
  WalletToppedUp: null,
  VoucherCodeAdded: null,
  VoucherCodeChanged: null,
  VoucherCodeWithdrawn: null,
};

/** What tells each of them whose it is. */
const DATA = {
  transaction_id: 't',
  gift_id: GIFT,
  entity: GIFT,
  refund_id: 'r',
  cause: 'r',
  payment_reference: 'w',
  seed: SEED,
  receivers: [{}],
  segment_id: 's',
  code: 'C',
};
/** Of another purchase, in a stream that many share. */
const OTHERS = { ...DATA, transaction_id: 'another', gift_id: 'another' };
const SHARED: readonly string[] = ['parked', 'wallet', 'code'] satisfies (keyof typeof STREAMS)[];

test("shows an event of every type of a gift's life in log order, and none of other gifts", async () => {
  const events = memoryEvents();
  for (const [type, where] of Object.entries(WHERE)) {
    for (const stream of where === null ? [] : STREAMS[where])
      events.given(stream, { type, data: DATA }, ...(SHARED.includes(where ?? '') ? [{ type, data: OTHERS }] : []));
  }
  events.given(parkedStream('notification'), {
    type: 'WorkParked',
    data: { ...OTHERS, transaction_id: 't', entity: 'another' },
  });
  events.given(giftStream('another'), { type: 'GiftIssued', data: { transaction_id: 'another' } });
  const unknown = { get: async () => undefined };
  const deps = {
    events,
    models: { gifts: unknown, redemptions: unknown },
    subjects: memorySubjects(),
    hash: (kind: string, text: string) => `${kind}:${text}`,
  };
  const named = await namedGifts(deps, GIFT);
  assert.ok(named);
  const told = (await giftHistory(deps, named)).map(({ stream, type }) => `${stream} ${type}`);
  const own = events.log.filter(
    ({ data }) => (data as typeof DATA).transaction_id === 't' && (data as typeof DATA).entity === GIFT,
  );
  assert.equal(
    told,
    own.map(({ stream, type }) => `${stream} ${type}`),
  );
});

test.run();
