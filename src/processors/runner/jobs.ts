/** Runs jobs in parallel until they are done or parked. At most one job per key is in hand. */
import type { Logger } from 'pino';
import {
  parkedId,
  type ParkedName,
  parkedStream,
  type ParkedWork,
  parkingId,
  type WorkParked,
} from '../../domain/parked.js';
import { afterTicks } from '../../lib/clock.js';
import { randomFraction } from '../../lib/world.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { NotOursError } from '../../runtime/coordination/index.js';
import { inSpan, type SpanDescription } from '../../tracing/spans.js';
import { openPool, type Pool } from './pool.js';
import { afterFailure, NotYetError, passes, type RetryPolicy } from './retry.js';
import type { Cause } from './cause.js';
import type { ProcessTally } from './status.js';
import type { Writer } from './writing.js';

/** Size of a pool. Jobs that name the same object share a pool. */
export interface PoolSize {
  readonly atOnce: number;
}

export type ParkAs = Pick<ParkedWork, 'entity' | 'step'> & { readonly name: ParkedName };

export interface Job {
  readonly key: string;
  readonly pool: PoolSize;
  /** Id of the job's transaction: transactions take turns in a pool. */
  readonly transactionId: string;
  readonly parkAs: ParkAs;
  readonly run: (attempt: number) => Promise<void>;
  /** The event that requested the job; `undefined`: the work is no longer open. */
  readonly cause: () => Cause | undefined;
  /** Called when the job has ended well, unless it was requested again while it ran. */
  readonly done?: () => void;
  /** The job is not repeated where it is requested again while in hand. */
  readonly once?: true;
}

interface InHand {
  /** The job as requested again while in hand, since the running attempt may have read old state. */
  again: Job | undefined;
  /** Ends the pause before the next attempt; `undefined` while the job runs or is queued. */
  wake: (() => void) | undefined;
  /** Whether the running attempt was woken: it may have looked before what it waits for was there. */
  woken: boolean;
  /** Whether a failure of the job was logged. */
  logged: boolean;
}

/**
 * A run of failures. `since`: its start by `JobDeps.ticks`; `before`: attempts until then; `failures`: those that do
 * not pass by themselves, so that an outage does not count. A limit of our own is no failure, and starts a new run.
 */
interface Failing {
  readonly since: number;
  readonly before: number;
  readonly failures: number;
}

interface JobDeps {
  readonly writer: Pick<Writer, 'append'>;
  readonly logger: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly ticks: () => number;
  readonly retryPolicy: RetryPolicy;
  readonly tally: ProcessTally;
  /** Whether this process may act at this moment. While it may not, no attempt starts. */
  readonly held: () => boolean;
  /** @throws NotOursError while this process may not act */
  readonly mayAct: () => void;
  readonly signal: AbortSignal;
  readonly timesParked: (name: ParkedName, entity: string) => number;
}

export interface JobRunner {
  /**
   * Starts a job. Where one with its key is in hand, that runs again after the present attempt, or at once if it waits
   * for the next. A job marked `once` is not repeated.
   */
  takeOn(job: Job): void;
  /** Ends the pause of a job, or has the next attempt follow the running one without a pause. */
  wake(key: string): void;
  /**
   * The feed has shown this parking: the entity may be parked again. `name` undefined: not parked by a process manager.
   */
  parkingSeen(name: ParkedName | undefined, entity: string): void;
  /** Whether work waits for a limit of our own, such as that of messages to one number: nothing is wrong with it. */
  isHeldBack(name: string, entity: string): boolean;
  /** Drops waiting jobs; resolves when running ones have ended. */
  stop(): Promise<void>;
}

/** The jobs of a runner. */
interface Jobs extends JobDeps {
  readonly inHand: Map<string, InHand>;
  /** Ids of work that this session has parked, until the feed shows the parking. */
  readonly parkedHere: Set<string>;
  /** Names and entities of work that waits for a limit of our own. */
  readonly heldBack: Set<string>;
  readonly pools: Map<PoolSize, Pool>;
  /** What ends the pauses before the next attempts. */
  readonly waits: Set<() => void>;
}

export function jobRunner(deps: JobDeps): JobRunner {
  const jobs: Jobs = {
    ...deps,
    inHand: new Map(),
    parkedHere: new Set(),
    heldBack: new Set(),
    pools: new Map(),
    waits: new Set(),
  };
  const { inHand, parkedHere, heldBack, pools, waits, signal, tally } = jobs;
  return {
    takeOn(job) {
      // A batch may show an entity's work and its parking: what was requested in between is not open any more.
      if (signal.aborted || job.cause() === undefined) return undefined;
      const known = inHand.get(job.key);
      if (known !== undefined) {
        if (job.once === true) return undefined;
        known.again = job;
        return known.wake?.();
      }
      const own: InHand = { again: undefined, wake: undefined, woken: false, logged: false };
      inHand.set(job.key, own);
      tally.takenOn(job.parkAs.step);
      return start(jobs, job, own);
    },
    wake(key) {
      const known = inHand.get(key);
      if (known?.wake !== undefined) known.wake();
      else if (known !== undefined) known.woken = true;
    },
    parkingSeen: (name, entity) => void (name !== undefined && parkedHere.delete(parkedId(name, entity))),
    isHeldBack: (name, entity) => heldBack.has(workOf({ name, entity })),
    async stop() {
      for (const endWait of waits) endWait();
      await Promise.all([...pools.values()].map((pool) => pool.stop()));
    },
  };
}

