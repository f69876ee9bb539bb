/**
 * ImportCatalogue (docs/decisions.md#import-file): brings the catalogue and the accounts of a file into the log. The
 * whole file is checked before the first append. Entries that the log has append nothing, so a repeat finishes an
 * interrupted import.
 */
import { randomUUID } from 'node:crypto';
import type { KeyedHash } from '../domain/keyedHash.js';
import { type Caller, ConflictError, type EventStore, type Position } from '../ports/eventStore.js';
import type { CommandContext } from '../commands/context.js';
import { type StreamState, transactOn } from '../commands/transact.js';
import { kindOf } from '../domain/streamName.js';
import { checkEntries } from './checks.js';
import { type ImportFault, ImportFaultsError, faultCollector } from './faults.js';
import { underKnownIds } from './knownCodes.js';
import { readLogState } from './logState.js';
import { inParallel } from '../lib/async/inParallel.js';
import { type ImportChange, type ImportPlan, type PlannedAppend, planImport } from './plan.js';
import { type SecretHashes, secretHashes } from './secrets.js';
import { checkShapes } from './shapes.js';
import { wantedOf } from './wanted.js';

/** Appends at a time, so that one fsync serves many. */
const IN_FLIGHT = 64;
/** Reads of the log while others keep changing the same entries. */
const ATTEMPTS = 10;
/** Pruning more entries needs a `yes`. */
export const PRUNE_WITHOUT_YES = 10;

