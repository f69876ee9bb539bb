/**
 * Followers run as long as their process, and are restarted if they end before they are closed. Readiness, metrics and
 * status read their health here.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import { backoff } from '../../lib/backoff.js';
import { systemTime } from '../../lib/clock.js';
import { ticks } from '../../lib/world.js';
import { UnavailableError } from '../../ports/unavailable.js';

/** The first and the longest wait before a restart. It doubles, less up to half at random. */
const RESTART_MS = [100, 5_000] as const;
/** Milliseconds of work after which the next failure counts as the first again; longer than the longest wait. */
const STEADY_MS = 6_000;
/** A follower that works this long is not failing; one that works for an instant after each restart is. */
const SETTLED_MS = 1_000;
/** Milliseconds of trouble after which a follower counts as failing; a reconnection takes less. */
const TROUBLED_MS = 2_000;

/** Reason of a failure that passes by itself once the engine answers. */
export const ENGINE_AWAY = 'an engine does not answer';

export interface FollowerHealth {
  /** Name of the follower, from a small fixed set. */
  readonly part: string;
  /** Whether the follower failed repeatedly, or its engine has not answered for some time. */
  readonly failing: boolean;
  /** Time of the first failure since the last recovery, ISO 8601, UTC; absent: the follower works. */
  readonly since?: string;
  /** Number of failures since the last recovery. */
  readonly failures: number;
  /** Reason that anyone may see, without a path or an address; absent: the follower works. */
  readonly why?: string;
  /** Class of the failure; absent: the follower works. */
  readonly error?: string;
  /** No request needs the follower: its failure makes no process unready. */
  readonly aside?: true;
}

export interface FollowerRun {
  /** `run` may end only after this is aborted. */
  readonly signal: AbortSignal;
  /** Reports that the follower has caught up, waits for events, or stands by. Cheap to call. */
  well(): void;
  /** Reports a failure that the follower waits out; `undefined`: the same as `well`. */
  onTrouble(error: Error | undefined): void;
}

export interface RestartOptions {
  readonly restartMs?: readonly [first: number, most: number];
  /** Whether an error is logged as a warning, as first failures and UnavailableError are. */
  readonly expected?: (error: unknown) => boolean;
  /** Marks the follower as one that no request needs, as in `FollowerHealth`. */
  readonly aside?: true;
}

export interface Followers {
  /** `close` resolves when `run` has ended, and never rejects. */
  start(
    part: string,
    run: (context: FollowerRun) => Promise<void>,
    options?: RestartOptions,
  ): { close(): Promise<void> };
  health(): readonly FollowerHealth[];
  /** Adds the health of another thread's followers. */
  include(read: () => readonly FollowerHealth[]): void;
}

interface State {
  readonly part: string;
  readonly aside: boolean;
  failures: number;
  since: string;
  error: unknown;
  /** `ticks()` at the first report of `well` since the last failure. */
  wellAt: number | undefined;
  troubledAt: number | undefined;
}