const workOf = ({ name, entity }: { readonly name: string; readonly entity: string }): string => `${name}/${entity}`;

function start(jobs: Jobs, job: Job, own: InHand): void {
  attempt(jobs, job, own, 1, { since: jobs.ticks(), before: 0, failures: 0 });
}

function attempt(jobs: Jobs, job: Job, own: InHand, number: number, failing: Failing): void {
  own.again = undefined;
  poolOf(jobs, job.pool).add(job.transactionId, async () => {
    own.woken = false;
    const ended = await outcomeOf(jobs, job, own, number, failing);
    if (ended === 'stopped') return;
    const { next, isLimited } = ended;
    jobs.heldBack[isLimited ? 'add' : 'delete'](workOf(job.parkAs));
    const again = await parkedOr(jobs, job, ended.again);
    if (own.again !== undefined) return start(jobs, own.again, own);
    if (again === undefined || 'cause' in again) {
      jobs.inHand.delete(job.key);
      jobs.tally.done(job.parkAs.step);
      if (again === undefined) job.done?.();
      return undefined;
    }
    const endWait = afterTicks(again.waitMs, () => own.wake?.());
    jobs.waits.add(endWait);
    own.wake = () => {
      own.wake = undefined;
      endWait();
      jobs.waits.delete(endWait);
      attempt(jobs, own.again ?? job, own, number + 1, next);
    };
    if (own.woken) own.wake();
    return undefined;
  });
}

function poolOf({ pools, held }: Jobs, size: PoolSize): Pool {
  const known = pools.get(size);
  if (known !== undefined) return known;
  const pool = openPool(size.atOnce, held);
  pools.set(size, pool);
  return pool;
}

/** When a job is to be tried again, or why it is to be parked; `undefined`: it is done. */
type Again = ReturnType<typeof afterFailure> | undefined;

/** Runs a job once. @returns what is next; `stopped`: it failed while the runner ends */
async function outcomeOf(
  { signal, tally, ticks, retryPolicy, logger, parkedHere }: Jobs,
  job: Job,
  own: InHand,
  number: number,
  failing: Failing,
): Promise<{ readonly again: Again; readonly next: Failing; readonly isLimited: boolean } | 'stopped'> {
  try {
    await inSpan(
      () => stepSpan(job, number),
      () => job.run(number),
    );
    return { again: undefined, next: failing, isLimited: false };
  } catch (error) {
    if (signal.aborted) return 'stopped';
    const { name, step, entity } = job.parkAs;
    const failed = !(error instanceof NotYetError || error instanceof NotOursError);
    if (failed) tally.failed(step);
    const { since, before } = failing;
    const failures = failing.failures + (passes(error) ? 0 : 1);
    const moment = { attempt: number - before, failures, heldUpMs: ticks() - since };
    const again = afterFailure(error, moment, retryPolicy, randomFraction());
    // A job that the feed requests again before it shows the parking was already logged.
    if (number === 1 && failed && !own.logged && !parkedHere.has(parkedId(name, entity))) {
      own.logged = true;
      logger.warn({ err: error, step, entity: entity.slice(0, 6) }, 'not done at the first attempt');
    }
    const isLimited = error instanceof RetryLaterError && error.limited;
    return {
      again,
      isLimited,
      next: isLimited ? { since: ticks(), before: number, failures: 0 } : { since, before, failures },
    };
  }
}

/** Parks a job that is to be parked. @returns what is next: another try where it could not be parked */
async function parkedOr(jobs: Jobs, job: Job, again: Again): Promise<Again> {
  if (again === undefined || !('cause' in again)) return again;
  try {
    await park(jobs, job, again.cause);
    return again;
  } catch (error) {
    jobs.logger.warn({ err: error }, 'not parked yet');
    return { waitMs: jobs.retryPolicy.retryAtMostMs };
  }
}

async function park(jobs: Jobs, { parkAs, transactionId, cause }: Job, why: string): Promise<void> {
  const { parkedHere, writer, tally, logger } = jobs;
  const { name, entity, step } = parkAs;
  const requested = cause();
  const id = parkedId(name, entity);
  if (requested === undefined || parkedHere.has(id)) return;
  jobs.mayAct();
  const data = {
    entity,
    transaction_id: transactionId,
    step,
    cause: why,
    event_id: requested.id,
    times: jobs.timesParked(name, entity) + 1,
  };
  const event: WorkParked = { type: 'WorkParked', data };
  parkedHere.add(id);
  try {
    await writer.append(parkedStream(name), event, 'any', {
      commandId: `park-${step}-${entity}`,
      cause: requested,
      eventId: parkingId(name, data),
    });
  } catch (error) {
    parkedHere.delete(id);
    throw error;
  }
  tally.parked(step);
  logger.error({ step, entity: entity.slice(0, 6), cause: why }, 'parked: it could not be done');
}

function stepSpan({ parkAs, cause }: Job, attempt: number): SpanDescription {
  return {
    name: `step ${parkAs.step}`,
    kind: 'consumer',
    parent: cause()?.traceparent ?? '',
    attributes: { 'gift.step': parkAs.step, 'gift.attempt': attempt },
  };
}
