/** The process managers at work, for as long as their lease is held: folds the feed, and does what it asks for once it has caught up. */
import type { Logger } from 'pino';
import { giftStream } from '../domain/gift.js';
import { type ParkedName, parkedStream, type WorkParked } from '../domain/parked.js';
import { type GiftsPurchased, issueGifts } from '../domain/purchase.js';
import type { Bus } from '../ports/bus.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { pause } from '../projections/lease.js';
import { charge, type ChargeDeps } from './chargeStep.js';
import { parkLateMoneyAs } from './lateMoney.js';
import { settleLateMoney } from './lateMoneyStep.js';
import type { Contact } from './notification.js';
import { FEED_TYPES, type Intent, openWork } from './openWork.js';
import { openPool, type Pool } from './pool.js';
import { afterFailure, NotYetError, type Patience } from './retry.js';
import { refund } from './refundStep.js';
import type { Seen } from './seen.js';
import type { ProcessTally } from './status.js';
import { tell, type TellDeps, type TellMemory } from './tellStep.js';
import { inSpan, type SpanDescription } from '../tracing/spans.js';
import { walletPayments } from './walletPayments.js';
import { writer as openWriter } from './writing.js';

const CHARGES_AT_ONCE = 128;
const GIFTS_AT_ONCE = 128;
const TELLINGS_AT_ONCE = 64;
const REFUNDS_AT_ONCE = 16;
/** Each changes many gifts at a time. */
const LATE_MONEY_AT_ONCE = 4;
/** Gifts whose issue is derived in one go: some milliseconds. */
const ISSUE_SLICE = 1_000;
const BATCH_SIZE = 500;
/** A checkpoint only spares reading: one that is some events old does no harm. */
const CHECKPOINT_EVERY_MS = 1_000;
/** How long work that runs is waited for at the end. What is cut off is found again in the log. */
const FINISH_MS = 5_000;

/** What the process managers work with. */
export interface SessionDeps extends Pick<ChargeDeps, 'paymentMethod'>, Pick<TellDeps, 'contact' | 'launchUrl'> {
  readonly events: EventStore;
  readonly bus: Bus;
  readonly logger: Logger;
  readonly now: () => number;
  readonly patience: Patience;
  readonly tally: ProcessTally;
}

/** One piece of work, tried until it is done or parked. */
interface Job {
  /** The same for the same work: it is in hand once. */
  readonly key: string;
  readonly pool: Pool;
  readonly transactionId: string;
  readonly parkAs: { readonly name: ParkedName; readonly entity: string; readonly step: string };
  readonly run: (attempt: number) => Promise<void>;
  /** The event that asked for it; `undefined`: it is not open any more. */
  readonly cause: () => Seen | undefined;
  /** Called when it is done, unless it was asked for anew meanwhile. */
  readonly done?: () => void;
}

