/**
 * An event log in memory, for tests above the port. It keeps the port's guarantees of appends and reads; it does not
 * follow.
 */
import { randomUUID } from 'node:crypto';
import { isPosition } from '../../../src/adapters/embedded/eventStore/log.js';
import { matcherOf } from '../../../src/adapters/eventMatcher.js';
import { type DomainEvent } from '../../../src/domain/decider.js';
import {
  ConflictError,
  type EventStore,
  LogSealedError,
  type NewEvent,
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
  };
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
    async *readAll(after = '', filter) {
      const wanted = matcherOf(filter ?? {});
      const events = log.filter(({ position, stream, type }) => position > after && wanted(stream, type));
      if (log.length > 0) yield { events, position: String(log.length).padStart(16, '0'), caughtUp: true };
    },
    follow() {
      throw new Error('the log in memory does not follow');
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
