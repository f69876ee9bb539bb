import { randomUUID } from 'node:crypto';
import { FORMAT_MARK, formatFault, type FoundMark } from '../../ports/dataFormat.js';
import type { AppendTarget } from './appends.js';
import { withRetries } from './attempts.js';
import { AccessRefusedError, UnsafeServerError } from './failures.js';
import { LOG_STREAM } from './filters.js';
import { type EncodedEvent, encode } from './records.js';

/** A fault of the settings; `message` says what to change. */
export class EventStoreDbError extends Error {
  override readonly name = 'EventStoreDbError';
}

/** Most events that are read of the log's own stream, which has a few. */
const MOST = 100;

/**
 * Reads the log's id from a stream of its own, or creates it. Of concurrent creations one wins.
 * @throws EventStoreDbError when the server's version or access is refused, or it holds data of another format: nothing
 * is appended then; UnavailableError when it does not answer
 */
export async function establishLog({ appender, reads }: AppendTarget): Promise<string> {
  try {
    return await withRetries(
      async () => {
        // The end is read first: a process that appends to a new log has created the id before.
        const end = await reads.end();
        return (await logIdOf(reads, end !== undefined)) ?? create();
      },
      () => false,
    );
  } catch (error) {
    if (error instanceof AccessRefusedError || error instanceof UnsafeServerError)
      throw new EventStoreDbError(error.message, { cause: error });
    throw error;
  }

  async function create(): Promise<string> {
    await appender.send(LOG_STREAM, [logEvent('LogCreated', { logId: randomUUID(), ...FORMAT_MARK })], 'none');
    const logId = await logIdOf(reads, true);
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

type OwnData = FoundMark & { readonly logId?: string };

/**
 * The log's id, after a check of its format mark. The last mark counts: a later release may have raised it.
 * @param filled whether the log has events
 */
async function logIdOf(reads: AppendTarget['reads'], filled: boolean): Promise<string | undefined> {
  const own = (await reads.stream(LOG_STREAM, 0, MOST)).map(({ data }) => data as OwnData);
  if (own.length === 0 && !filled) return undefined;
  const fault = formatFault(own.findLast(({ format }) => format !== undefined) ?? {});
  if (fault !== undefined) throw new EventStoreDbError(`the event log ${fault.problem}: ${fault.remedy}`);
  return own[0]?.logId;
}