export function followers({ logger }: { readonly logger: Logger }): Followers {
  const states = new Set<State>();
  const elsewhere: (() => readonly FollowerHealth[])[] = [];

  function failed(state: State, error: unknown, asTrouble: boolean): void {
    if (asTrouble && state.troubledAt === undefined)
      logger.warn({ err: error, part: state.part }, `${state.part}: waits for an engine, trying on`);
    const recovered = state.wellAt !== undefined && ticks() - state.wellAt >= STEADY_MS;
    if (recovered) state.failures = 0;
    if (recovered || state.error === undefined) state.since = systemTime();
    state.error = error;
    state.wellAt = undefined;
    state.troubledAt = asTrouble ? (state.troubledAt ?? ticks()) : undefined;
    if (!asTrouble) state.failures += 1;
  }

  function well(state: State): void {
    if (state.wellAt === undefined && state.error !== undefined)
      logger.info({ part: state.part, failures: state.failures }, `${state.part}: works again`);
    state.wellAt ??= ticks();
    state.troubledAt = undefined;
  }

  async function keepRunning(
    state: State,
    run: (context: FollowerRun) => Promise<void>,
    signal: AbortSignal,
    { restartMs: [first, most] = RESTART_MS, expected }: RestartOptions,
  ): Promise<void> {
    const growing = backoff(first, most);
    const context: FollowerRun = {
      signal,
      well: () => well(state),
      onTrouble: (error) => (error === undefined ? well(state) : failed(state, error, true)),
    };
    let wait = growing.next();
    while (!signal.aborted) {
      const cause = await endOf(run, context);
      if (signal.aborted) {
        if (cause !== ENDED) logger.info({ err: cause, part: state.part }, `${state.part}: failed while it was closed`);
        return;
      }
      failed(state, cause, false);
      wait = state.failures === 1 ? growing.next() : wait.next(undefined);
      const happens = state.failures === 1 || cause instanceof UnavailableError || expected?.(cause) === true;
      // Longer waits are for what stays wrong: an engine may be back at any time, and then nothing is to be late.
      const restartMs = cause instanceof UnavailableError ? Math.min(wait.duration, RESTART_MS[1]) : wait.duration;
      logger[happens ? 'warn' : 'error'](
        { err: cause, part: state.part, failures: state.failures, restartMs },
        `${state.part}: failed, starting again`,
      );
      await pause(restartMs, signal);
    }
  }

  return {
    start(part, run, options = {}) {
      const aside = options.aside === true;
      const state: State = {
        part,
        aside,
        failures: 0,
        since: '',
        error: undefined,
        wellAt: undefined,
        troubledAt: undefined,
      };
      const closing = new AbortController();
      states.add(state);
      const running = keepRunning(state, run, closing.signal, options);
      return {
        async close() {
          closing.abort();
          await running;
          states.delete(state);
        },
      };
    },
    health: () => [...[...states].map(healthOf), ...elsewhere.flatMap((read) => read())],
    include(read) {
      elsewhere.push(read);
    },
  };
}

/** A failure whose `publicReason` tells anyone why a follower fails. */
export class PublicReasonError extends Error {
  override readonly name: string = 'PublicReasonError';
  readonly publicReason: string;
  constructor(message: string, publicReason: string, options?: ErrorOptions) {
    super(message, options);
    this.publicReason = publicReason;
  }
}

const ENDED = new Error('it ended though nothing closed it');

async function endOf(run: (context: FollowerRun) => Promise<void>, context: FollowerRun): Promise<unknown> {
  try {
    await run(context);
    return ENDED;
  } catch (error) {
    return error;
  }
}

function healthOf({ part, aside, failures, since, error, wellAt, troubledAt }: State): FollowerHealth {
  const named = aside ? ({ part, aside } as const) : { part };
  const now = ticks();
  if (error === undefined || (wellAt !== undefined && now - wellAt >= SETTLED_MS))
    return { ...named, failing: false, failures: 0 };
  const failing = failures > 1 || (troubledAt !== undefined && now - troubledAt >= TROUBLED_MS);
  return { ...named, failing, since, failures, why: describeFailure(error), error: classOf(error) };
}

/** Text that follows the follower's name in a message. */
export function describeFailing({
  since,
  failures,
  why,
}: {
  readonly since?: string | undefined;
  readonly failures: number;
  readonly why?: string | undefined;
}): string {
  const often = failures > 1 ? `, ${failures} times in a row` : '';
  return `fails since ${since ?? 'an unknown time'}${often}: ${why ?? 'for an unknown reason'}`;
}

const classOf = (error: unknown): string => (error instanceof Error ? error.name : 'unknown');

/** Reason that anyone may see: it contains no path, no address, and nothing from a request. */
function describeFailure(error: unknown): string {
  if (error instanceof UnavailableError) return error.publicReason ?? ENGINE_AWAY;
  if (error === ENDED) return ENDED.message;
  if (error instanceof PublicReasonError) return error.publicReason;
  return `${error instanceof Error ? error.name : 'an error of no class'}: see the log of that process`;
}
