/**
 * One subscription for all followers of a store, with a window of its last events: the server sends each event once per
 * process.
 */
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { TooSlowError } from './failures.js';
import { ALL_OURS, matcher } from './filters.js';
import { opened } from './opened.js';
import type { Pool } from './pool.js';
import { commitOf } from './records.js';
import { subscribe } from './requests.js';
import { type Subscription, subscribed, type Taken } from './subscription.js';
import { openWaking, type Waking } from './waking.js';

/**
 * Limits of the window, in addition to the last batch. A follower further behind reads the log with its own
 * subscription.
 */
const WINDOW = { events: 4_096, bytes: 16_000_000 };
const AT_ONCE = 1_000;
/** Milliseconds after which a follower is notified of events that its filter leaves out: each waking costs. */
const LEFT_OUT_MS = 100;
/** Batches that a follower gets without delay before its next ones are gathered: as many as a few requests cause. */
const BURST = 5;
const URGENT_MS = 1_000;

type Read = Omit<Taken, 'bytes'>;

interface TailReader extends Pick<Subscription, 'end'> {
  /** As `Subscription.take`. */
  take(most: number, waitMs: number): Promise<Read | undefined>;
  /** Ends the subscription for all its readers, since it is silent while the log grows; its connection is replaced. */
  giveUp(): void;
}

export interface LiveTail {
  /** For a second, no reader gathers the events up to `position`. */
  hurry(position: Position): void;
  /**
   * @param end the log's end, as it was read a moment ago
   * @param gatherMs as in `ReadOptions`
   * @throws TooSlowError where the window starts later; else the subscription's failure (see `failureOf`)
   */
  read(
    after: Position | undefined,
    end: Position | undefined,
    matches: (stream: string, type: string) => boolean,
    gatherMs: number,
  ): Promise<TailReader>;
}

interface Window {
  readonly subscription: Subscription;
  readonly release: () => void;
  readonly waking: Waking;
  readonly batches: Taken[];
  /** Batches dropped from the window. */
  gone: number;
  /** Position after which the window, or the next batch, starts; `''`: the log's start. */
  base: Position;
  events: number;
  bytes: number;
  caughtUp: boolean;
  failure: Error | undefined;
  readers: number;
  /** How often every reader was notified, whatever its filter. */
  notices: number;
  readonly urgent: Urgent;
  notifyLater: NodeJS.Timeout | undefined;
}

/** The position that callers wait for. */
interface Urgent {
  position: Position;
  /** When the urgency ends, in ms of `performance.now`: the log may never reach the position. */
  until: number;
}

interface Source extends Pick<Pool, 'lease'> {
  readonly timeoutMs: number;
  readonly closed: AbortSignal;
}

export function openLiveTail(source: Source): LiveTail {
  let current: Promise<Window> | undefined;
  const urgent: Urgent = { position: '', until: 0 };

  return {
    hurry(position) {
      const now = performance.now();
      // Nearer positions do not extend the time of a far one, which the log may never reach.
      if (position <= urgent.position && urgent.until >= now) return;
      urgent.position = position;
      urgent.until = now + URGENT_MS;
      current?.then(
        ({ waking }) => waking.wake(),
        () => undefined,
      );
    },
    async read(after, end, matches, gatherMs) {
      for (;;) {
        // The log may have been restored to an earlier end. A window that starts beyond it would leave out events for
        // all other followers.
        const opening = (current ??= openWindow(source, urgent, (after ?? '') < (end ?? '') ? after : end));
        const leave = (): void => {
          if (current === opening) current = undefined;
        };
        const window = await opening.catch((error: unknown) => {
          leave();
          throw error;
        });
        if (window.failure !== undefined) leave();
        else if ((after ?? '') < window.base) throw new TooSlowError('the live end of the log has moved on');
        else return readerOf(window, after, matches, gatherMs, leave);
      }
    },
  };
}

async function openWindow(
  { lease, timeoutMs, closed }: Source,
  urgent: Urgent,
  after: Position | undefined,
): Promise<Window> {
  const { connection, release } = lease();
  const request = subscribe(after === undefined ? undefined : commitOf(after), ALL_OURS);
  const opening = subscribed(connection, request, matcher({}), AT_ONCE);
  const subscription = await opened(opening, timeoutMs, closed).catch((error: unknown) => {
    release();
    throw error;
  });
  const window: Window = {
    subscription,
    release,
    waking: openWaking(),
    batches: [],
    gone: 0,
    base: after ?? '',
    events: 0,
    bytes: 0,
    caughtUp: false,
    failure: undefined,
    readers: 0,
    notices: 0,
    urgent,
    notifyLater: undefined,
  };
  void fill(window, timeoutMs);
  return window;
}

async function fill(window: Window, timeoutMs: number): Promise<void> {
  try {
    while (window.failure === undefined) {
      const taken = await window.subscription.take(AT_ONCE, timeoutMs);
      if (taken === undefined) {
        // At the log's end no event need come.
        if (!window.caughtUp) window.subscription.silent(timeoutMs);
        continue;
      }
      window.batches.push(taken);
      window.events += taken.events.length;
      window.bytes += taken.bytes;
      window.caughtUp = taken.caughtUp;
      trim(window);
      window.waking.wake();
      window.notifyLater ??= setTimeout(notifyAll, LEFT_OUT_MS, window);
    }
  } catch (error) {
    // An event that is no JSON may fail only followers whose filter matches it. After a TooSlowError each follower
    // reads on with its own filter.
    const failure =
      error instanceof UnavailableError ? error : new TooSlowError('the live end can not be read', { cause: error });
    fail(window, failure);
  }
}