export interface ImportDeps {
  readonly events: EventStore;
  readonly hash: KeyedHash;
  /** ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
}

export interface ImportOptions {
  /** Who imports, for example `{ user: 'cli:ops@host' }`. */
  readonly by: Caller;
  /** Retires what is missing from the file's arrays. `yes`: also more than 10 entries. */
  readonly prune?: { readonly reason: string; readonly yes: boolean } | undefined;
  /** Faults of the file's text, reported with those of its entries. */
  readonly textFaults?: readonly ImportFault[] | undefined;
  /** Appends nothing; the report says what would be done. */
  readonly dryRun?: boolean | undefined;
  /** Ends the import between two appends. */
  readonly signal?: AbortSignal;
  /** Called after each append. The total may change when another import interferes. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** What an import did, or would do. */
export interface ImportReport {
  readonly dryRun: boolean;
  readonly changes: readonly ImportChange[];
  /** Entries of the file that stood in the log as they are. */
  readonly unchanged: number;
  /** Events appended. */
  readonly events: number;
  /** Of the last event appended; absent when there was none. */
  readonly position?: Position;
}

/** Ended by the signal. Repeating the import finishes it. */
export class ImportInterruptedError extends Error {
  override readonly name = 'ImportInterruptedError';
  readonly appended: number;
  constructor(appended: number) {
    super(`interrupted after ${appended} events; repeat the import to finish it`);
    this.appended = appended;
  }
}

/** More entries would be pruned than is allowed without a `yes`; nothing was appended. */
export class PruneNeedsYesError extends Error {
  override readonly name = 'PruneNeedsYesError';
  readonly pruned: number;
  constructor(pruned: number) {
    super(`${pruned} entries would be pruned, more than ${PRUNE_WITHOUT_YES}`);
    this.pruned = pruned;
  }
}

/**
 * Imports a parsed file.
 * @throws ImportFaultsError (nothing appended, unless another import interfered), PruneNeedsYesError,
 * ImportInterruptedError, UnavailableError (repeat to finish); ConflictError when others kept changing the same entries
 * through 10 attempts.
 */
export async function importCatalogue(
  deps: ImportDeps,
  parsed: unknown,
  options: ImportOptions,
): Promise<ImportReport> {
  const run: Run = {
    deps,
    options,
    commandId: randomUUID(),
    correlationId: randomUUID(),
    changes: [],
    events: 0,
    position: undefined,
  };
  let secrets: SecretHashes = new Map();
  /** Of the first attempt: later ones count as unchanged what it has changed. */
  let unchanged: number | undefined;
  for (let attempt = 1; ; attempt++) {
    const { plan, hashes } = await check(run, parsed, secrets);
    secrets = hashes;
    unchanged ??= plan.unchanged;
    if (options.dryRun === true) {
      return { dryRun: true, changes: plan.phases.flat().flatMap(({ changes }) => changes), unchanged, events: 0 };
    }
    if (plan.pruned > PRUNE_WITHOUT_YES && options.prune?.yes !== true) throw new PruneNeedsYesError(plan.pruned);
    const conflict = await appendAll(run, plan);
    if (conflict === undefined) {
      const { changes, events, position } = run;
      return { dryRun: false, changes, unchanged, events, ...(position === undefined ? {} : { position }) };
    }
    if (attempt === ATTEMPTS) throw conflict;
  }
}

/** One import with all its attempts. */
interface Run {
  readonly deps: ImportDeps;
  readonly options: ImportOptions;
  readonly commandId: string;
  readonly correlationId: string;
  readonly changes: ImportChange[];
  events: number;
  position: Position | undefined;
}

async function check(
  run: Run,
  parsed: unknown,
  known: SecretHashes,
): Promise<{ plan: ImportPlan; hashes: SecretHashes }> {
  const { deps, options } = run;
  const { prune, signal } = options;
  const faults = faultCollector();
  for (const { place, fault } of options.textFaults ?? []) faults.addToFile(place, fault);
  const shaped = await checkShapes(parsed, faults);
  const log = await readLogState(deps.events, shaped.file, signal);
  const wanted = await underKnownIds(await wantedOf(shaped.file, deps.hash), log);
  refuseInterrupted(run);
  await checkEntries({ shaped, wanted, log, prune: prune !== undefined }, faults);
  const found = faults.all();
  if (found.length > 0) throw new ImportFaultsError(found, run.events);
  const hashes = await secretHashes(wanted, log, known, signal);
  refuseInterrupted(run);
  const plan = await planImport({ wanted, log, secrets: hashes, pruneReason: prune?.reason });
  return { plan, hashes };
}

function refuseInterrupted(run: Run): void {
  if (run.options.signal?.aborted === true) throw new ImportInterruptedError(run.events);
}

/** @returns the first conflict, after its phase: others changed the same streams, so the plan is void */
async function appendAll(run: Run, plan: ImportPlan): Promise<ConflictError | undefined> {
  const { deps, options, commandId, correlationId } = run;
  const { signal, onProgress } = options;
  const total = plan.phases.reduce((sum, phase) => sum + phase.length, 0);
  let done = 0;
  for (const phase of plan.phases) {
    let conflict: ConflictError | undefined;
    await inParallel(
      phase,
      IN_FLIGHT,
      async (planned) => {
        const context: CommandContext = { commandId, correlationId, by: options.by, now: deps.now() };
        try {
          const position = await appendPlanned(deps.events, planned, context);
          run.events += planned.events.length;
          run.changes.push(...planned.changes);
          if (position !== undefined && (run.position === undefined || position > run.position))
            run.position = position;
        } catch (error) {
          if (!(error instanceof ConflictError)) throw error;
          conflict ??= error;
        }
        onProgress?.(++done, total);
      },
      signal,
    );
    refuseInterrupted(run);
    if (conflict !== undefined) return conflict;
  }
  return undefined;
}

/**
 * Appends, also behind events of others that the append does not mind. @returns the position of the last event
 * @throws ConflictError where it does mind them, or after many lost races
 */
async function appendPlanned(
  events: EventStore,
  { stream, expected, events: decided, minds }: PlannedAppend,
  context: CommandContext,
): Promise<Position | undefined> {
  let first = true;
  const read = async (): Promise<StreamState<undefined>> => {
    let revision = expected;
    if (!first) {
      const since = await events.read(stream, { from: expected === 'none' ? 0 : expected + 1 });
      revision = since.at(-1)?.revision ?? expected;
      if (minds === undefined || since.length === 0 || since.some(({ type }) => minds.includes(type)))
        throw new ConflictError(stream, expected, typeof revision === 'number' ? revision : -1);
    }
    first = false;
    return { stream, state: undefined, history: [], revision };
  };
  const { own } = await transactOn(events, { kind: kindOf(stream), read }, context, () => decided);
  return own.at(-1)?.position;
}
