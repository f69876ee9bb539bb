import { type AccessEvent, type AccessRequest, accessStream } from '../../domain/access.js';
import type { EventStore } from '../../ports/eventStore.js';
import { streamBetween } from './streamBetween.js';

const DAY_MS = 86_400_000;

/** A call or command by its access record. */
export interface RecordedCall {
  /** When it began: ISO 8601, UTC. */
  readonly at: string;
  readonly asked: AccessRequest['asked'];
  /** Number of its records; `undefined`: it failed, was broken off, or goes on. */
  readonly count: number | undefined;
}

/**
 * The calls and commands of these names within so many days before `now` (milliseconds since the epoch), the latest
 * first. @throws UnavailableError
 */
export async function* recordedCalls(
  events: Pick<EventStore, 'read'>,
  names: ReadonlySet<string>,
  days: number,
  now: number,
): AsyncGenerator<RecordedCall> {
  /** Numbers of records of the operations that ended whole. The end may be on a later day, which is read before. */
  const ended = new Map<string, number>();
  for (let ago = 0; ago <= days; ago++) {
    const found: {
      readonly at: string;
      readonly operation: string | undefined;
      readonly call: AccessRequest;
      readonly count: number | undefined;
    }[] = [];
    const stream = accessStream(new Date(now - ago * DAY_MS).toISOString());
    for await (const page of streamBetween(events, stream, '', undefined))
      for (const event of page) {
        const { type, data } = event as unknown as AccessEvent;
        if (type === 'OperationEnded') {
          if (data.complete) ended.set(data.operation_id, data.count);
        } else if (names.has(data.what)) {
          const operation = type === 'OperationStarted' ? data.operation_id : undefined;
          const count = type === 'RecordsShown' ? data.count : undefined;
          found.push({ at: event.at, operation, call: data, count });
        }
      }
    for (const { at, operation, call, count } of found.toReversed())
      yield { at, asked: call.asked, count: operation === undefined ? count : ended.get(operation) };
  }
}
