/**
 * The offset of a sandbox's clock ahead of the system's (docs/api/sandbox.md#the-clock). All processes and threads
 * follow one record of it; the offset only grows.
 */
import { pause } from '../../lib/async/pause.js';
import { clockMs, clockOffset, moveClock } from '../../lib/clock.js';
import { systemMs } from '../../lib/world.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Records, StoredRecord } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { FollowerRun } from '../supervision/followers.js';
import type { Bus } from '../../ports/bus.js';

const KEY = 'sandbox/clock';
const POLL_MS = 200;
/** Attempts at a compare-and-set; more lost ones in a row are a fault of the store. */
const MAX_TURNS = 100;

interface Ahead {
  readonly offset_ms: number;
}

/**
 * Sets this process's clock from the record. A lost record is restored from the log, so that time does not go back
 * behind its events.
 * @throws UnavailableError
 */
export async function openSharedClock(records: Records, events: EventStore): Promise<void> {
  if ((await records.get<Ahead>(KEY)) === undefined)
    await records.put(KEY, { offset_ms: await aheadInLog(events) } satisfies Ahead, { expected: 0 });
  await catchUpWithClock(records);
}

/**
 * Sets the clock of a command's process, without a change of the record.
 * @param records `undefined`: there is no read store, and the log says how far the clock is ahead
 * @throws UnavailableError
 */
export async function joinSharedClock(records: Pick<Records, 'get'> | undefined, events: EventStore): Promise<void> {
  const stored = await records?.get<Ahead>(KEY);
  moveClock(stored?.value.offset_ms ?? (await aheadInLog(events)));
}

/** Follows the record until `signal` is aborted. While the records are unavailable, the clock keeps its offset. */
export function followSharedClock(
  records: Pick<Records, 'get'>,
): (run: Pick<FollowerRun, 'signal' | 'well' | 'onTrouble'>) => Promise<void> {
  return async ({ signal, well, onTrouble }) => {
    for (; !signal.aborted; await pause(POLL_MS, signal)) {
      try {
        await catchUpWithClock(records);
        well();
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        onTrouble(error);
      }
    }
  };
}

/**
 * Moves the clock of this process, and soon those of the others.
 * @param next computes the new offset from the present one, in milliseconds. It may throw; an offset that is not ahead
 * moves no clock.
 * @throws UnavailableError
 */
export async function moveSharedClock(records: Records, next: (offsetMs: number) => number): Promise<void> {
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const stored = await records.get<Ahead>(KEY);
    // If the record was lost, this process still knows the offset.
    const offset_ms = next(Math.max(stored?.value.offset_ms ?? 0, clockOffset()));
    if ((await records.put(KEY, { offset_ms } satisfies Ahead, { expected: stored?.version ?? 0 })) === undefined)
      continue;
    moveClock(offset_ms);
    return;
  }
  throw new UnavailableError("the sandbox's clock could not be stored");
}

/** Moves this process's clock to the offset in the record. @throws UnavailableError */
async function catchUpWithClock(records: Pick<Records, 'get'>): Promise<void> {
  moveClock((await records.get<Ahead>(KEY))?.value.offset_ms ?? 0);
}

/** How far the latest event is ahead of the system's clock, milliseconds; 0: it is not. */
async function aheadInLog(events: EventStore): Promise<number> {
  const now = systemMs();
  const from = new Date(now).toISOString();
  const part = events.timeBounds === undefined ? { after: undefined } : await events.timeBounds({ from });
  if (part === undefined) return 0;
  let latest = from;
  for await (const batch of events.readAll(part.after)) for (const { at } of batch.events) if (at > latest) latest = at;
  return Date.parse(latest) - now;
}

/**
 * A bus whose requests are handled at the sender's time or later. A process that has followed the sandbox's clock may
 * send a request to one that has not. That one would answer by the earlier time, for example "away for another hour".
 */
export function busByClock(bus: Pick<Bus, 'serve'>, records: Pick<Records, 'get'>): Pick<Bus, 'serve'> {
  return {
    serve: async <P>(subject: string, queue: string, handler: (payload: P) => Promise<object>) =>
      bus.serve<P>(subject, queue, async (payload) => {
        await catchUpWithClock(records);
        return handler(payload);
      }),
  };
}

/**
 * Records that expire by the sandbox's clock: sessions, stored answers, counters. The store itself expires them by the
 * system's clock, which is never ahead of the sandbox's, and so never too early.
 */
export function recordsByClock(records: Records): Records {
  const alive = ({ expiresAt }: StoredRecord): boolean => expiresAt === undefined || expiresAt > clockMs();
  return {
    async get<V>(key: string) {
      const found = await records.get<V>(key);
      return found !== undefined && alive(found) ? found : undefined;
    },
    async put(key, value, options) {
      const put = await records.put(key, value, options);
      if (put !== undefined || options?.expected !== 0) return put;
      const found = await records.get(key);
      if (found === undefined || alive(found)) return undefined;
      await records.delete(key, found.version);
      return records.put(key, value, options);
    },
    delete: async (key, expected) => records.delete(key, expected),
    async list<V>(prefix: string, limit?: number, after?: string) {
      const found: StoredRecord<V>[] = [];
      for (let last = after; ;) {
        const page = await records.list<V>(prefix, limit, last);
        found.push(...page.filter(alive));
        last = page.at(-1)?.key;
        if (limit === undefined || page.length < limit || last === undefined) return found;
        if (found.length >= limit) return found.slice(0, limit);
      }
    },
  };
}
