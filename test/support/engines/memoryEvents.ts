/** An event log in memory, for tests above the port. It keeps the port's guarantees of appends, reads and feeds. */
import { randomUUID } from 'node:crypto';
import { isPosition } from '../../../src/adapters/embedded/eventStore/log.js';
import { matcherOf } from '../../../src/adapters/eventMatcher.js';
import { type DomainEvent } from '../../../src/domain/decider.js';
import {
  ConflictError,
  type EventBatch,
  type EventFilter,
  type EventStore,
  LogSealedError,
  type NewEvent,
  type Position,
  type ReadOptions,
  type RecordedEvent,
} from '../../../src/ports/eventStore.js';

/** The log, with helpers for tests. */
export interface MemoryEvents extends EventStore {
  /** Everything in log order. */
  readonly log: readonly RecordedEvent[];
  /** Called before each append; its error is the append's outcome. */
  beforeAppend: (stream: string, events: readonly NewEvent[]) => void | Promise<void>;
  /** Appends a test's given events, without revision. */
  given(stream: string, ...events: readonly DomainEvent[]): void;
}

/** An empty log. */
export function memoryEvents(): MemoryEvents {
  const log: RecordedEvent[] = [];
  const revisions = new Map<string, number>();
  /** What wakes the feeds that wait at the log's end. */
  const waiting: (() => void)[] = [];
  let sealed = false;
  const store = (stream: string, events: readonly NewEvent[]): void => {
    for (const event of events) {
      const revision = (revisions.get(stream) ?? -1) + 1;
      revisions.set(stream, revision);
      log.push({
        ...(JSON.parse(JSON.stringify(event)) as NewEvent),
        stream,
        revision,
        position: String(log.length + 1).padStart(16, '0'),
      });
    }
    for (const wake of waiting.splice(0)) wake();
  };
  const lastPosition = (): Position => log.at(-1)?.position ?? '';
  /** The batches after a position up to the log's end, as it is when a batch is made. */
  function* upToEnd(
    after: Position,
    filter: EventFilter,
    { batchSize = 1_000, signal }: ReadOptions,
  ): Generator<EventBatch, void> {
    const matches = matcherOf(filter);
    for (let read = after; signal?.aborted !== true && read < lastPosition();) {
      const found = log.filter(({ position, stream, type }) => position > read && matches(stream, type));
      const caughtUp = found.length <= batchSize;
      read = caughtUp ? lastPosition() : (found[batchSize - 1] as RecordedEvent).position;
      yield { events: found.slice(0, batchSize), position: read, caughtUp };
    }
  }
  const self: MemoryEvents = {
    logId: 'memory',
    engine: 'memory',
    isPosition,
    log,
    beforeAppend: () => undefined,
    given(stream, ...events) {
      store(
        stream,
        events.map((event) => ({
          id: randomUUID(),
          ...event,
          at: '2026-01-01T00:00:00.000Z',
          metadata: { commandId: 'given', correlationId: 'given', by: { user: 'given' } },
        })),
      );
    },
    async append(stream, events, expected) {
      await self.beforeAppend(stream, events);
      if (sealed) throw new LogSealedError();
      const actual = revisions.get(stream) ?? -1;
      if (expected !== 'any' && actual !== (expected === 'none' ? -1 : expected))
        throw new ConflictError(stream, expected, actual);
      store(stream, events);
      return { revision: revisions.get(stream) ?? -1, position: String(log.length).padStart(16, '0') };
    },
    read: async (stream, { from = 0, limit } = {}) =>
      log.filter((event) => event.stream === stream && event.revision >= from).slice(0, limit),
    async *readAll(after, filter = {}, options = {}) {
      yield* upToEnd(after ?? '', filter, options);
    },
    async *follow(after, filter = {}, options = {}) {
      const { signal, onTrouble } = options;
      const aborted = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
      for (let read = after ?? ''; signal?.aborted !== true;) {
        for (const batch of upToEnd(read, filter, options)) {
          read = batch.position;
          yield batch;
        }
        if (read < lastPosition()) continue;
        onTrouble?.(undefined);
        await Promise.race([aborted, new Promise<void>((resolve) => waiting.push(resolve))]);
      }
    },
    end: async () => log.at(-1)?.position,
    startOfLast: async (count) => log.at(-1 - count)?.position,
    reaches: async (position) => isPosition(position) && position <= (log.at(-1)?.position ?? ''),
    async seal() {
      sealed = true;
    },
    sealed: async () => sealed,
    ping: async () => undefined,
    close: async () => undefined,
  };
  return self;
}
