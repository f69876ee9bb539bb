/** What the subcommands of `gift projections` share. */
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { UnavailableError } from '../ports/unavailable.js';
import type { Projection } from '../projections/projection.js';
import { type RebuildDeps, RebuildRefusedError } from '../projections/rebuild.js';
import { LeaseLostError } from '../projections/writer.js';
import { PROJECTIONS } from '../readModels.js';
import { commandLineCaller } from './caller.js';
import type { OpenedStores } from './engines.js';
import { CommandFailure, EXIT } from './terminal.js';

/** The projection of that name. @throws CommandFailure naming those there are */
export function projectionOf(name: string): Projection {
  const found = PROJECTIONS.find((projection) => projection.name === name);
  if (found === undefined) throw new CommandFailure(`there is no projection ${JSON.stringify(name)}: there are ${PROJECTIONS.map((projection) => projection.name).join(', ')}`);
  return found;
}

/** What works on the projections needs, in the name of this process. */
export function depsOf({ events, store }: Pick<OpenedStores, 'events' | 'store'>): RebuildDeps {
  return { events, store, logger: pino({ level: 'silent' }), holder: `${commandLineCaller().user ?? 'cli'} (process ${process.pid}, ${randomUUID().slice(0, 8)})` };
}

/** What a command that can be repeated says of what stopped it. */
export function failureOf(error: unknown, again: string): unknown {
  if (error instanceof RebuildRefusedError) return new CommandFailure(error.message);
  if (error instanceof LeaseLostError) return new CommandFailure(`another process has taken over while this one was held up: ${again}`);
  if (error instanceof UnavailableError) return new CommandFailure(`${error.message}: ${again}`);
  return error;
}

/** The command was interrupted; the message says what to do. */
export const interrupted = (message: string): CommandFailure => new CommandFailure(message, EXIT.interrupted);
