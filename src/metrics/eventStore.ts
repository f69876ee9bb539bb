import { kindOf } from '../domain/streamName.js';
import { ticks } from '../lib/world.js';
import { type Appended, ConflictError, type EventStore, LogSealedError, type NewEvent } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { counts } from './counts.js';
import type { Exposition } from './exposition.js';
import { histogram } from './histogram.js';

/** The most commands to remember whose last append failed, to recognise a retry. */
const REMEMBERED = 1_000;

type RetryReason = 'conflict' | 'unknown_outcome';

export function measuredEventStore(events: EventStore, show: Exposition): EventStore {
  const durations = histogram();
  const conflicts = counts(1);
  const failures = counts(1, ['unavailable', 'unknown_outcome', 'sealed', 'other']);
  const retries = counts(1, ['conflict', 'unknown_outcome'] satisfies RetryReason[]);
  const again = new Map<string, RetryReason>();
  let appended = 0;

  show.histogram({ name: 'gift_append_duration_seconds', help: 'Time from an append to its being on disk' }, () => [
    [[], durations],
  ]);
  show.counter({ name: 'gift_appended_events_total', help: 'Events appended' }, () => [[[], appended]]);
  show.counter(
    {
      name: 'gift_append_conflicts_total',
      help: 'Appends that were not at the expected revision, by kind of stream',
      labels: ['stream'],
    },
    conflicts.samples,
  );
  show.counter(
    {
      name: 'gift_append_failures_total',
      help: 'Appends that failed: unavailable, unknown_outcome, sealed, other',
      labels: ['reason'],
    },
    failures.samples,
  );
  show.counter(
    {
      name: 'gift_command_retries_total',
      help: 'Commands that appended again: after a conflict, or an unknown outcome',
      labels: ['reason'],
    },
    retries.samples,
  );

  const remember = (commandId: string | undefined, reason: RetryReason): void => {
    if (commandId === undefined) return;
    again.set(commandId, reason);
    const [oldest] = again.keys();
    if (again.size > REMEMBERED && oldest !== undefined) again.delete(oldest);
  };

  const failed = (error: unknown, stream: string, commandId: string | undefined): void => {
    if (error instanceof ConflictError) {
      conflicts.add(kindOf(stream));
      remember(commandId, 'conflict');
    } else if (error instanceof UnavailableError) {
      failures.add(
        error instanceof LogSealedError ? 'sealed' : error.outcomeUnknown ? 'unknown_outcome' : 'unavailable',
      );
      if (error.outcomeUnknown) remember(commandId, 'unknown_outcome');
    } else {
      failures.add('other');
    }
  };

  return {
    ...events,
    async append(stream, batch, expected) {
      const commandId = commandOf(batch);
      if (again.size > 0 && commandId !== undefined) {
        const reason = again.get(commandId);
        if (reason !== undefined) {
          again.delete(commandId);
          retries.add(reason);
        }
      }
      const began = ticks();
      let done: Appended;
      try {
        done = await events.append(stream, batch, expected);
      } catch (error) {
        failed(error, stream, commandId);
        throw error;
      }
      durations.observe((ticks() - began) / 1000);
      appended += batch.length;
      return done;
    },
  };
}

const commandOf = (batch: readonly NewEvent[]): string | undefined => batch[0]?.metadata.commandId;
