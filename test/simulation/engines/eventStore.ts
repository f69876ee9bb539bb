/** A process's handle of a simulated event store. It keeps the port's guarantees as an EventStoreDB's client does. */
import { isPosition } from '../../../src/adapters/embedded/eventStore/log.js';
import { after as inMs, endTimer } from '../../../src/lib/world.js';
import {
  type EventBatch,
  type EventFilter,
  type EventStore,
  EventTooLargeError,
  MAX_APPEND_BYTES,
  type NewEvent,
  type Position,
  type ReadOptions,
} from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Link } from '../world/link.js';
import { type EncodedEvent, type EventLog, recordedOf, type Slice } from './eventLog.js';

const DEFAULT_BATCH = 1_000;
/** Virtual ms after which a follower that hears nothing compares with the log's end. */
const DEAF_MS = 2_000;
const RETRY_MS = 250;

/** What the methods of a handle share. */
interface Handle {
  readonly log: EventLog;
  readonly link: Link;
  readonly closing: AbortController;
  /** Appends that were accepted and are not answered. */
  readonly appends: Set<Promise<unknown>>;
}

/** Opens a handle of the log for the process at the other end of the link. */
export function openSimulatedEvents(log: EventLog, link: Link): EventStore {
  const handle: Handle = { log, link, closing: new AbortController(), appends: new Set() };
  const read = async <T>(text: string, effect: () => T): Promise<T> => {
    refuseWhenClosed(handle);
    return link.call({ text, effect, reads: true });
  };
  return {
    logId: log.logId,
    engine: 'eventstoredb',
    isPosition,
    append: async (stream, events, expected) => {
      refuseWhenClosed(handle);
      const encoded = encodedEvents(events);
      const appended = link.call({
        text: `append ${stream} ${events.map(({ type }) => type).join(' ')}`,
        effect: () => log.append(stream, encoded, expected),
        repeatable: true,
      });
      return accepted(handle, appended);
    },
    read: async (stream, { from = 0, limit = Number.MAX_SAFE_INTEGER } = {}) =>
      (await read(`read ${stream}`, () => log.read(stream, from, limit))).map(recordedOf),
    readAll(after, filter = {}, options = {}) {
      refuseWhenClosed(handle);
      return readAll(handle, after, filter, options);
    },
    follow(after, filter = {}, options = {}) {
      refuseWhenClosed(handle);
      return follow(handle, after, filter, options);
    },
    end: async () => read('end', () => log.end()),
    lastOf: async (stream) => read(`last of ${stream}`, () => log.lastOf(stream)),
    startOfLast: async (count) => read(`start of last ${count}`, () => log.startOfLast(count)),
    reaches: async (position) => read('reaches', () => log.reaches(position)),
    sealed: async () => read('sealed', () => log.sealed()),
    ping: async () => read('ping', () => undefined),
    async seal() {
      refuseWhenClosed(handle);
      await link.call({ text: 'seal', effect: () => log.seal(), repeatable: true });
    },
    async close() {
      handle.closing.abort();
      await Promise.allSettled(handle.appends);
    },
  };
}

function refuseWhenClosed({ closing }: Handle): void {
  if (closing.signal.aborted) throw new UnavailableError('the event store is closed');
}

async function accepted<T>({ appends }: Handle, append: Promise<T>): Promise<T> {
  appends.add(append);
  try {
    return await append;
  } finally {
    appends.delete(append);
  }
}

/** The events as texts, so that later changes of their objects change nothing. @throws EventTooLargeError */
function encodedEvents(events: readonly NewEvent[]): EncodedEvent[] {
  if (events.length === 0) throw new RangeError('an append without events');
  const encoded = events.map(({ id, type, at, data, metadata }) => ({
    id,
    type,
    at,
    data: JSON.stringify(data),
    metadata: JSON.stringify(metadata),
  }));
  const bytes = encoded.reduce((sum, one) => sum + Buffer.byteLength(one.data) + Buffer.byteLength(one.metadata), 0);
  if (bytes > MAX_APPEND_BYTES) throw new EventTooLargeError(bytes);
  return encoded;
}

const endOf = (closing: AbortController, signal: AbortSignal | undefined): AbortSignal =>
  signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);

/** The compiler takes a signal for unchanged that it has once seen not to be aborted. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted;

const batchOf = ({ events, ...slice }: Slice): EventBatch => ({ ...slice, events: events.map(recordedOf) });

async function* readAll(
  { log, link, closing }: Handle,
  after: Position | undefined,
  filter: EventFilter,
  { batchSize = DEFAULT_BATCH, signal }: ReadOptions,
): AsyncGenerator<EventBatch, void> {
  const ended = endOf(closing, signal);
  for (let position = after; !ended.aborted;) {
    const from = position;
    const slice = await link.call({ text: 'read all', effect: () => log.slice(from, filter, batchSize), reads: true });
    if (slice === undefined || isAborted(ended)) return;
    position = slice.position;
    yield batchOf(slice);
    if (slice.caughtUp) return;
  }
}

async function* follow(
  handle: Handle,
  after: Position | undefined,
  filter: EventFilter,
  { batchSize = DEFAULT_BATCH, signal, onTrouble }: ReadOptions,
): AsyncGenerator<EventBatch, void> {
  const { log, link, closing } = handle;
  const ended = endOf(closing, signal);
  const growth = openGrowth(log, link);
  try {
    for (let position = after; !ended.aborted;) {
      const from = position;
      growth.heard = false;
      try {
        const slice = await link.call({
          text: 'follow',
          effect: () => log.slice(from, filter, batchSize),
          reads: true,
        });
        if (isAborted(ended)) return;
        if (slice !== undefined) {
          position = slice.position;
          yield batchOf(slice);
          if (!slice.caughtUp) continue;
        }
        onTrouble?.(undefined);
        await growth.next(DEAF_MS, ended);
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        onTrouble?.(error);
        growth.heard = false;
        await growth.next(RETRY_MS, ended);
      }
    }
  } finally {
    growth.close();
  }
}

/** The log's growth, as a follower's process hears of it. */
interface Growth {
  heard: boolean;
  /** Resolves when the log has grown since `heard` was false, after `ms`, or when the signal is aborted. */
  next(ms: number, ended: AbortSignal): Promise<void>;
  close(): void;
}

function openGrowth(log: EventLog, link: Link): Growth {
  let wake: () => void = () => undefined;
  const unwatch = log.watch(() => {
    if (!link.connected()) return unwatch();
    return link.deliver('growth', () => {
      growth.heard = true;
      wake();
    });
  });
  const growth: Growth = {
    heard: false,
    async next(ms, ended) {
      if (growth.heard || ended.aborted) return;
      await new Promise<void>((resolve) => {
        wake = () => {
          endTimer(timer);
          ended.removeEventListener('abort', wake);
          resolve();
        };
        const timer = inMs(ms, wake);
        ended.addEventListener('abort', wake);
      });
    },
    close: unwatch,
  };
  return growth;
}
