import { type AccessEvent, type AccessRequest, accessStream } from '../../domain/access.js';
import type { EventStore } from '../../ports/eventStore.js';
import { streamBetween } from './streamBetween.js';

const DAY_MS = 86_400_000;

/** A call or command by its access record. */
export interface RecordedCall {
  /** When it began: ISO 8601, UTC. */
  readonly at: string;
  readonly asked: AccessRequest['asked'];
  /** Number of its records; `undefined`: it was broken off, or goes on. */
  readonly count: number | undefined;
}

/**
 * The calls and commands of these names within so many days before `now` (milliseconds since the epoch), the latest
 * first. One that ended on another day than it began counts as broken off. @throws UnavailableError
 */
export async function* recordedCalls(
  events: Pick<EventStore, 'read'>,
  names: ReadonlySet<string>,
  days: number,
  now: number,
): AsyncGenerator<RecordedCall> {
  for (let ago = 0; ago <= days; ago++) {
    const found: {
      readonly at: string;
      readonly operation: string | undefined;
      readonly call: AccessRequest;
      count?: number;
    }[] = [];
    const stream = accessStream(new Date(now - ago * DAY_MS).toISOString());
    for await (const page of streamBetween(events, stream, '', undefined))
      for (const event of page) {
        const { type, data } = event as unknown as AccessEvent;
        if (type === 'OperationEnded') {
          const started = found.find(({ operation }) => operation === data.operation_id);
          if (started !== undefined && data.complete) started.count = data.count;
        } else if (names.has(data.what)) {
          const operation = type === 'OperationStarted' ? data.operation_id : undefined;
          found.push({
            at: event.at,
            operation,
            call: data,
            ...(type === 'RecordsShown' ? { count: data.count } : {}),
          });
        }
      }
    for (const { at, call, count } of found.toReversed()) yield { at, asked: call.asked, count };
  }
}
