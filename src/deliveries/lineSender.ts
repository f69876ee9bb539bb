/** Sends the waiting events to one endpoint; those of one gift in order. */
import { within } from '../lib/async/within.js';
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import { after, endTimer, ticks, type Timer, randomUUID } from '../lib/world.js';
import { UnavailableError } from '../ports/unavailable.js';
import { attemptOnce, type Attempted } from './attempt.js';
import { scheduled, type Waiting } from './backlog.js';
import { giveUp } from './abandoned.js';
import { type LineState, mayWork, nowMs } from './lineState.js';
import { failedElsewhere, isDelivered, isFailing, type Verdict, verdictOf } from './verdict.js';
import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../messages/webhookAttempts.js';
import type { Records } from '../ports/readStore.js';
import type { Progress } from './progress.js';

/** Concurrent attempts to one endpoint. */
const AT_ONCE = 8;
/** Milliseconds after which an attempt gives its slot to others, and its endpoint counts as slow. */
const SLOW_MS = 2_000;
/** The longest timer for a due retry, ms: timers do not follow the service's clock, which a sandbox moves. */
const POLL_MS = 1_000;
/** Milliseconds before another attempt at a message that can't be made now, as while a document is repaired. */
const UNREADABLE_MS = 30_000;

interface LineSender {
  /** Starts as many attempts as may run concurrently. */
  start(): void;
  /** `due`: an event is due or being sent; `queued`: an attempt waits for a slot shared with other endpoints. */
  state(): 'idle' | 'due' | 'queued';
  /** Waits `finishMs` for attempts that are in progress, then ends them. */
  close(): Promise<void>;
}

/** @param onFree called whenever an attempt has ended */
export function lineSender(line: LineState, onFree: () => void): LineSender {
  const { deps, backlog } = line;
  const cutting = new AbortController();
  const idle: (() => void)[] = [];
  /** Writes of attempt records in progress. */
  const notes = new Set<Promise<void>>();
  let underWay = 0;
  let slow = false;
  let timer: Timer | undefined;
  /** Number of attempts that wait for a slot shared by all endpoints. */
  let queued = 0;

  /** Sets a timer for the next retry, or for the end of the pause that the receiver requested. */
  function startLater(now: number): void {
    endTimer(timer);
    const due = backlog.nextDueAt(line.progress.pausedUntil);
    if (due !== undefined) timer = after(Math.min(POLL_MS, Math.max(0, due - now)), start);
  }

  function start(): void {
    const now = nowMs(line);
    while (mayWork(line) && underWay < (isFailing(line.progress) ? 1 : AT_ONCE)) {
      const item = backlog.take(now, line.progress.pausedUntil);
      if (item === undefined) return startLater(now);
      underWay += 1;
      void attemptInTurn(item).finally(() => {
        underWay -= 1;
        if (underWay === 0) for (const one of idle.splice(0)) one();
        start();
        onFree();
      });
    }
  }

  async function attemptInTurn(item: Waiting): Promise<void> {
    await deps.lease.renewed();
    queued += 1;
    const free = await (slow || isFailing(line.progress) ? deps.slots.aside : deps.slots.main).take();
    queued -= 1;
    line.movedAt = ticks();
    const late = after(SLOW_MS, () => {
      slow = true;
      free();
    });
    try {
      await attempt(item);
      line.report(undefined);
    } catch (error) {
      if (!(error instanceof UnavailableError)) return deps.fail(error);
      line.report(error);
      backlog.putBack(item, { ...scheduled(item), nextAt: nowMs(line) + UNREADABLE_MS });
    } finally {
      endTimer(late);
      free();
      line.movedAt = ticks();
    }
  }

  /** @throws UnavailableError */
  async function attempt(item: Waiting): Promise<void> {
    const mayStart = (): boolean => mayWork(line);
    const outcome = mayStart()
      ? await attemptOnce(deps, line.endpoint, item, { mayStart, cut: cutting.signal })
      : 'stopped';
    if (outcome === 'stopped' || outcome === 'inactive') backlog.putBack(item);
    if (outcome === 'stopped') return;
    if (outcome === 'inactive') await disable(line, line.endpoint.url, 'inactive');
    else if (outcome === 'lost' || outcome === 'unwanted') leaveOut(line, item, outcome);
    else await settle(item, outcome);
  }

  async function settle(item: Waiting, attempted: Attempted): Promise<void> {
    slow = attempted.durationMs > SLOW_MS;
    const isMoved = attempted.url !== line.endpoint.url && !isDelivered(attempted.outcome);
    const verdict = isMoved ? failedElsewhere(item, line.progress, nowMs(line)) : await judge(line, item, attempted);
    const { attempts } = line.progress;
    apply(line, item, verdict);
    if (verdict.ours) deps.reach.onAnswer(startAll);
    // Attempt records are only for people, so deliveries do not wait for their write.
    const nextAt = verdict.disable === undefined ? verdict.again?.nextAt : undefined;
    const noted = noteAttempt(deps.records, line.id, { ...attempted, item, nextAt, ours: verdict.ours }, attempts)
      .catch(line.report)
      .finally(() => notes.delete(noted));
    notes.add(noted);
    if (verdict.disable !== undefined) await disable(line, attempted.url, verdict.disable);
  }

  function startAll(): void {
    backlog.allDue();
    line.saver.changed();
    start();
  }

  return {
    start,
    state() {
      const due = backlog.nextDueAt(line.progress.pausedUntil);
      if (queued > 0) return 'queued';
      return underWay > 0 || (due !== undefined && due <= nowMs(line)) ? 'due' : 'idle';
    },
    async close() {
      endTimer(timer);
      const ended = async (): Promise<void> => {
        if (underWay > 0) await new Promise<void>((resolve) => idle.push(resolve));
      };
      await within(ended(), deps.finishMs, () => cutting.abort());
      await ended();
      await Promise.all(notes);
    },
  };
}

