/**
 * ImportCatalogue (docs/import.md#import-file): brings the catalogue and accounts of a file into the log. The whole
 * file is checked first. Entries that are in the log already append nothing, so a repeat finishes an interrupted
 * import.
 */
import type { KeyedHash } from '../domain/keyedHash.js';
import { randomUUID } from '../lib/world.js';
import { type Caller, ConflictError, type EventStore, type Position } from '../ports/eventStore.js';
import { type CommandContext, type StreamState, transactOn } from '../commands/transact.js';
import { kindOf } from '../domain/streamName.js';
import { checkEntries } from './checks.js';
import { faultCollector, type ImportFault, ImportFaultsError } from './faults.js';
import { type LogState, readLogState } from './logState.js';
import { mixedClients } from './mixedClients.js';
import { inParallel } from '../lib/async/inParallel.js';
import { type ImportChange, type ImportPlan, planImport, type PlannedAppend } from './plan.js';
import { type SecretHashes, secretHashes } from './secrets.js';
import { checkShapes } from './shapes.js';
import { type ReservedIds, subjectsIn, type DesiredCode, type DesiredImport, desiredOf } from './desired.js';
import type { PersonName } from '../domain/personalFields.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Proposal, Subjects } from '../runtime/personal/index.js';
import { inSlices } from '../lib/async/slices.js';

/** Number of concurrent appends: one fsync serves many. */
const IN_FLIGHT = 64;
/** Number of attempts where others change the same entries concurrently. */
const ATTEMPTS = 10;
export const PRUNE_WITHOUT_YES = 10;

interface ImportDeps {
  readonly events: EventStore;
  readonly hash: KeyedHash;
  readonly subjects: Subjects;
  /** Ids of users whose erasure the key store holds: a log that was restored to before them may not know them. */
  readonly erasedUsers?: () => Promise<ReadonlySet<string>>;
  /** The present time (ISO 8601, UTC, milliseconds). */
  readonly now: () => string;
}

export interface ImportOptions {
  readonly by: Caller;
  /** Retires entries that are missing from the file's arrays. `yes`: also more than `PRUNE_WITHOUT_YES`. */
  readonly prune?: { readonly reason: string; readonly yes: boolean } | undefined;
  /** Faults that were found in the file's text before this import. */
  readonly textFaults?: readonly ImportFault[] | undefined;
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal;
  /** The total may change when another import interferes. */
  readonly onProgress?: (done: number, total: number) => void;
}

export interface ImportReport {
  readonly dryRun: boolean;
  readonly changes: readonly ImportChange[];
  /** Number of entries that were in the log already. */
  readonly unchanged: number;
  readonly events: number;
  readonly position?: Position;
  /** Streams of users and payment methods with altered fields: their entries in the file were written again. */
  readonly unread: readonly string[];
  /** Ids of the clients through which staff and others log in, and whose entries do not say whether staff may. */
  readonly mixedClients: readonly string[];
}

/** The signal ended the import. A repeat finishes it. */
export class ImportInterruptedError extends Error {
  override readonly name = 'ImportInterruptedError';
  readonly appended: number;
  constructor(appended: number) {
    super(`interrupted after ${appended} events; repeat the import to finish it`);
    this.appended = appended;
  }
}

/** The import would prune more than `PRUNE_WITHOUT_YES` entries; nothing was appended. */
export class PruneNeedsYesError extends Error {
  override readonly name = 'PruneNeedsYesError';
  readonly pruned: number;
  constructor(pruned: number) {
    super(`${pruned} entries would be pruned, more than ${PRUNE_WITHOUT_YES}`);
    this.pruned = pruned;
  }
}

/**
 * @throws ImportFaultsError, PruneNeedsYesError, ImportInterruptedError; UnavailableError: a repeat finishes the
 * import; ConflictError where others changed the same entries during all attempts
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
    unread: new Set(),
  };
  let secrets: SecretHashes = new Map();
  /** Number of unchanged entries in the first attempt: later attempts find its changes in the log. */
  let unchanged: number | undefined;
  for (let attempt = 1; ; attempt++) {
    const { plan, hashes, proposals, mixedClients } = await check(run, parsed, secrets);
    secrets = hashes;
    unchanged ??= plan.unchanged;
    if (options.dryRun === true) {
      const changes = plan.phases.flat().flatMap((planned) => planned.changes);
      return { dryRun: true, changes, unchanged, events: 0, unread: [...run.unread], mixedClients };
    }
    if (plan.pruned > PRUNE_WITHOUT_YES && options.prune?.yes !== true) throw new PruneNeedsYesError(plan.pruned);
    const stored = await deps.subjects.store(proposals);
    const conflict = stored ? await appendAll(run, plan) : undefined;
    // A number may have been erased concurrently with its previous holder: the new holder gets it under another id.
    if (stored && conflict === undefined && (await deps.subjects.areStored(proposals))) {
      const { changes, events, position } = run;
      const unread = [...run.unread];
      return {
        dryRun: false,
        changes,
        unchanged,
        events,
        ...(position === undefined ? {} : { position }),
        unread,
        mixedClients,
      };
    }
    if (attempt === ATTEMPTS) throw conflict ?? new UnavailableError('other imports keep adding the same users');
  }
}

