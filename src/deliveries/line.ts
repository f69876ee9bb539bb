/** The deliveries to one endpoint, in the process that leads (docs/decisions.md#webhook-deliveries). */
import type { Logger } from 'pino';
import { pause } from '../lib/async/pause.js';
import { within } from '../lib/async/within.js';
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import { attemptOnce, type AttemptDeps, type Attempted } from './attempt.js';
import { noteAttempt } from './attempts.js';
import { openBacklog, scheduled, type Waiting } from './backlog.js';
import { forgetGivenUp, giveUp } from './givenUp.js';
import { isSubscribed } from './message.js';
import { type Progress, startedAfresh } from './progress.js';
import { progressSaver } from './progressSaver.js';
import { readAgain, type Reading, type ReadingDeps, readNew } from './reading.js';
import type { Reach } from './reach.js';
import type { RetrySchedule } from './retries.js';
import type { Lease } from '../runtime/coordination/lease.js';
import type { Slots } from '../lib/async/slots.js';
import type { DeliveryTally, EndpointStatus } from './tally.js';
import { isDelivered, isFailing, type Verdict, verdictOf } from './verdict.js';

/** Attempts at once. */
const AT_ONCE = 8;
/** With so many waiting, nothing more is read; of an endpoint that fails, fewer. */
const MOST_WAITING = { working: 1_000, failing: 100 };
/** With so many ready, nothing more is read. */
const READY = 100;
/** An attempt that takes longer makes room for others, and the endpoint counts as slow. */
const SLOW_MS = 2_000;
/** The least time between two records of the progress, and what each that waits adds to it. */
const SAVE_MS = 250;
const SAVE_MS_EACH = 5;
/** The longest wait for a retry to fall due: timers don't follow the service's clock. */
const LOOK_MS = 1_000;
/** What can't be made for now, as while a document is repaired. */
const UNREADABLE_MS = 30_000;
/** Before the feed is read again for an endpoint for which it could not be read. */
const READ_AGAIN_MS = 1_000;

export interface LineDeps extends AttemptDeps, ReadingDeps {
  /** `aside`: of endpoints that fail or are slow, so that they take no room from others. */
  readonly slots: { readonly main: Slots; readonly aside: Slots };
  readonly feed: ReadingDeps['feed'];
  readonly schedule: RetrySchedule;
  /** Of all endpoints. */
  readonly reach: Reach;
  readonly random: () => number;
  /** For attempts that are under way at the end. */
  readonly finishMs: number;
  /** An endpoint with something due, for which nothing has begun or ended for so long, is told as stalled. */
  readonly stalledMs: number;
  /** Appends the event. @throws UnavailableError */
  readonly disable: (endpointId: string, cause: Exclude<DisabledBy, 'owner'>) => Promise<void>;
  readonly tally: Pick<DeliveryTally, 'count' | 'countDisabled'>;
  readonly logger: Logger;
  /** Whether this process leads still: asked before each attempt and record. Once it is over the session ends. */
  readonly lease: Pick<Lease, 'held' | 'renewed'>;
  /** Ends the deliveries to all endpoints. */
  readonly fail: (error: unknown) => void;
  /** Something could not be read, made or noted; all else goes on. `undefined`: it can again. */
  readonly onTrouble: (error: Error | undefined) => void;
}

export interface Line {
  /** There may be new events for it. */
  wake(): void;
  /** Its URL, types or secrets may have changed. */
  update(endpoint: EndpointDocument): void;
  /** What was asked for waits, and that it was asked for is noted, in one record. */
  take(items: readonly Waiting[], change: (progress: Progress) => Progress): void;
  progress(): Progress;
  /** Whether events of these sources may be for it. */
  isOf(sources: ReadonlySet<string>): boolean;
  status(): EndpointStatus;
  /** Waits a little for what is under way. */
  close(): Promise<void>;
}

