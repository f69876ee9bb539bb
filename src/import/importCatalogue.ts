/**
 * ImportCatalogue (decisions 9): brings the catalogue and the accounts of a file into the log. The whole file is
 * checked before anything is appended; what stands in the log already appends nothing, so an interrupted import is
 * finished by repeating it.
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

/** Appends under way at a time: what makes one fsync serve many. */
const IN_FLIGHT = 64;
/** Looks at the log before giving up to others who keep changing the same entries. */
const ATTEMPTS = 10;
/** Pruning more entries than this wants a `yes`. */
export const PRUNE_WITHOUT_YES = 10;

/** What the command works with. */
export interface ImportDeps {
  readonly events: EventStore;
  readonly hash: KeyedHash;
  /** ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
}

/** How to import. */
export interface ImportOptions {
  /** Who imports, for example `{ user: 'cli:ops@host' }`. */
  readonly by: Caller;
  /** Retires what has gone from the arrays that stand in the file. `yes`: also more than 10 entries. */
  readonly prune?: { readonly reason: string; readonly yes: boolean } | undefined;
  /** What is wrong with the file's text, to be told with the faults of what it says. */
  readonly textFaults?: readonly ImportFault[] | undefined;
  /** Appends nothing; the report says what would be done. */
  readonly dryRun?: boolean | undefined;
  /** Ends the import between two appends. */
  readonly signal?: AbortSignal;
  /** Told after each append: how many of how many are done. The total may change when another import interferes. */
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

/** The import was ended by its signal. What was appended stays; repeating the import finishes it. */
export class ImportInterruptedError extends Error {
  override readonly name = 'ImportInterruptedError';
  readonly appended: number;
  constructor(appended: number) {
    super(`interrupted after ${appended} events; repeat the import to finish it`);
    this.appended = appended;
  }
}

/** More entries would be pruned than without a `yes`; nothing was appended. */
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
  /** As it was found at first: a later attempt finds unchanged what an earlier one has changed. */
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

/** One import from its first attempt to its last, with what it has done so far. */
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

/**
 * @returns the first conflict, after the phase in which it happened: somebody else changed the same streams, and
 * everything has to be looked at again.
 */
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
