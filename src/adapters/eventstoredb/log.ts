import { randomUUID } from 'node:crypto';
import type { AppendTarget } from './appends.js';
import { withRetries } from './attempts.js';
import { AccessRefusedError, UnsafeServerError } from './failures.js';
import { LOG_STREAM } from './filters.js';
import { type EncodedEvent, encode } from './records.js';

/** `message` says what to change in the settings. */
export class EventStoreDbError extends Error {
  override readonly name = 'EventStoreDbError';
}

/**
 * The log's id, in a stream of its own. Of concurrent creations one wins.
 * @throws EventStoreDbError when the server's version or access is refused; UnavailableError when it does not answer
 */
export async function establishLog({ appender, reads }: AppendTarget): Promise<string> {
  try {
    return await withRetries(
      async () => (await logIdOf(reads)) ?? create(),
      () => false,
    );
  } catch (error) {
    if (error instanceof AccessRefusedError || error instanceof UnsafeServerError)
      throw new EventStoreDbError(error.message, { cause: error });
    throw error;
  }

  async function create(): Promise<string> {
    await appender.send(LOG_STREAM, [logEvent('LogCreated', { logId: randomUUID() })], 'none');
    const logId = await logIdOf(reads);
    if (logId === undefined)
      throw new EventStoreDbError(`the stream ${LOG_STREAM} of EventStoreDB does not tell the log's id: restore it`);
    return logId;
  }
}

export function logEvent(type: string, data: object): EncodedEvent {
  const id = randomUUID();
  const at = new Date().toISOString();
  return encode({ id, type, at, data, metadata: { commandId: id, correlationId: id, by: {} } });
}

async function logIdOf(reads: AppendTarget['reads']): Promise<string | undefined> {
  const [first] = await reads.stream(LOG_STREAM, 0, 1);
  return (first?.data as { logId?: string } | undefined)?.logId;
}
