import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { diskRemedy } from '../../service/diskRemedy.js';
import { type EventStore, LogSealedError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import {
  LeaseLostError,
  MaintenanceRefusedError,
  type Projection,
  type RebuildDeps,
  type Remedy,
} from '../../runtime/readmodels/index.js';
import { recordedWork } from '../../ops/readmodels/recordedWork.js';
import { PROJECTIONS } from '../../projections/index.js';
import { commandLineCaller } from '../caller.js';
import type { OpenedStores } from '../engines.js';
import { cliAccess } from '../exports.js';
import { CommandFailure } from '../terminal.js';

/** @throws CommandFailure naming the projections */
export function projectionOf(name: string): Projection {
  const found = PROJECTIONS.find((projection) => projection.name === name);
  if (found === undefined)
    throw new CommandFailure(
      `there is no projection ${JSON.stringify(name)}: there are ${PROJECTIONS.map((projection) => projection.name).join(', ')}`,
    );
  return found;
}

export function depsOf({ events, store }: Pick<OpenedStores, 'events' | 'store'>): RebuildDeps {
  return {
    events,
    store,
    logger: pino({ level: 'silent' }),
    holder: `${commandLineCaller().user ?? 'cli'} (process ${process.pid}, ${randomUUID().slice(0, 8)})`,
  };
}

/**
 * Records who changes a read model's builds and why: before the work, and its end.
 * @throws UnavailableError where the record can't be appended, before any work; what `work` throws
 */
export async function recorded(
  events: EventStore,
  what: string,
  asked: Readonly<Record<string, unknown>>,
  reason: string | null,
  work: () => Promise<void>,
): Promise<void> {
  await recordedWork(await cliAccess(events).start(what, asked, { personal: false, reason }), work);
}

const REMEDIES: Readonly<Record<Remedy, (name: string) => string>> = {
  abort: (name) => `gift projections rebuild ${name} --abort`,
  rebuild: (name) => `gift projections rebuild ${name}`,
  rollback: (name) => `gift projections rollback ${name}`,
  status: () => 'gift projections status',
  verify: (name) => `gift projections verify ${name}`,
};

function refusalText({ message, remedy }: MaintenanceRefusedError, name: string): string {
  return remedy === undefined ? message : `${message} (${REMEDIES[remedy](name)})`;
}

/** Turns an error into a failure that says what to do. `again`: how to repeat the command. */
export function failureOf(error: unknown, name: string, again: string): unknown {
  if (error instanceof MaintenanceRefusedError) return new CommandFailure(refusalText(error, name));
  if (error instanceof LeaseLostError)
    return new CommandFailure(`another process has taken over while this one was held up: ${again}`);
  // Repeating the command does not help; the error's message says what does.
  if (error instanceof LogSealedError) return error;
  if (error instanceof UnavailableError) {
    const remedy = diskRemedy(error);
    return new CommandFailure(
      `${error.message}: ${remedy === undefined || remedy.endsWith('try again') ? again : `${remedy}; then ${again}`}`,
    );
  }
  return error;
}