function notifyAll(window: Window): void {
  window.notifyLater = undefined;
  window.notices += 1;
  window.waking.wake();
}

function trim(window: Window): void {
  const { batches } = window;
  const full = (): boolean =>
    batches.length > WINDOW.events || window.events > WINDOW.events || window.bytes > WINDOW.bytes;
  while (batches.length > 1 && full()) {
    const first = batches.shift()!;
    window.gone += 1;
    window.events -= first.events.length;
    window.bytes -= first.bytes;
    window.base = first.position ?? window.base;
  }
}

/** Ends the window's subscription with a failure; readers may still read the window. */
function fail(window: Window, failure: Error): void {
  if (window.failure !== undefined) return;
  window.failure = failure;
  clearTimeout(window.notifyLater);
  window.subscription.end();
  window.release();
  window.waking.wake();
}

/** Lets `BURST` batches through as they come, then one every `gatherMs`: a token bucket. */
function paced(gatherMs: number): { rest(): number; took(): void } {
  let emptyAt = Number.NEGATIVE_INFINITY;
  return {
    rest: () => emptyAt - (BURST - 1) * gatherMs - performance.now(),
    took() {
      const now = performance.now();
      // The bucket is at most empty: hurried batches leave no debt that later batches would wait for.
      emptyAt = Math.min(Math.max(emptyAt, now) + gatherMs, now + BURST * gatherMs);
    },
  };
}

function readerOf(
  window: Window,
  after: Position | undefined,
  matches: (stream: string, type: string) => boolean,
  gatherMs: number,
  leave: () => void,
): TailReader {
  /** Index of the next batch, counted from the subscription's start, and of the next event in it. */
  const next = { batch: window.gone, event: 0 };
  /** As `next`: how far the window was scanned for events that match. */
  const scanned = { batch: next.batch, event: 0 };
  let found = 0;
  let notices = window.notices;
  const pace = paced(gatherMs);
  let taken: Position = after ?? '';
  let ended = false;
  let live = false;
  window.readers += 1;

  const last = (): number => window.gone + window.batches.length;
  const waits = (): boolean => next.batch < last();
  // Older events are from before this follower joined.
  const isMatching = ({ position, stream, type }: RecordedEvent): boolean =>
    position > (after ?? '') && matches(stream, type);

  const isUrgent = (): boolean => taken < window.urgent.position && performance.now() < window.urgent.until;

  /** Number of waiting events that match. */
  function matching(): number {
    for (; scanned.batch < last(); scanned.batch += 1, scanned.event = 0) {
      const { events = [] } = window.batches[scanned.batch - window.gone] ?? {};
      for (; scanned.event < events.length; scanned.event += 1) if (isMatching(events[scanned.event]!)) found += 1;
    }
    return found;
  }

  function collect(limit: number): Read {
    const events = [];
    let position: Position | undefined;
    for (; waits() && events.length < limit; next.batch += 1, next.event = 0) {
      const batch = window.batches[next.batch - window.gone]!;
      for (; next.event < batch.events.length && events.length < limit; next.event += 1) {
        const event = batch.events[next.event]!;
        position = event.position;
        if (isMatching(event)) events.push(event);
      }
      if (next.event < batch.events.length) break;
      position = batch.position ?? position;
    }
    live = window.caughtUp && !waits();
    found -= events.length;
    notices = window.notices;
    taken = position ?? taken;
    return { events, position, caughtUp: live };
  }

  return {
    async take(limit, waitMs) {
      const over = (): boolean => ended || window.failure !== undefined;
      const isReady = (): boolean =>
        (waits() && (matching() > 0 || !live || notices !== window.notices || isUrgent())) ||
        (window.caughtUp && !live);
      await window.waking.until(() => over() || isReady(), waitMs);
      const rest = live && !over() && waits() ? pace.rest() : 0;
      if (rest > 0) await window.waking.until(() => over() || isUrgent() || matching() >= limit, rest);
      if (ended) return undefined;
      if (next.batch < window.gone) throw new TooSlowError('the log grows faster than it is followed');
      if (isReady()) {
        pace.took();
        return collect(limit);
      }
      if (window.failure !== undefined) throw window.failure;
      return undefined;
    },
    giveUp() {
      leave();
      // The subscription's node may be a deposed leader, which sends nothing any more, and would answer the next
      // subscription.
      if (window.failure === undefined) window.subscription.giveUp();
      fail(window, new UnavailableError('EventStoreDB sends nothing of a log that has grown'));
    },
    end() {
      if (ended) return;
      ended = true;
      window.readers -= 1;
      if (window.readers === 0) {
        leave();
        fail(window, new UnavailableError('no follower reads the log any more'));
      }
      window.waking.wake();
    },
  };
}
