/**
 * The process managers at work, for as long as their lease is held: folds the feed, and does what it asks for once it
 * has caught up.
 */
import type { Logger } from 'pino';
import { giftStream } from '../../domain/gift.js';
import { type GiftsPurchased, issueGifts } from '../../domain/purchase.js';
import type { Bus } from '../../ports/bus.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import type { FollowerRun } from '../../runtime/supervision/followers.js';
import { LOW_PRIORITY_SLICE_MS, inSlices, slices } from '../../lib/async/slices.js';
import { within } from '../../lib/async/within.js';
import { charge, type ChargeDeps } from '../purchase/chargeStep.js';
import type { Contact } from '../notification/manager.js';
import { parkLateMoneyAs } from '../dispute/manager.js';
import { settleLateMoney } from '../dispute/disputeStep.js';
import { FEED_TYPES, type Intent } from '../managers.js';
import { type Job, jobRunner } from './jobs.js';
import { openWork } from './openWork.js';
import { openPool } from './pool.js';
import { NotOursError, NotYetError, type RetryPolicy } from './retry.js';
import { purchaseHistory } from './reopen.js';
import { resend } from '../notification/resendStep.js';
import { refund } from '../refund/refundStep.js';
import type { ProcessTally } from './status.js';
import { notify, type NotifyDeps, attemptMemory } from '../notification/notifyStep.js';
import type { Reopening } from './work.js';
import { walletPayments } from '../purchase/walletPayments.js';
import { issueCommand, openWriter } from './writing.js';

const CHARGES_AT_ONCE = 128;
const GIFTS_AT_ONCE = 128;
const NOTIFICATIONS_AT_ONCE = 64;
const REFUNDS_AT_ONCE = 16;
/** Each changes many gifts at a time. */
const LATE_MONEY_AT_ONCE = 4;
const BATCH_SIZE = 500;
/** A checkpoint only spares reading: one that is some events old does no harm. */
const CHECKPOINT_EVERY_MS = 1_000;
/** How long work that runs is waited for at the end. What is cut off is found again in the log. */
const FINISH_MS = 5_000;

const notifyKey = (giftId: string): string => `notify/${giftId}`;

/** What the process managers work with. */
export interface SessionDeps extends Pick<ChargeDeps, 'paymentMethod'>, Pick<NotifyDeps, 'contact' | 'launchUrl'> {
  readonly events: EventStore;
  readonly bus: Bus;
  readonly logger: Logger;
  readonly now: () => number;
  readonly retryPolicy: RetryPolicy;
  readonly tally: ProcessTally;
  /** Told when the session has caught up, and of failures of the feed that are waited out. */
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
}

/** Where a session began, and may begin another time. */
export interface SessionOptions {
  /** The feed begins after it. */
  readonly from: Position | undefined;
  /** Told now and then, and at the end, from where another session may begin. Must not throw. */
  readonly checkpoint: (position: Position) => Promise<void>;
  /** Ends the session. */
  readonly signal: AbortSignal;
  /** Whether this process may act at this moment. */
  readonly held: () => boolean;
}