/** @throws UnavailableError where an abandoned event could not be stored */
async function judge(line: LineState, item: Waiting, { outcome, at }: Attempted): Promise<Verdict> {
  const { records, reach, schedule, random } = line.deps;
  const now = nowMs(line);
  const moment = { now, startedAt: Date.parse(at), lastAnswerAt: reach.lastAnswerAt(), chance: random() };
  const verdict = verdictOf(outcome, item, line.progress, schedule, moment);
  if ('status' in outcome) reach.answered(now);
  if (verdict.abandoned) await giveUp(records, line.id, item, nowMs(line));
  return verdict;
}

function apply(line: LineState, item: Waiting, { delivered, health, again, abandoned, ours }: Verdict): void {
  const { backlog, progress, deps } = line;
  if (again === undefined) backlog.done(item);
  else backlog.putBack(item, again);
  // The endpoint answers again, so its failed events need not wait any longer.
  if (delivered && isFailing(progress)) backlog.allDue();
  const { failures: _, failingSince: __, failedAt: ___, pausedUntil: ____, attempts, ...rest } = progress;
  const { delivered: good, failed: bad } = attempts;
  line.progress = {
    ...rest,
    ...health,
    attempts: delivered ? { delivered: good + 1, failed: bad } : { delivered: good, failed: bad + 1 },
  };
  line.saver.changed();
  deps.tally.count(abandoned ? 'given_up' : delivered ? 'delivered' : ours ? 'unreached' : 'failed');
}

function leaveOut({ deps, id, backlog, saver }: LineState, item: Waiting, why: 'lost' | 'unwanted'): void {
  if (why === 'lost')
    deps.logger.warn(
      { endpoint: id, position: item.position },
      'webhooks: an event is in the feed no more, and left out',
    );
  backlog.done(item);
  saver.changed();
}

/**
 * Disables the endpoint once, though several of its attempts may request it. A failure restarts all deliveries, and the
 * endpoint's next attempt comes here again.
 */
async function disable(
  { closing, deps, id }: LineState,
  url: string,
  cause: Exclude<DisabledBy, 'owner'>,
): Promise<void> {
  if (closing.signal.aborted) return;
  closing.abort();
  try {
    await deps.disable({ id, url }, cause);
  } catch (error) {
    return deps.fail(error);
  }
  deps.tally.countDisabled(cause);
  deps.logger.warn({ endpoint: id, cause }, 'webhooks: an endpoint is disabled');
}

const RETAINED_MS = 30 * 24 * 3_600_000;
/** Attempts stored of each kind, so that a busy endpoint's successes do not displace its failures. */
const MOST_OF_KIND = MOST_ATTEMPTS / 2;

interface NotedAttempt extends Attempted {
  readonly item: Waiting;
  /** Time of the next attempt, milliseconds since the epoch; absent: there is none. */
  readonly nextAt?: number | undefined;
  readonly ours: Verdict['ours'];
}

/** Note for the endpoint's owner on a failure that is probably our own outage. */
const OURS = 'no endpoint has answered meanwhile, so this does not count against yours';

/**
 * Stores an attempt for the owner of the endpoint, in place of the oldest of its kind.
 * @param before counts of earlier attempts, of both kinds
 * @throws UnavailableError
 */
async function noteAttempt(
  records: Records,
  endpointId: string,
  attempt: NotedAttempt,
  before: Progress['attempts'],
): Promise<void> {
  const suffix = isDelivered(attempt.outcome)
    ? `d${before.delivered % MOST_OF_KIND}`
    : `f${before.failed % MOST_OF_KIND}`;
  await records.put(attemptRecords(endpointId) + suffix, shown(attempt), {
    expiresAt: Date.parse(attempt.at) + RETAINED_MS,
  });
}

function shown({ message, at, outcome, durationMs, item, nextAt, ours }: NotedAttempt): WebhookAttempt {
  const answer =
    'status' in outcome
      ? { status: outcome.status, response: outcome.response }
      : { error: ours ? `${outcome.error}; ${OURS}` : outcome.error, response: '' };
  return {
    id: randomUUID(),
    event_id: message.id,
    type: message.type,
    at,
    duration_ms: durationMs,
    ...answer,
    ...(item.ping === undefined ? { position: item.position, about: item.key } : {}),
    ...(nextAt === undefined ? {} : { next_at: new Date(nextAt).toISOString() }),
  };
}