/** @param version of the stored progress; 0: there is none */
export function openLine(endpoint: EndpointDocument, stored: Progress, version: number, deps: LineDeps): Line {
  const { records, slots, schedule, reach, tally, logger, fail, onTrouble } = deps;
  const id = endpoint.endpoint_id;
  const backlog = openBacklog(stored.waiting);
  const closing = new AbortController();
  const cutting = new AbortController();
  let current = endpoint;
  let progress = stored;
  /** There may be events after the cursor. */
  let behind = true;
  let sources: readonly string[] | undefined;
  let underWay = 0;
  let slow = false;
  let reading: Promise<void> | undefined;
  /** What is asked for again and what is new are read in turns: neither holds up the other. */
  let newIsNext = false;
  let unreadable = false;
  let timer: NodeJS.Timeout | undefined;
  /** When something was read, or an attempt began or ended, by the monotonic clock. */
  let movedAt = performance.now();
  /** Since when each status has found something due. */
  let dueSince: number | undefined;
  /** Attempts that wait for their turn among those of all endpoints. */
  let queued = 0;
  const idle: (() => void)[] = [];
  /** Attempts that are being noted. */
  const notes = new Set<Promise<void>>();

  const nowMs = (): number => Date.parse(deps.now());
  const mayWork = (): boolean => !closing.signal.aborted && deps.lease.held;
  const present = (): Progress => ({ ...progress, waiting: backlog.items() });

  const saver = progressSaver({
    records,
    endpointId: id,
    version,
    read: present,
    pauseMs: () => SAVE_MS + backlog.size * SAVE_MS_EACH,
    lease: deps.lease,
    fail,
  });

  const hasRoom = (): boolean =>
    backlog.size < (isFailing(progress) ? MOST_WAITING.failing : MOST_WAITING.working) && backlog.untried < READY;

  function take({ items, change }: Pick<Reading, 'items' | 'change'>): void {
    for (const item of items) backlog.add(item);
    progress = change(progress);
    saver.changed();
    startAttempts();
  }

  /** @returns whether there was anything to read */
  async function takeAgain(): Promise<boolean> {
    const again = await readAgain(deps, current, progress);
    if (again === undefined) return false;
    take(again);
    if (again.taken === undefined) return true;
    // First the record that has them waiting, so that none is lost between the two.
    await saver.save();
    await forgetGivenUp(records, id, again.items);
    return true;
  }

  /** @returns whether there was anything to read */
  async function takeNew(): Promise<boolean> {
    if (!behind) return false;
    // More may come while this is read.
    behind = false;
    try {
      const found = await readNew(deps, current, progress);
      ({ sources } = found);
      behind ||= found.more;
      take(found);
    } catch (error) {
      behind = true;
      throw error;
    }
    return true;
  }

  async function read(): Promise<void> {
    while (mayWork() && hasRoom()) {
      newIsNext = !newIsNext;
      const [first, second] = newIsNext ? [takeNew, takeAgain] : [takeAgain, takeNew];
      if (!(await first()) && !(await second())) return;
    }
  }

  /** @throws nothing: what can't be read for one endpoint holds up no other */
  async function readOrWait(): Promise<void> {
    try {
      await read();
      movedAt = performance.now();
      if (unreadable) onTrouble(undefined);
      unreadable = false;
    } catch (error) {
      if (!(error instanceof UnavailableError)) return fail(error);
      onTrouble(error);
      unreadable = true;
      behind = true;
      await pause(READ_AGAIN_MS, closing.signal);
    }
  }

  function readOn(): void {
    if (!mayWork() || reading !== undefined) return;
    reading = readOrWait().finally(() => {
      reading = undefined;
      if (behind && hasRoom()) readOn();
    });
  }

  /** A retry, or the end of the pause that the receiver asked for. */
  function startLater(now: number): void {
    clearTimeout(timer);
    const due = backlog.nextDueAt(progress.pausedUntil);
    if (due !== undefined) timer = setTimeout(startAttempts, Math.min(LOOK_MS, Math.max(0, due - now)));
  }

  function startAttempts(): void {
    const now = nowMs();
    while (mayWork() && underWay < (isFailing(progress) ? 1 : AT_ONCE)) {
      const item = backlog.take(now, progress.pausedUntil);
      if (item === undefined) return startLater(now);
      underWay += 1;
      void attemptInTurn(item).finally(() => {
        underWay -= 1;
        if (underWay === 0) for (const one of idle.splice(0)) one();
        startAttempts();
        if (behind || progress.recovering.length > 0 || progress.recoveringGivenUp !== undefined) readOn();
      });
    }
  }

  async function attemptInTurn(item: Waiting): Promise<void> {
    await deps.lease.renewed();
    queued += 1;
    const free = await (slow || isFailing(progress) ? slots.aside : slots.main).take();
    queued -= 1;
    movedAt = performance.now();
    const late = setTimeout(() => {
      slow = true;
      free();
    }, SLOW_MS);
    try {
      const outcome = mayWork()
        ? await attemptOnce(deps, current, item, { mayStart: mayWork, cut: cutting.signal })
        : 'stopped';
      if (outcome === 'stopped' || outcome === 'inactive') backlog.putBack(item);
      if (outcome === 'stopped') return;
      if (outcome === 'inactive') await disable('inactive');
      else if (outcome === 'lost' || outcome === 'unwanted') leaveOut(item, outcome);
      else await settle(item, outcome);
    } catch (error) {
      if (!(error instanceof UnavailableError)) return fail(error);
      onTrouble(error);
      backlog.putBack(item, { ...scheduled(item), nextAt: nowMs() + UNREADABLE_MS });
    } finally {
      clearTimeout(late);
      free();
      movedAt = performance.now();
    }
  }

  function isStalled(): boolean {
    const due = backlog.nextDueAt(progress.pausedUntil);
    const isDue = underWay > 0 || (due !== undefined && due <= nowMs()) || (behind && hasRoom());
    const now = performance.now();
    dueSince = isDue ? (dueSince ?? now) : undefined;
    return dueSince !== undefined && queued === 0 && now - Math.max(dueSince, movedAt) >= deps.stalledMs;
  }

  function leaveOut(item: Waiting, why: 'lost' | 'unwanted'): void {
    if (why === 'lost')
      logger.warn({ endpoint: id, position: item.position }, 'webhooks: an event is in the feed no more, and left out');
    backlog.done(item);
    saver.changed();
  }

  async function settle(item: Waiting, attempted: Attempted): Promise<void> {
    slow = attempted.durationMs > SLOW_MS;
    const { outcome, at, url } = attempted;
    // It has another address by now, which has failed nothing.
    if (url !== current.url && !isDelivered(outcome)) return backlog.putBack(item, { ...item, nextAt: 0 });
    const now = nowMs();
    const moment = { now, startedAt: Date.parse(at), lastAnswerAt: reach.lastAnswerAt(), chance: deps.random() };
    const verdict = verdictOf(outcome, item, progress, schedule, moment);
    if (verdict.givenUp) await giveUp(records, id, item, nowMs());
    const { attempts } = progress;
    apply(item, verdict);
    if ('status' in outcome) reach.answered(now);
    if (verdict.ours) reach.onAnswer(startAll);
    // They are for people to look at, and hold up no delivery.
    const nextAt = verdict.disable === undefined ? verdict.again?.nextAt : undefined;
    const noted = noteAttempt(records, id, { ...attempted, item, nextAt, ours: verdict.ours }, attempts)
      .catch(onTrouble)
      .finally(() => notes.delete(noted));
    notes.add(noted);
    if (verdict.disable !== undefined) await disable(verdict.disable);
  }

  function startAll(): void {
    backlog.allDue();
    saver.changed();
    startAttempts();
  }

  function apply(item: Waiting, { delivered, health, again, givenUp, ours }: Verdict): void {
    if (again === undefined) backlog.done(item);
    else backlog.putBack(item, again);
    // It is back: what failed with it need not wait any longer.
    if (delivered && isFailing(progress)) backlog.allDue();
    const { failures: _, failingSince: __, failedAt: ___, pausedUntil: ____, attempts, ...rest } = progress;
    const { delivered: good, failed: bad } = attempts;
    progress = {
      ...rest,
      ...health,
      attempts: delivered ? { delivered: good + 1, failed: bad } : { delivered: good, failed: bad + 1 },
    };
    saver.changed();
    tally.count(givenUp ? 'given_up' : delivered ? 'delivered' : ours ? 'unreached' : 'failed');
  }

  /** Others of its attempts may end with the same. A failure starts all anew, and the next attempt ends here again. */
  async function disable(cause: Exclude<DisabledBy, 'owner'>): Promise<void> {
    if (closing.signal.aborted) return;
    closing.abort();
    try {
      await deps.disable(id, cause);
    } catch (error) {
      return fail(error);
    }
    tally.countDisabled(cause);
    logger.warn({ endpoint: id, cause }, 'webhooks: an endpoint is disabled');
  }

  if (version === 0) saver.changed();
  setUrl();
  setTypes();
  startAttempts();
  readOn();

  function wake(): void {
    behind = true;
    if (hasRoom()) readOn();
  }

  /** What failed at another address is due at this one. */
  function setUrl(): void {
    const { url } = current;
    if ((progress.url ?? url) !== url) {
      progress = startedAfresh(progress, url);
      startAll();
    } else if (progress.url === undefined) progress = { ...progress, url };
  }

  /** What it does not get any more holds back nothing. */
  function setTypes(): void {
    const { size } = backlog;
    backlog.keep((item) => item.ping !== undefined || isSubscribed(current, item));
    if (backlog.size === size) return;
    saver.changed();
    startAttempts();
  }

  return {
    wake,
    update(now) {
      const before = current;
      current = now;
      setUrl();
      if (String(now.types) === String(before.types)) return;
      setTypes();
      sources = undefined;
      wake();
    },
    take(items, change) {
      take({ items, change });
      readOn();
    },
    progress: present,
    isOf: (named) => sources === undefined || sources.some((name) => named.has(name)),
    status() {
      const failing = isFailing(progress) || (progress.pausedUntil ?? 0) > nowMs();
      const state = isStalled() ? 'stalled' : failing ? 'failing' : 'working';
      return { state, waiting: backlog.size, oldest: backlog.oldest() };
    },
    async close() {
      closing.abort();
      clearTimeout(timer);
      const ended = async (): Promise<void> => {
        if (underWay > 0) await new Promise<void>((resolve) => idle.push(resolve));
      };
      await within(ended(), deps.finishMs, () => cutting.abort());
      await ended();
      await reading;
      await Promise.all(notes);
      await saver.close();
    },
  };
}