/** Work in hand. */
interface InHand {
  /** Asked for again while it ran: what it saw may be old. */
  again: boolean;
  /** Ends the wait for the next attempt; `undefined` while it runs or stands in line. */
  wake: (() => void) | undefined;
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
export async function workThrough(deps: SessionDeps, { from, checkpoint, signal, held }: SessionOptions): Promise<void> {
  const { events, logger, now, patience, tally } = deps;
  const open = openWork(from);
  const writer = openWriter(events, now);
  const pools = {
    charge: openPool(CHARGES_AT_ONCE), issue: openPool(GIFTS_AT_ONCE), tell: openPool(TELLINGS_AT_ONCE), refund: openPool(REFUNDS_AT_ONCE), lateMoney: openPool(LATE_MONEY_AT_ONCE),
  };
  const inHand = new Map<string, InHand>();
  const waits = new Set<NodeJS.Timeout>();
  const names = new WeakMap<GiftsPurchased['data'], Promise<string>>();

  const mayAct = (): void => {
    if (signal.aborted || !held()) throw new UnavailableError('the work may have passed to another process');
  };
  const senderName = (purchase: GiftsPurchased['data']): Promise<string> => {
    const known = names.get(purchase) ?? deps.contact(purchase.buyer_id).then((buyer: Contact | undefined) => buyer?.name ?? '');
    names.set(purchase, known);
    known.catch(() => names.delete(purchase));
    return known;
  };
  const shared = { ...deps, writer, mayAct, senderName, wallets: walletPayments(events, writer) };

  const park = async ({ parkAs: { name, entity, step }, transactionId, cause }: Job, why: string): Promise<void> => {
    const asked = cause();
    if (asked === undefined) return;
    mayAct();
    const event: WorkParked = { type: 'WorkParked', data: { entity, transaction_id: transactionId, step, cause: why, event_id: asked.id } };
    await writer.append(parkedStream(name), event, 'any', { commandId: `park-${step}-${entity}`, cause: asked });
    tally.parked(step);
    logger.error({ step, entity: entity.slice(0, 6), cause: why }, 'parked: it could not be done');
  };

  const attempt = (job: Job, own: InHand, number: number, since: number): void => {
    own.again = false;
    job.pool.add(job.transactionId, async () => {
      let again: { waitMs: number } | { cause: string } | undefined;
      try {
        mayAct();
        await inSpan(() => stepSpan(job, number), () => job.run(number));
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof NotYetError)) tally.failed(job.parkAs.step);
        again = afterFailure(error, number, now() - since, patience, Math.random());
        if (number === 1 && !(error instanceof NotYetError)) logger.warn({ err: error, step: job.parkAs.step, entity: job.parkAs.entity.slice(0, 6) }, 'not done at the first attempt');
      }
      try {
        if (again !== undefined && 'cause' in again) await park(job, again.cause);
      } catch (error) {
        logger.warn({ err: error }, 'not parked yet');
        again = { waitMs: patience.retryAtMostMs };
      }
      if (own.again) return attempt(job, own, 1, now());
      if (again === undefined || 'cause' in again) {
        inHand.delete(job.key);
        tally.done(job.parkAs.step);
        if (again === undefined) job.done?.();
        return undefined;
      }
      const wait = setTimeout(() => own.wake?.(), again.waitMs);
      waits.add(wait);
      own.wake = () => {
        own.wake = undefined;
        clearTimeout(wait);
        waits.delete(wait);
        attempt(job, own, number + 1, since);
      };
      return undefined;
    });
  };

  const takeOn = (job: Job): void => {
    if (signal.aborted || inHand.has(job.key)) return;
    const own: InHand = { again: false, wake: undefined };
    inHand.set(job.key, own);
    tally.takenOn(job.parkAs.step);
    attempt(job, own, 1, now());
  };

  /** Takes it on, or goes on with it at once: what it waits for has come, or what it saw has changed. */
  const takeOnAnew = (job: Job): void => {
    const own = inHand.get(job.key);
    if (own === undefined) return takeOn(job);
    own.again = true;
    own.wake?.();
  };

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

  const tellJob = (giftId: string, transactionId: string): Job => {
    const memory: TellMemory = { unsent: false, attempts: 0 };
    return {
      key: `tell/${giftId}`,
      pool: pools.tell,
      transactionId,
      parkAs: { name: 'notification', entity: giftId, step: 'tell' },
      cause: () => open.notification(giftId)?.last,
      run: async () => {
        const work = open.notification(giftId);
        const purchase = open.purchase(transactionId)?.purchase;
        if (work !== undefined && purchase !== undefined) await tell(shared, { giftId, work, purchase }, memory);
      },
    };
  };

  const refundJob = (refundId: string, transactionId: string): Job => ({
    key: `refund/${refundId}`,
    pool: pools.refund,
    transactionId,
    parkAs: { name: 'refund', entity: refundId, step: 'refund' },
    cause: () => open.refund(refundId)?.last,
    run: async () => {
      if (open.refund(refundId) !== undefined) await refund(shared, transactionId, refundId);
    },
  });

  const lateMoneyJob = (transactionId: string, key: string): Job => ({
    key: `late-money/${transactionId}/${key}`,
    pool: pools.lateMoney,
    transactionId,
    parkAs: parkLateMoneyAs(transactionId, key),
    cause: () => open.lateMoney(transactionId)?.last,
    run: () => settleLateMoney(shared, transactionId, key, open.lateMoney(transactionId)?.shortfall),
    done: () => open.lateMoneyDone(transactionId, key),
  });

  /** Derives the gifts of a purchase a slice at a time, each slice in a turn of its own. */
  const issueSlice = (transactionId: string, start: number): void => {
    const work = open.purchase(transactionId);
    if (work === undefined || signal.aborted) return;
    const { purchase, purchasedAt, last } = work;
    const end = Math.min(start + ISSUE_SLICE, purchase.receivers.length);
    const indexes = Array.from({ length: end - start }, (_, at) => start + at);
    for (const { giftId, event } of issueGifts(purchase, purchasedAt, indexes)) {
      takeOn({
        key: `issue/${giftId}`,
        pool: pools.issue,
        transactionId,
        parkAs: { name: 'purchase', entity: transactionId, step: 'issue' },
        cause: () => open.purchase(transactionId)?.last,
        // That it stands there already, by whomever, is just as well.
        run: async () => void (await writer.append(giftStream(giftId), event, 'none', { commandId: `issue-${giftId}`, cause: last })),
      });
    }
    if (end < purchase.receivers.length) setImmediate(issueSlice, transactionId, end);
  };

  const act = (intent: Intent, resumed: boolean): void => {
    switch (intent.do) {
      case 'charge':
        return takeOnAnew(chargeJob(intent.transactionId, resumed));
      case 'late money':
        return takeOnAnew(lateMoneyJob(intent.transactionId, intent.key));
      case 'issue':
        return issueSlice(intent.transactionId, 0);
      case 'tell':
      case 'find out': {
        const work = open.notification(intent.giftId);
        return work === undefined ? undefined : takeOn(tellJob(intent.giftId, work.transactionId));
      }
      case 'refund': {
        const work = open.refund(intent.refundId);
        return work === undefined ? undefined : takeOn(refundJob(intent.refundId, work.transactionId));
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
    for await (const batch of events.follow(from, { types: FEED_TYPES }, { signal, batchSize: BATCH_SIZE })) {
      for (const event of batch.events) {
        const intents = open.apply(event);
        if (caughtUp) for (const intent of intents) act(intent, false);
      }
      open.lookedAt(batch.position);
      if (batch.caughtUp && !caughtUp) {
        caughtUp = true;
        for (const intent of open.resume()) act(intent, true);
        logger.info({ open: open.size }, 'process managers have caught up');
      }
      await save();
    }
  } finally {
    for (const wait of waits) clearTimeout(wait);
    const late = new AbortController();
    await Promise.race([Promise.all(Object.values(pools).map((pool) => pool.stop())), pause(FINISH_MS, late.signal)]);
    late.abort();
    tally.end();
    await save();
  }
}

/** A step follows the event that asked for it. */
function stepSpan({ parkAs, cause }: Job, attempt: number): SpanDescription {
  return { name: `step ${parkAs.step}`, kind: 'consumer', parent: cause()?.traceparent ?? '', attributes: { 'gift.step': parkAs.step, 'gift.attempt': attempt } };
}
