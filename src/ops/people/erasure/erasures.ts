/**
 * Erasures of persons, for the API, the command line and the process that finishes them
 * (docs/personal-data.md#erasure).
 */
import type { CommandContext } from '../../../commands/transact.js';
import { type Person, personId, personStream } from '../../../domain/erasure.js';
import { Refusal } from '../../../domain/refusal.js';
import { pause } from '../../../lib/async/pause.js';
import { randomUUID, ticks } from '../../../lib/world.js';
import type { Position } from '../../../ports/eventStore.js';
import type { FollowerRun } from '../../../runtime/supervision/followers.js';
import { type DerivedStores, type ErasureDeps, erasureDeps } from './derivedData.js';
import { ErasureWaitsError } from './endPerson.js';
import { erasePerson, type ErasureOutcome } from './erasePerson.js';
import { type Erasure, type ErasureLog, isFinished, isRequest, storedErasures } from './erasureRecord.js';
import { type Reapplied, repeatErasures, type RepeatOptions } from './reapplyErasures.js';
import { earlierErasure, isDue, isLeft, openErasure, requestErasure, withdrawErasure } from './requestErasure.js';

/** Outcome of a command about an erasure. */
interface ErasureAnswer<View> {
  readonly view: View;
  /** Whether the command changed nothing, since it or another one had done it before. */
  readonly replayed: boolean;
  /** A reader that waits for this position sees the outcome; `undefined` where the log has nothing of the person. */
  readonly position: Position | undefined;
}

/** Erasures of a log and its key store. All methods throw UnavailableError. */
interface LogErasures {
  /** All erasures, as external lists hold them. */
  stored(): AsyncGenerator<Erasure>;
  /** Erasures that are requested or in progress, the one that is due first at the beginning. */
  unfinished(): Promise<readonly ErasureRequestView[]>;
  /** @throws Refusal as `refuseUnlessErasable` */
  request(
    person: Person,
    context: CommandContext,
    wish: { readonly reason: string; readonly delayMs: number },
  ): Promise<ErasureAnswer<ErasureRequestView>>;
  /** @throws Refusal `erasure_not_found`, `erasure_started` */
  withdraw(person: Person, context: CommandContext, reason: string): Promise<ErasureAnswer<ErasureRequestView>>;
  /** Repeats erasures that a restore of the log or the key store has undone, before anything is served from them. */
  repeat(options: RepeatOptions): Promise<Reapplied>;
}

export interface Erasures extends LogErasures {
  /** Erases a person at once. @throws Refusal as `refuseUnlessErasable`; ErasureWaitsError */
  erase(person: Person, context: CommandContext, reason: string): Promise<ErasureAnswer<ErasureView>>;
  /**
   * As `erase`, for a request of another user.
   * @throws Refusal `erasure_not_found`, `another_user_required`
   */
  approve(person: Person, context: CommandContext, reason: string): Promise<ErasureAnswer<ErasureView>>;
  /** Carries out a request that is due, or an erasure that was interrupted. Throws as `erase`. */
  finish(erasure: Erasure, context: CommandContext): Promise<void>;
}

/** Without `derived`, no person can be erased, since data derived from the log would be left. */
export function openErasures(log: ErasureLog): LogErasures;
export function openErasures(log: ErasureLog, derived: DerivedStores): Erasures;
export function openErasures(log: ErasureLog, derived?: DerivedStores): LogErasures {
  return derived === undefined ? logErasures(log) : erasuresOf(erasureDeps(log, derived));
}

function logErasures(log: ErasureLog): LogErasures {
  const { events, keys } = log;

  async function answer(
    person: Person,
    erasure: Erasure,
    replayed: boolean,
  ): Promise<ErasureAnswer<ErasureRequestView>> {
    const latest = (await events.read(personStream(person))).at(-1);
    return { view: requestView(erasure), replayed, position: latest?.position };
  }

  return {
    stored: () => storedErasures(keys),
    async unfinished() {
      const open: ErasureRequestView[] = [];
      for await (const one of storedErasures(keys)) if (!isFinished(one)) open.push(requestView(one));
      const dueAt = ({ due_at, requested_at }: ErasureRequestView): string => due_at ?? requested_at;
      return open.sort((one, other) => (dueAt(one) < dueAt(other) ? -1 : 1));
    },
    async request(person, context, wish) {
      const requested = await requestErasure(log, person, context, wish);
      return answer(person, requested, requested.at !== context.now);
    },
    async withdraw(person, context, reason) {
      const withdrawn = await withdrawErasure(log, person, context, reason);
      return answer(person, withdrawn, withdrawn.withdrawn_at !== context.now);
    },
    repeat: async (options) => repeatErasures(log, options),
  };
}

