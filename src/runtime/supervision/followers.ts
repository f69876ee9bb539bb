/**
 * The followers of a process run as long as it does: process managers, projector, catalogue. One that ends for any
 * reason but closing is started again. Readiness, metrics and status have their health from here.
 */
import { ExponentialBackoff, halfJitterGenerator } from 'cockatiel';
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import { UnavailableError } from '../../ports/unavailable.js';

/**
 * Waits before a follower is started again, in ms: the first and the longest. They double, less up to half by chance.
 */
const RESTART_MS = [100, 5_000] as const;
/**
 * After so long a follower has recovered, in ms: its next failure counts as the first. Longer than the longest wait.
 */
const STEADY_MS = 6_000;
/**
 * After so long a follower is not failing any more, in ms: not one that starts, works for an instant and fails again.
 */
const SETTLED_MS = 1_000;
/** A follower whose engine has not answered for so long, in ms, is failing. A reconnection takes less. */
const TROUBLED_MS = 2_000;

export interface FollowerHealth {
  /** One of a few names that the program gives. */
  readonly part: string;
  /** Whether it fails again and again, or its engine has not answered for some time. */
  readonly failing: boolean;
  /** When it first failed, ISO 8601, UTC; absent: it works. */
  readonly since?: string;
  /** How often it has failed without having recovered. */
  readonly failures: number;
  /** Why, in words for anybody, without a path or an address; absent: it works. */
  readonly why?: string;
}

export interface FollowerRun {
  /** Aborted when it is closed: it may end only then. */
  readonly signal: AbortSignal;
  /** Says that it works: it has caught up, waits for events, or stands by. Cheap. */
  well(): void;
  /** Says that a failure is waited out; with `undefined` it is `well`. */
  onTrouble(error: Error | undefined): void;
}

export interface RestartOptions {
  /** See `RESTART_MS`. */
  readonly restartMs?: readonly [first: number, most: number];
  /** Failures that are logged as a warning, as an engine that does not answer and any first failure are. */
  readonly expected?: (error: unknown) => boolean;
}

export interface Followers {
  /** Starts one, and again whenever it ends. @returns closes it: resolves when `run` has ended, and never rejects */
  start(
    part: string,
    run: (context: FollowerRun) => Promise<void>,
    options?: RestartOptions,
  ): { close(): Promise<void> };
  /** How all of them fare, with those of other threads. */
  health(): readonly FollowerHealth[];
  /** Adds followers of another thread. */
  include(read: () => readonly FollowerHealth[]): void;
}

export interface FollowersOptions {
  readonly logger: Logger;
  /** Milliseconds since the epoch; default the system's clock. */
  readonly now?: () => number;
}

interface State {
  readonly part: string;
  failures: number;
  since: string;
  /** The last one; `undefined`: none yet. */
  error: unknown;
  /** Since when it works, and since when its engine does not answer, by `performance.now()`. */
  wellAt: number | undefined;
  troubledAt: number | undefined;
}

/** Makes room for the followers of one process. */
export function followers({ logger, now = Date.now }: FollowersOptions): Followers {
  const states = new Set<State>();
  const elsewhere: (() => readonly FollowerHealth[])[] = [];

  function failed(state: State, error: unknown, asTrouble: boolean): void {
    if (asTrouble && state.troubledAt === undefined)
      logger.warn({ err: error, part: state.part }, `${state.part}: waits for an engine, trying on`);
    const recovered = state.wellAt !== undefined && performance.now() - state.wellAt >= STEADY_MS;
    if (recovered) state.failures = 0;
    if (recovered || state.error === undefined) state.since = new Date(now()).toISOString();
    state.error = error;
    state.wellAt = undefined;
    state.troubledAt = asTrouble ? (state.troubledAt ?? performance.now()) : undefined;
    if (!asTrouble) state.failures += 1;
  }

  function well(state: State): void {
    if (state.wellAt === undefined && state.error !== undefined)
      logger.info({ part: state.part, failures: state.failures }, `${state.part}: works again`);
    state.wellAt ??= performance.now();
    state.troubledAt = undefined;
  }

  async function keepRunning(
    state: State,
    run: (context: FollowerRun) => Promise<void>,
    signal: AbortSignal,
    { restartMs: [first, most] = RESTART_MS, expected }: RestartOptions,
  ): Promise<void> {
    const growing = new ExponentialBackoff({ initialDelay: first, maxDelay: most, generator: halfJitterGenerator });
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
      logger[happens ? 'warn' : 'error'](
        { err: cause, part: state.part, failures: state.failures, restartMs: wait.duration },
        `${state.part}: failed, starting again`,
      );
      await pause(wait.duration, signal);
    }
  }

  return {
    start(part, run, options = {}) {
      const state: State = { part, failures: 0, since: '', error: undefined, wellAt: undefined, troubledAt: undefined };
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

const ENDED = new Error('it ended though nothing closed it');

async function endOf(run: (context: FollowerRun) => Promise<void>, context: FollowerRun): Promise<unknown> {
  try {
    await run(context);
    return ENDED;
  } catch (error) {
    return error;
  }
}

function healthOf({ part, failures, since, error, wellAt, troubledAt }: State): FollowerHealth {
  const now = performance.now();
  if (error === undefined || (wellAt !== undefined && now - wellAt >= SETTLED_MS))
    return { part, failing: false, failures: 0 };
  const failing = failures > 1 || (troubledAt !== undefined && now - troubledAt >= TROUBLED_MS);
  return { part, failing, since, failures, why: failureWords(error) };
}

/** How a failing follower fares, in words for anybody: to follow its name. */
export function failingWords({
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

/** A failure for anybody to read: no path, no address, nothing that a caller sent. */
function failureWords(error: unknown): string {
  if (error instanceof UnavailableError) return error.publicReason ?? 'an engine does not answer';
  if (error === ENDED) return ENDED.message;
  return `${error instanceof Error ? error.name : 'an error of no class'}: see the log of that process`;
}