/** State of one import over all its attempts. */
interface Run {
  readonly deps: ImportDeps;
  readonly options: ImportOptions;
  readonly commandId: string;
  readonly correlationId: string;
  readonly changes: ImportChange[];
  events: number;
  position: Position | undefined;
  readonly unread: Set<string>;
}

async function check(
  run: Run,
  parsed: unknown,
  known: SecretHashes,
): Promise<{
  plan: ImportPlan;
  hashes: SecretHashes;
  proposals: readonly Proposal[];
  mixedClients: readonly string[];
}> {
  const { deps, options } = run;
  const { prune, signal } = options;
  const faults = faultCollector();
  for (const { place, fault } of options.textFaults ?? []) faults.addToFile(place, fault);
  const shaped = await checkShapes(parsed, faults);
  const log = await readLogState(deps.events, shaped.file, signal);
  for (const stream of log.unread) run.unread.add(stream);
  const names = await subjectsIn(shaped.file);
  const proposals = await deps.subjects.propose(names);
  const desired = await underKnownIds(await desiredOf(shaped.file, deps.hash, reservedIds(names, proposals)), log);
  refuseInterrupted(run);
  const erasedUsers = desired.users === undefined ? undefined : await deps.erasedUsers?.();
  await checkEntries({ shaped, desired, log, erasedUsers, prune: prune !== undefined }, faults);
  const found = faults.all();
  if (found.length > 0) throw new ImportFaultsError(found, run.events);
  const hashes = await secretHashes(desired, log, known, signal);
  refuseInterrupted(run);
  const plan = await planImport({ desired, log, secrets: hashes, pruneReason: prune?.reason });
  return { plan, hashes, proposals, mixedClients: mixedClients(desired, log) };
}

function reservedIds(names: readonly PersonName[], proposals: readonly Proposal[]): ReservedIds {
  const keyOf = ({ kind, text }: PersonName): string => `${kind} ${text}`;
  const ids = new Map(names.map((name, index) => [keyOf(name), proposals[index]?.id ?? '']));
  return (name) => ids.get(keyOf(name)) ?? '';
}

function refuseInterrupted(run: Run): void {
  if (run.options.signal?.aborted === true) throw new ImportInterruptedError(run.events);
}

/** @returns the first conflict, which makes the plan void: others changed the same streams */
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
 * @returns the position of the last event
 * @throws ConflictError where another event of a type in `conflictsWith` came first, or after many lost races
 */
async function appendPlanned(
  events: EventStore,
  { stream, expected, events: decided, conflictsWith }: PlannedAppend,
  context: CommandContext,
): Promise<Position | undefined> {
  let first = true;
  const read = async (): Promise<StreamState<undefined>> => {
    let revision = expected;
    if (!first) {
      const since = await events.read(stream, { from: expected === 'none' ? 0 : expected + 1 });
      revision = since.at(-1)?.revision ?? expected;
      if (conflictsWith === undefined || since.length === 0 || since.some(({ type }) => conflictsWith.includes(type)))
        throw new ConflictError(stream, expected, typeof revision === 'number' ? revision : -1);
    }
    first = false;
    return { stream, state: undefined, history: [], revision };
  };
  const { own } = await transactOn(events, { kind: kindOf(stream), read }, context, () => decided);
  return own.at(-1)?.position;
}

/**
 * Voucher codes that the log has keep their ids, also those of a lost hash key: a log restored without its key still
 * hands out each code once (docs/api/vouchers.md#voucher-codes).
 */
async function underKnownIds(desired: DesiredImport, { codes }: Pick<LogState, 'codes'>): Promise<DesiredImport> {
  const { voucher_codes } = desired;
  if (voucher_codes === undefined || voucher_codes.every(({ id }) => codes.has(id))) return desired;
  const known = new Map<string, string>();
  await inSlices(codes, ([id, { state }]) => void (state.status !== 'none' && known.set(nameOf(state), id)));
  const renamed: DesiredCode[] = [];
  await inSlices(
    voucher_codes,
    (one) => void renamed.push(codes.has(one.id) ? one : { ...one, id: known.get(nameOf(one.value)) ?? one.id }),
  );
  return { ...desired, voucher_codes: renamed };
}

function nameOf({ segment_id, code }: Pick<DesiredCode['value'], 'segment_id' | 'code'>): string {
  return `${segment_id}\0${code}`;
}
