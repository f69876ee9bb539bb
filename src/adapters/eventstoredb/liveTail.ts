/**
 * One subscription for all followers of a store, with a window of its last events: the server sends each event once per
 * process.
 */
import type { Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { TooSlowError } from './failures.js';
import { ALL_OURS, matcher } from './filters.js';
import type { Pool } from './pool.js';
import { commitOf } from './records.js';
import { subscribe } from './requests.js';
import { type Subscription, subscribed, type Taken } from './subscription.js';
import { openWaking, type Waking } from './waking.js';

/** In addition to the last batch. A follower further behind reads the log with its own subscription. */
const WINDOW = { events: 4_096, bytes: 16_000_000 };
const AT_ONCE = 1_000;

type Read = Omit<Taken, 'bytes'>;

export interface TailReader extends Pick<Subscription, 'end'> {
  /** As `Subscription.take`. */
  take(most: number, waitMs: number): Promise<Read | undefined>;
  /** Ends the subscription for all its readers, since it is silent while the log grows. */
  giveUp(): void;
}

export interface LiveTail {
  /**
   * @param end the log's, as it was read a moment ago
   * @throws TooSlowError where the window starts later; else the subscription's failure (see `failureOf`)
   */
  read(
    after: Position | undefined,
    end: Position | undefined,
    matches: (stream: string, type: string) => boolean,
  ): Promise<TailReader>;
}

interface Window {
  readonly subscription: Subscription;
  readonly release: () => void;
  readonly waking: Waking;
  readonly batches: Taken[];
  /** Batches dropped from the window. */
  gone: number;
  /** The window, or the next batch, starts after it; `''`: the log's start. */
  base: Position;
  events: number;
  bytes: number;
  caughtUp: boolean;
  failure: Error | undefined;
  readers: number;
}

interface Source extends Pick<Pool, 'lease'> {
  readonly timeoutMs: number;
}

export function openLiveTail(source: Source): LiveTail {
  let current: Promise<Window> | undefined;

  return {
    async read(after, end, matches) {
      for (;;) {
        // A follower from beyond the log's end, which was put back, would leave out for all others what comes before.
        const opening = (current ??= openWindow(source, (after ?? '') < (end ?? '') ? after : end));
        const leave = (): void => {
          if (current === opening) current = undefined;
        };
        const window = await opening.catch((error: unknown) => {
          leave();
          throw error;
        });
        if (window.failure !== undefined) leave();
        else if ((after ?? '') < window.base) throw new TooSlowError('the live end of the log has moved on');
        else return readerOf(window, after, matches, leave);
      }
    },
  };
}

async function openWindow({ lease, timeoutMs }: Source, after: Position | undefined): Promise<Window> {
  const { connection, release } = lease();
  const request = subscribe(after === undefined ? undefined : commitOf(after), ALL_OURS);
  const subscription = await subscribed(connection, request, matcher({}), AT_ONCE).catch((error: unknown) => {
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
  };
  void fill(window, timeoutMs);
  return window;
}

async function fill(window: Window, timeoutMs: number): Promise<void> {
  try {
    while (window.failure === undefined) {
      const taken = await window.subscription.take(AT_ONCE, timeoutMs);
      if (taken === undefined) continue;
      window.batches.push(taken);
      window.events += taken.events.length;
      window.bytes += taken.bytes;
      window.caughtUp = taken.caughtUp;
      trim(window);
      window.waking.wake();
    }
  } catch (error) {
    // Only a follower whose filter matches an event that is no JSON may fail by it. As too slow, each reads on with its
    // own filter.
    const failure =
      error instanceof UnavailableError ? error : new TooSlowError('the live end can not be read', { cause: error });
    fail(window, failure);
  }
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

/** Readers may still read the window. */
function fail(window: Window, failure: Error): void {
  if (window.failure !== undefined) return;
  window.failure = failure;
  window.subscription.end();
  window.release();
  window.waking.wake();
}

function readerOf(
  window: Window,
  after: Position | undefined,
  matches: (stream: string, type: string) => boolean,
  leave: () => void,
): TailReader {
  /** The next batch, counted from the subscription's start, and the next of its events. */
  const next = { batch: window.gone, event: 0 };
  let ended = false;
  let live = false;
  window.readers += 1;

  const waits = (): boolean => next.batch < window.gone + window.batches.length;

  function collect(limit: number): Read {
    const events = [];
    let position: Position | undefined;
    for (; waits() && events.length < limit; next.batch += 1, next.event = 0) {
      const batch = window.batches[next.batch - window.gone]!;
      for (; next.event < batch.events.length && events.length < limit; next.event += 1) {
        const event = batch.events[next.event]!;
        position = event.position;
        // Older events are from before this follower joined.
        if (event.position > (after ?? '') && matches(event.stream, event.type)) events.push(event);
      }
      if (next.event < batch.events.length) break;
      position = batch.position ?? position;
    }
    live = window.caughtUp && !waits();
    return { events, position, caughtUp: live };
  }

  return {
    async take(limit, waitMs) {
      const news = (): boolean => waits() || (window.caughtUp && !live);
      await window.waking.until(() => ended || window.failure !== undefined || news(), waitMs);
      if (ended) return undefined;
      if (next.batch < window.gone) throw new TooSlowError('the log grows faster than it is followed');
      if (news()) return collect(limit);
      if (window.failure !== undefined) throw window.failure;
      return undefined;
    },
    giveUp() {
      leave();
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
