/** The log's id: an event in a stream of its own, written once. */
import { randomUUID } from 'node:crypto';
import { UnavailableError } from '../../ports/unavailable.js';
import { within } from '../../async/within.js';
import type { AppendTarget } from './appends.js';
import { withRetries } from './attempts.js';
import { AccessRefusedError, failureOf } from './failures.js';
import { LOG_STREAM } from './filters.js';
import { encode } from './records.js';

/** The first version that says when a subscription has caught up. */
const LEAST_VERSION = [23, 10] as const;

/** This EventStoreDB can't be used as it was named; `message` says what to change. */
export class EventStoreDbError extends Error {
  override readonly name = 'EventStoreDbError';
}

/** What `establishLog` needs. */
export interface LogOptions extends AppendTarget {
  /** Asks for the server's version. */
  readonly version: () => Promise<string>;
  readonly timeoutMs: number;
}

/**
 * The id of the server's log; one is given to a log that has none. Of several that do so at once one wins.
 * @throws EventStoreDbError when the server is too old or refuses access; UnavailableError when it does not answer.
 */
export async function establishLog({ version, timeoutMs, appender, reads }: LogOptions): Promise<string> {
  const over = (): boolean => false;
  try {
    refuseWhenOld(await withRetries(async () => askedVersion(version, timeoutMs), over));
    return await withRetries(async () => (await logIdOf(reads)) ?? begin(), over);
  } catch (error) {
    if (error instanceof AccessRefusedError) throw new EventStoreDbError(error.message, { cause: error });
    throw error;
  }

  async function begin(): Promise<string> {
    const commandId = randomUUID();
    const begun = encode({ id: commandId, type: 'LogBegun', at: new Date().toISOString(), data: { logId: randomUUID() }, metadata: { commandId, correlationId: commandId, by: {} } });
    await appender.send(LOG_STREAM, [begun], 'none');
    const logId = await logIdOf(reads);
    if (logId === undefined) throw new EventStoreDbError(`the stream ${LOG_STREAM} of EventStoreDB does not tell the log's id: restore it`);
    return logId;
  }
}

async function logIdOf(reads: AppendTarget['reads']): Promise<string | undefined> {
  const [first] = await reads.stream(LOG_STREAM, 0, 1);
  return (first?.data as { logId?: string } | undefined)?.logId;
}

/** A server that is built from source may not know its version: then nothing is to be said against it. */
function refuseWhenOld(version: string): void {
  const [major, minor] = version.split('.').map(Number);
  if (major === undefined || minor === undefined || Number.isNaN(major)) return;
  if (major > LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor >= LEAST_VERSION[1])) return;
  throw new EventStoreDbError(`EventStoreDB ${version} is too old: use ${LEAST_VERSION.join('.')} or later`);
}

async function askedVersion(version: LogOptions['version'], ms: number): Promise<string> {
  try {
    return await within(version(), ms, () => {
      throw new UnavailableError(`EventStoreDB did not answer within ${ms} ms`);
    });
  } catch (error) {
    throw failureOf(error, {});
  }
}
