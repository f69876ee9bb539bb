/**
 * All that is open, folded from the feed: the state of all process managers. Purely in memory; it holds only what has
 * something left to do, so it stays small however long the log is.
 */
import type { GiftIssued } from '../../domain/gift.js';
import { attemptOf } from '../../domain/notification.js';
import { parkedId, type ParkedName, parkedNameOf, type WorkParked, type WorkRetried } from '../../domain/parked.js';
import { idOf } from '../../domain/streamName.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import type { FeedEvent, Intent } from '../managers.js';
import {
  LATE_MONEY_STEPS,
  type LateMoneyTrigger,
  type LateMoneyWork,
  overLateMoney,
  parkLateMoneyAs,
  reactToLateMoney,
  resumeLateMoney,
} from '../dispute/manager.js';
import { type NotificationWork, reactToNotification, resumeNotification } from '../notification/manager.js';
import { type PurchaseTrigger, type PurchaseWork, reactToPurchase, resumePurchase } from '../purchase/manager.js';
import { reactToRefund, type RefundTrigger, type RefundWork } from '../refund/manager.js';
import { openRefundHolds } from '../refund/refundHolds.js';
import { openRetellings } from '../notification/resends.js';
import { causeOf } from './cause.js';
import type { OpenWork, Reopening } from './work.js';
import { issueCommand } from './writing.js';

/** What is open, and where the feed stood before it was. */
interface Entry<W> {
  readonly before: Position | undefined;
  /** The time of the event that opened it. */
  readonly at: string;
  work: W;
}

/** An open purchase; without work while it waits to be opened again. */
interface PurchaseEntry extends Entry<PurchaseWork | undefined> {
  reopening?: Reopening;
  /** Events since its history has been asked for. */
  kept?: RecordedEvent[];
}

/** Open work of one kind: what is taken up anew, and holds the checkpoint back. */
interface Kind {
  readonly size: number;
  /** What was opened first. */
  oldest(): Pick<Entry<unknown>, 'before' | 'at'> | undefined;
  resume(): Iterable<Intent>;
}

/** Work as its parking, and its handing back, tell of it. */
type GivenUp = Pick<WorkParked['data'], 'entity' | 'transaction_id' | 'step'>;
/** What is to be done after that. */
type Handing = (work: GivenUp, event: RecordedEvent) => readonly Intent[];

/** Whether the first telling of a receiver may end with it. */
function endsTelling(event: RecordedEvent): boolean {
  const known = event as unknown as FeedEvent;
  switch (known.type) {
    case 'GiftCancelled':
      return true;
    case 'NotificationSent':
    case 'NotificationFailed':
      return attemptOf(known) === 1;
    case 'WorkParked':
      return parkedNameOf(event.stream) === 'notification';
    default:
      return false;
  }
}