/** Works until `signal`; what runs then is finished first. @throws Error when the feed breaks. */
export async function workThrough(
  deps: SessionDeps,
  { from, checkpoint, signal, held }: SessionOptions,
): Promise<void> {
  const { events, logger, now, retryPolicy, tally, health } = deps;
  const open = openWork(from);
  const writer = openWriter(events, now);
  const pools = {
    charge: openPool(CHARGES_AT_ONCE),
    issue: openPool(GIFTS_AT_ONCE),
    tell: openPool(NOTIFICATIONS_AT_ONCE),
    refund: openPool(REFUNDS_AT_ONCE),
    lateMoney: openPool(LATE_MONEY_AT_ONCE),
  };
  const names = new WeakMap<GiftsPurchased['data'], Promise<string>>();

  const mayAct = (): void => {
    if (signal.aborted || !held()) throw new NotOursError('the work may have passed to another process');
  };
  const senderName = (purchase: GiftsPurchased['data']): Promise<string> => {
    const known =
      names.get(purchase) ?? deps.contact(purchase.buyer_id).then((buyer: Contact | undefined) => buyer?.name ?? '');
    names.set(purchase, known);
    known.catch(() => names.delete(purchase));
    return known;
  };
  const shared = { ...deps, writer, mayAct, senderName, wallets: walletPayments(events, writer) };
  const { takeOn, takeOnAnew, wake, takeBack, stop } = jobRunner({
    writer,
    logger,
    ticks: () => performance.now(),
    retryPolicy,
    tally,
    mayAct,
    signal,
    timesParked: open.timesParked,
  });

  const chargeJob = (transactionId: string, resumed: boolean): Job => ({
    key: `charge/${transactionId}`,
    pool: pools.charge,
    transactionId,
    parkAs: { name: 'purchase', entity: transactionId, step: 'charge' },
    cause: () => open.purchase(transactionId)?.last,
    run: async (number) => {
      const work = open.purchase(transactionId);
      // Somebody else may write of it while its buyer is waited for.
      const fresh = number === 1 && !resumed && work?.stage === 'bought';
      if (work !== undefined && work.stage !== 'charged') await charge(shared, work, fresh);
    },
  });

  /** A refund may cancel the gift at any moment; it wakes whom it leaves. @throws NotYetError */
  const mayNotify = (giftId: string): void => {
    if (open.beingRefunded(giftId))
      throw new NotYetError('a refund decides on the gift first', retryPolicy.retryAtMostMs);
  };

  /** What a gift's first telling and those asked for later have in common: by one key, so one at a time. */
  const telling = (giftId: string, transactionId: string): Pick<Job, 'key' | 'pool' | 'transactionId' | 'parkAs'> => ({
    key: notifyKey(giftId),
    pool: pools.tell,
    transactionId,
    parkAs: { name: 'notification', entity: giftId, step: 'notify' },
  });

  const notifyJob = (giftId: string, transactionId: string): Job => {
    const memory = attemptMemory();
    return {
      ...telling(giftId, transactionId),
      cause: () => open.notification(giftId)?.last,
      run: async () => {
        mayNotify(giftId);
        const work = open.notification(giftId);
        const purchase = open.purchase(transactionId)?.purchase;
        if (work !== undefined && purchase !== undefined) await notify(shared, { giftId, work, purchase }, memory);
      },
    };
  };

  const resendJob = (giftId: string, transactionId: string): Job => {
    const memory = attemptMemory();
    return {
      ...telling(giftId, transactionId),
      cause: () => open.retelling(giftId)?.cause,
      run: async () => {
        for (let asked = open.retelling(giftId); asked !== undefined; asked = open.retelling(giftId)) {
          mayNotify(giftId);
          if (await resend(shared, giftId, asked.cause, memory)) open.retold(giftId, asked.generation);
        }
      },
    };
  };

  const reopenJob = (transactionId: string, { step }: Reopening): Job => ({
    key: `reopen/${transactionId}`,
    pool: pools.charge,
    transactionId,
    parkAs: { name: 'purchase', entity: transactionId, step },
    cause: () => open.reopening(transactionId)?.cause,
    run: async () => {
      if (open.reopening(transactionId) === undefined) return;
      const history = await purchaseHistory(events, transactionId, open.beginReopen(transactionId));
      for (const intent of open.reopen(transactionId, history)) act(intent, true);
    },
  });

  const refundJob = (refundId: string, transactionId: string): Job => ({
    key: `refund/${refundId}`,
    pool: pools.refund,
    transactionId,
    parkAs: { name: 'refund', entity: refundId, step: 'refund' },
    cause: () => open.refund(refundId)?.last,
    run: async () => {
      if (open.refund(refundId) !== undefined)
        await refund(shared, transactionId, refundId, open.refund(refundId)?.retried);
    },
    done: () => open.refundDone(refundId),
  });

  const lateMoneyJob = (transactionId: string, key: string): Job => ({
    key: `late-money/${transactionId}/${key}`,
    pool: pools.lateMoney,
    transactionId,
    parkAs: parkLateMoneyAs(transactionId, key),
    cause: () => open.lateMoney(transactionId)?.last.get(key),
    run: () => {
      const work = open.lateMoney(transactionId);
      return settleLateMoney(shared, transactionId, key, work?.shortfall, work?.retried.get(key));
    },
    done: () => open.lateMoneyDone(transactionId, key),
  });

  /** Issues what `gifts` still gives, a slice at a time, each slice in a turn of its own. */
  const issueSlice = (transactionId: string, gifts: ReturnType<typeof issueGifts>): void => {
    const work = open.purchase(transactionId);
    if (work === undefined || signal.aborted) return;
    const { last } = work;
    const time = slices(LOW_PRIORITY_SLICE_MS);
    for (let next = gifts.next(); next.done !== true; next = gifts.next()) {
      const { giftId, event } = next.value;
      takeOn({
        key: `issue/${giftId}`,
        pool: pools.issue,
        transactionId,
        parkAs: { name: 'purchase', entity: transactionId, step: 'issue' },
        cause: () => open.purchase(transactionId)?.last,
        // That it stands there already, by whomever, is just as well.
        run: async () =>
          void (await writer.append(giftStream(giftId), event, 'none', {
            commandId: issueCommand(giftId),
            cause: last,
          })),
      });
      if (time.due()) return void setImmediate(issueSlice, transactionId, gifts);
    }
  };

  const issue = (transactionId: string): void => {
    const work = open.purchase(transactionId);
    if (work !== undefined) issueSlice(transactionId, issueGifts(work.purchase, work.purchasedAt));
  };

  const act = (intent: Intent, resumed: boolean): void => {
    switch (intent.do) {
      case 'charge':
        return takeOnAnew(chargeJob(intent.transactionId, resumed));
      case 'late money': {
        const { name, entity } = parkLateMoneyAs(intent.transactionId, intent.key);
        takeBack(name, entity);
        return takeOnAnew(lateMoneyJob(intent.transactionId, intent.key));
      }
      case 'issue':
        takeBack('purchase', intent.transactionId);
        return issue(intent.transactionId);
      case 'tell':
      case 'find out': {
        const work = open.notification(intent.giftId);
        return work === undefined ? undefined : takeOn(notifyJob(intent.giftId, work.transactionId));
      }
      case 'go on telling':
        return wake(notifyKey(intent.giftId));
      case 'retell': {
        const asked = open.retelling(intent.giftId);
        takeBack('notification', intent.giftId);
        return asked === undefined ? undefined : takeOnAnew(resendJob(intent.giftId, asked.transactionId));
      }
      case 'reopen': {
        const reopening = open.reopening(intent.transactionId);
        takeBack('purchase', intent.transactionId);
        return reopening === undefined ? undefined : takeOnAnew(reopenJob(intent.transactionId, reopening));
      }
      case 'refund': {
        takeBack('refund', intent.refundId);
        const work = open.refund(intent.refundId);
        return work === undefined ? undefined : takeOnAnew(refundJob(intent.refundId, work.transactionId));
      }
      default:
        return intent satisfies never;
    }
  };

  let saved = { position: from, at: Number.NEGATIVE_INFINITY };
  const save = async (): Promise<void> => {
    const position = open.checkpoint();
    if (position === undefined || position === saved.position) return;
    if (!signal.aborted && performance.now() - saved.at < CHECKPOINT_EVERY_MS) return;
    saved = { position, at: performance.now() };
    await checkpoint(position);
  };

  let caughtUp = false;
  tally.begin(() => ({ caughtUp, position: open.position, open: open.size, oldestAt: open.oldestAt }));
  try {
    for await (const batch of events.follow(
      from,
      { types: FEED_TYPES },
      { signal, batchSize: BATCH_SIZE, onTrouble: health.onTrouble },
    )) {
      // What came together is known together before anything is done: of a gift that is issued and cancelled in one
      // append nobody is told.
      const asked = batch.events.flatMap((event) => open.apply(event));
      open.lookedAt(batch.position);
      if (caughtUp) for (const intent of asked) act(intent, false);
      if (batch.caughtUp && !caughtUp) {
        caughtUp = true;
        // There may be tens of thousands; what is begun meanwhile changes what is open.
        await inSlices([...open.resume()], (intent) => act(intent, true));
        logger.info({ open: open.size }, 'process managers have caught up');
      }
      if (caughtUp) health.well();
      await save();
    }
  } finally {
    stop();
    await within(Promise.all(Object.values(pools).map((pool) => pool.stop())), FINISH_MS, () => undefined);
    tally.end();
    await save();
  }
}