export function erasuresOf(deps: ErasureDeps): Erasures {
  async function erase(person: Person, context: CommandContext, reason: string): Promise<ErasureAnswer<ErasureView>> {
    const outcome = await erasePerson(deps, person, context, reason);
    return { view: erasedView(outcome), replayed: outcome.already, position: outcome.position };
  }

  return {
    ...logErasures(deps),
    async erase(...args) {
      // A request whose withdrawal only the log has is not the one to carry out.
      await earlierErasure(deps, args[0]);
      return erase(...args);
    },
    async approve(person, context, reason) {
      const { by } = await openErasure(deps, person);
      if (by.user === context.by.user) throw new Refusal('another_user_required');
      return erase(person, context, reason);
    },
    async finish(erasure, context) {
      if (isRequest(erasure) && !(await isDue(deps, erasure, context))) return;
      await erasePerson(deps, erasure.person, context, erasure.reason);
    },
  };
}

/** Longest time in ms that backups of the key store are retained (docs/personal-data.md#key-store). */
const BACKUPS_RETAINED_MS = 30 * 86_400_000;

/** An erasure that was carried out. Times are ISO 8601, UTC. */
interface ErasureView {
  readonly id: string;
  readonly person: string;
  readonly erased_at: string;
  readonly complete_at: string;
  readonly already: boolean;
  readonly unread: readonly string[];
}

function erasedView({ erasure, already, unreadable }: ErasureOutcome): ErasureView {
  const erasedAt = erasure.done_at ?? erasure.at;
  return {
    id: erasure.id,
    person: personId(erasure.person),
    erased_at: erasedAt,
    complete_at: new Date(Date.parse(erasedAt) + BACKUPS_RETAINED_MS).toISOString(),
    already,
    unread: unreadable,
  };
}

/** An erasure from its request on. Times are ISO 8601, UTC. */
export interface ErasureRequestView {
  readonly id: string;
  readonly person: string;
  readonly status: 'requested' | 'started' | 'withdrawn' | 'erased';
  readonly reason: string;
  readonly requested_by: string | null;
  readonly requested_at: string;
  /** Time when the request is carried out; null where it was not requested over HTTP. */
  readonly due_at: string | null;
  readonly erased_at: string | null;
}

function requestView(erasure: Erasure): ErasureRequestView {
  const { id, person, reason, by, at, due_at, done_at } = erasure;
  return {
    id,
    person: personId(person),
    status: statusOf(erasure),
    reason,
    requested_by: by.user ?? null,
    requested_at: at,
    due_at: due_at ?? null,
    erased_at: done_at ?? null,
  };
}

function statusOf(erasure: Erasure): ErasureRequestView['status'] {
  if (erasure.withdrawn_at !== undefined) return 'withdrawn';
  if (erasure.done_at !== undefined) return 'erased';
  return isRequest(erasure) ? 'requested' : 'started';
}

const POLL_MS = 30_000;
/** Milliseconds between two attempts of an erasure that waits for money, since each attempt reads the log twice. */
const WAITS_MS = 600_000;

/**
 * Carries out requests that are due, and finishes erasures that were interrupted, or that waited for money, or that had
 * to be repeated after a restore. Runs until `signal` is aborted.
 * @throws UnavailableError
 */
export async function finishErasures(
  erasures: Pick<Erasures, 'stored' | 'finish'>,
  now: () => string,
  { signal, onTrouble }: Pick<FollowerRun, 'signal' | 'onTrouble'>,
): Promise<void> {
  const waitsUntil = new Map<string, number>();
  while (!signal.aborted) {
    // An erasure that fails must not hold up the others.
    let trouble: Error | undefined;
    for await (const erasure of erasures.stored()) {
      const { id, by, at, started_at = at } = erasure;
      if (isFinished(erasure) || (waitsUntil.get(id) ?? 0) > ticks()) continue;
      if (!isRequest(erasure) && !isLeft(started_at, now())) continue;
      const commandId = randomUUID();
      try {
        await erasures.finish(erasure, { commandId, correlationId: commandId, by, now: now() });
      } catch (error) {
        if (error instanceof ErasureWaitsError) waitsUntil.set(id, ticks() + WAITS_MS);
        // A refused erasure is no failure: it is withdrawn for a user with that number, or the person became staff.
        else if (!(error instanceof Refusal))
          trouble ??= error instanceof Error ? error : new Error('an erasure failed', { cause: error });
      }
    }
    onTrouble(trouble);
    await pause(POLL_MS, signal);
  }
}