/** Nothing open; the feed begins after `from`. */
export function openWork(from: Position | undefined): OpenWork {
  // In the order in which they were opened: the first is the one that holds the checkpoint back.
  const purchases = new Map<string, PurchaseEntry>();
  const refunds = new Map<string, Entry<RefundWork>>();
  const late = new Map<string, Entry<LateMoneyWork>>();
  const notifications = new Map<string, NotificationWork>();
  const retellings = openRetellings();
  const holds = openRefundHolds();
  /** Purchases whose history is being read. */
  const reading = new Set<PurchaseEntry>();
  /**
   * By the id of parked work: how often it has been parked in a row, from its retry until it is done or parked again.
   */
  const parkings = new Map<string, number>();
  let position = from;

  const kind = <W>(entries: ReadonlyMap<string, Entry<W>>, resume: Kind['resume']): Kind => ({
    get size() {
      return entries.size;
    },
    oldest: () => entries.values().next().value,
    resume,
  });

  const kinds: readonly Kind[] = [
    // Receivers wait for nothing by themselves: they are told while their purchase is open.
    kind(purchases, function* () {
      for (const [transactionId, { work }] of purchases) {
        if (work === undefined) yield { do: 'reopen', transactionId };
        else yield* resumePurchase(work);
      }
      for (const [giftId, work] of notifications) yield* resumeNotification(work, giftId);
    }),
    retellings,
    kind(refunds, function* () {
      for (const refundId of refunds.keys()) yield { do: 'refund', refundId };
    }),
    kind(late, function* () {
      for (const [transactionId, { work }] of late) yield* resumeLateMoney(work, transactionId);
    }),
  ];

  const forgetParking = (name: ParkedName, entity: string): void => void parkings.delete(parkedId(name, entity));

  const keep = <W>(entries: Map<string, Entry<W>>, id: string, work: W | undefined, at: string): void => {
    const entry = entries.get(id);
    if (work === undefined) entries.delete(id);
    else if (entry === undefined) entries.set(id, { before: position, at, work });
    else entry.work = work;
  };

  const close = (transactionId: string): void => {
    const entry = purchases.get(transactionId);
    if (entry === undefined) return;
    purchases.delete(transactionId);
    reading.delete(entry);
    forgetParking('purchase', transactionId);
  };

  const wait = (transactionId: string, event: RecordedEvent, step: string): readonly Intent[] => {
    purchases.set(transactionId, {
      before: position,
      at: event.at,
      work: undefined,
      reopening: { cause: causeOf(event), step },
    });
    return [{ do: 'reopen', transactionId }];
  };

  const move = (transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const entry = purchases.get(transactionId);
    if (entry?.reopening !== undefined) {
      entry.kept?.push(event);
      if (event.type === 'PaymentDeclined') close(transactionId);
      return [];
    }
    // One that is charged and not open was parked before the provider's word came: it goes on where it was.
    if (entry === undefined && event.type === 'PaymentCharged') return wait(transactionId, event, 'charge');
    const { work, intents } = reactToPurchase(entry?.work, event as unknown as PurchaseTrigger, causeOf(event));
    if (work === undefined) close(transactionId);
    else if (entry === undefined) purchases.set(transactionId, { before: position, at: event.at, work });
    else entry.work = work;
    return intents;
  };

  const moveRefund = (refundId: string, transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const known = event as unknown as RefundTrigger;
    const { work, intents } = reactToRefund(
      refunds.get(refundId)?.work,
      known,
      refundId,
      transactionId,
      causeOf(event),
    );
    keep(refunds, refundId, work, event.at);
    if (work === undefined) forgetParking('refund', refundId);
    return [...intents, ...holds.apply(known, refundId).map((giftId): Intent => ({ do: 'go on telling', giftId }))];
  };

  const moveLate = (transactionId: string, event: RecordedEvent): readonly Intent[] => {
    const { work, intents } = reactToLateMoney(
      late.get(transactionId)?.work,
      event as unknown as LateMoneyTrigger,
      transactionId,
      causeOf(event),
    );
    keep(late, transactionId, work, event.at);
    return intents;
  };

  /** The first telling of one receiver has ended: its purchase counts it. */
  const end = (giftId: string, event: RecordedEvent): readonly Intent[] => {
    const work = notifications.get(giftId);
    if (work === undefined) return [];
    notifications.delete(giftId);
    return move(work.transactionId, event);
  };

  const refundMoves: Handing = ({ entity, transaction_id }, event) => moveRefund(entity, transaction_id, event);
  const lateMoneyMoves: Handing = ({ transaction_id }, event) => moveLate(transaction_id, event);

  const handings: Readonly<Record<ParkedName, { readonly parked: Handing; readonly retried: Handing }>> = {
    refund: { parked: refundMoves, retried: refundMoves },
    dispute: { parked: lateMoneyMoves, retried: lateMoneyMoves },
    notification: {
      parked({ entity }, event) {
        retellings.end(entity);
        return end(entity, event);
      },
      // What is open by itself was never given up.
      retried: ({ entity, transaction_id }, event) =>
        notifications.has(entity) ? [] : ask(entity, transaction_id, event),
    },
    purchase: {
      parked({ entity, step }) {
        // Given up just as the provider's word came: the gifts are to be issued all the same.
        if (step === 'charge' && purchases.get(entity)?.work?.stage === 'charged')
          return [{ do: 'issue', transactionId: entity }];
        // With the purchase goes the telling of its receivers: it can't be done without it.
        for (const [giftId, work] of notifications) if (work.transactionId === entity) notifications.delete(giftId);
        close(entity);
        return [];
      },
      retried: ({ entity, step }, event) => (purchases.has(entity) ? [] : wait(entity, event, step)),
    },
  };

  const handed = (
    how: 'parked' | 'retried',
    name: ParkedName,
    work: GivenUp,
    event: RecordedEvent,
  ): readonly Intent[] => (LATE_MONEY_STEPS.has(work.step) ? lateMoneyMoves : handings[name][how])(work, event);

  const parked = (work: WorkParked['data'], event: RecordedEvent): readonly Intent[] => {
    const name = parkedNameOf(event.stream);
    if (name === undefined) return [];
    forgetParking(name, work.entity);
    return handed('parked', name, work, event);
  };

  const retried = (work: WorkRetried['data'], event: RecordedEvent): readonly Intent[] => {
    const name = parkedNameOf(event.stream);
    if (name === undefined) return [];
    parkings.set(parkedId(name, work.entity), work.times);
    return handed('retried', name, work, event);
  };

  const ask = (giftId: string, transactionId: string, event: RecordedEvent): readonly Intent[] =>
    retellings.ask(giftId, { before: position, at: event.at, transactionId, cause: causeOf(event) });

  const issued = (data: GiftIssued['data'], event: RecordedEvent): readonly Intent[] => {
    const entry = purchases.get(data.transaction_id);
    if (entry === undefined) return [];
    if (entry.reopening !== undefined) return move(data.transaction_id, event);
    const giftId = idOf(event.stream);
    const { work, intents } = reactToNotification(undefined, { type: 'GiftIssued', data }, giftId, causeOf(event));
    if (work !== undefined)
      notifications.set(giftId, event.metadata.commandId === issueCommand(giftId) ? work : { ...work, together: true });
    move(data.transaction_id, event);
    return intents;
  };

  /**
   * Kept for every purchase whose history is being read: whose gift it is is not known until then. Only as the feed
   * gives it, never from a history that is gone through: each of those who are read would hand all that it has kept to
   * the others, twice as much for one more of them.
   */
  const keepForReading = (event: RecordedEvent): void => {
    if (reading.size === 0 || !endsTelling(event)) return;
    for (const entry of reading) entry.kept?.push(event);
  };

  const react = (event: RecordedEvent): readonly Intent[] => {
    const known = event as unknown as FeedEvent;
    switch (known.type) {
      case 'GiftsPurchased':
      case 'ChargeStarted':
      case 'PaymentAuthenticationRequired':
      case 'PaymentAuthenticationFailed':
      case 'PaymentCharged':
      case 'PaymentDeclined':
        return move(idOf(event.stream), event);
      case 'RefundRequested':
      case 'RefundStarted':
      case 'GiftsRefunded':
      case 'RefundRefused':
      case 'RefundFailed':
      case 'NothingRefunded':
        return moveRefund(known.data.refund_id, idOf(event.stream), event);
      case 'GiftCancelled': {
        const giftId = idOf(event.stream);
        const work = notifications.get(giftId);
        if (work !== undefined) notifications.set(giftId, { ...work, cancelled: true });
        return [];
      }
      case 'GiftIssued':
        return issued(known.data, event);
      case 'NotificationStarted': {
        if (attemptOf(known) !== 1) return [];
        if (purchases.get(known.data.transaction_id)?.reopening !== undefined)
          return move(known.data.transaction_id, event);
        const giftId = idOf(event.stream);
        const { work } = reactToNotification(notifications.get(giftId), known, giftId, causeOf(event));
        if (work !== undefined) notifications.set(giftId, work);
        return [];
      }
      case 'NotificationSent':
      case 'NotificationFailed':
        return attemptOf(known) === 1 ? end(idOf(event.stream), event) : [];
      case 'NotificationRequested':
        return ask(idOf(event.stream), known.data.transaction_id, event);
      case 'GiftReassigned':
        return ask(idOf(event.stream), known.data.transaction_id, event);
      case 'WorkParked':
        return parked(known.data, event);
      case 'WorkRetried':
        return retried(known.data, event);
      case 'RefundedAtProvider':
      case 'ProviderRefundSettled':
      case 'DisputeOpened':
      case 'DisputeClosed':
      case 'DisputeSettled':
        return moveLate(idOf(event.stream), event);
      default:
        return (known satisfies never, []);
    }
  };

  /** What has been open for longest, of each kind. */
  const oldest = (): readonly Pick<Entry<unknown>, 'before' | 'at'>[] => kinds.flatMap((one) => one.oldest() ?? []);

  return {
    apply(event) {
      keepForReading(event);
      const intents = react(event);
      position = event.position;
      return intents;
    },
    lookedAt: (at) => void (position = at),
    *resume() {
      for (const one of kinds) yield* one.resume();
    },
    purchase: (transactionId) => purchases.get(transactionId)?.work,
    notification: (giftId) => notifications.get(giftId),
    refund: (refundId) => refunds.get(refundId)?.work,
    refundDone(refundId) {
      refunds.delete(refundId);
      forgetParking('refund', refundId);
    },
    beingRefunded: (giftId) => holds.has(giftId),
    lateMoney: (transactionId) => late.get(transactionId)?.work,
    lateMoneyDone(transactionId, key) {
      const entry = late.get(transactionId);
      if (entry !== undefined) keep(late, transactionId, overLateMoney(entry.work, key), entry.at);
      const { name, entity } = parkLateMoneyAs(transactionId, key);
      forgetParking(name, entity);
    },
    retelling: (giftId) => retellings.get(giftId),
    retold(giftId, generation) {
      retellings.end(giftId, generation);
      if (retellings.get(giftId) === undefined) forgetParking('notification', giftId);
    },
    reopening: (transactionId) => purchases.get(transactionId)?.reopening,
    beginReopen(transactionId) {
      const entry = purchases.get(transactionId);
      if (entry?.reopening !== undefined) {
        entry.kept = [];
        reading.add(entry);
      }
      return position;
    },
    reopen(transactionId, history) {
      const entry = purchases.get(transactionId);
      if (entry?.reopening === undefined) return [];
      const kept = entry.kept ?? [];
      delete entry.reopening;
      delete entry.kept;
      reading.delete(entry);
      for (const event of [...history, ...kept]) {
        // That it was parked by itself says only that it is no part of its purchase any more: a retry may be under way.
        if (event.type === 'WorkParked') end((event.data as WorkParked['data']).entity, event);
        else react(event);
      }
      const { work } = entry;
      if (work === undefined) close(transactionId);
      if (work === undefined || !purchases.has(transactionId)) return [];
      const intents: Intent[] = [...resumePurchase(work)];
      for (const [giftId, telling] of notifications)
        if (telling.transactionId === transactionId) intents.push(...resumeNotification(telling, giftId));
      return intents;
    },
    timesParked: (name, entity) => parkings.get(parkedId(name, entity)) ?? 0,
    checkpoint() {
      let held = position;
      for (const one of oldest()) {
        // `undefined` is the log's beginning.
        if (one.before === undefined) return undefined;
        if (held === undefined || one.before < held) held = one.before;
      }
      return held;
    },
    get size() {
      return kinds.reduce((sum, one) => sum + one.size, 0);
    },
    get position() {
      return position;
    },
    get oldestAt() {
      return oldest()
        .map(({ at }) => at)
        .sort()[0];
    },
  };
}
