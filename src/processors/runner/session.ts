/** The process managers at work while their lease is held. */
import { parkedNameOf, type WorkParked } from '../../domain/parked.js';
import { LOW_PRIORITY_SLICE_MS, inSlices, slices } from '../../lib/async/slices.js';
import { within } from '../../lib/async/within.js';
import type { EventBatch, Position } from '../../ports/eventStore.js';
import type { FollowerRun } from '../../runtime/supervision/followers.js';
import { type Job, jobRunner, type PoolSize } from './jobs.js';
import { type Asked, openWork, REOPEN } from './openWork.js';
import type { AnyManager } from './processManager.js';
import { reopen } from './reopen.js';
import { NotOursError } from './retry.js';
import type { ProcessTally } from './status.js';
import type { StepDeps } from './stepDeps.js';
import { openWriter } from './writing.js';

const REOPENINGS: PoolSize = { atOnce: 128 };
const BATCH_SIZE = 500;
/** A checkpoint only spares reading: one that is some events old does no harm. */
const CHECKPOINT_EVERY_MS = 1_000;
/** How long running jobs are waited for at the end; the log has the rest. */
const FINISH_MS = 5_000;

export interface ProcessManagers<D> {
  readonly managers: readonly AnyManager<D>[];
  /** What a session's jobs work with. */
  open(deps: StepDeps): D;
}

export interface SessionDeps<D> extends Omit<StepDeps, 'writer' | 'mayAct' | 'wake'> {
  readonly processes: ProcessManagers<D>;
  readonly tally: ProcessTally;
  /** Gets told that the session has caught up, and of failures of the feed that are waited out. */
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
}

export interface SessionOptions {
  /** The feed starts after it. */
  readonly from: Position | undefined;
  /** Gets the position where another session may start. Must not throw. */
  readonly checkpoint: (position: Position) => Promise<void>;
  /** Ends the session. */
  readonly signal: AbortSignal;
  /** Whether this process may act at this moment. */
  readonly held: () => boolean;
}

/** Works until `signal`; what runs then is finished first. @throws Error when the feed breaks. */
export async function workThrough<D>(
  { processes, tally, health, ...deps }: SessionDeps<D>,
  { from, checkpoint, signal, held }: SessionOptions,
): Promise<void> {
  const { events, logger, now, retryPolicy } = deps;
  const types = feedTypes(processes.managers);
  const open = openWork(processes.managers, from);
  const writer = openWriter(events, now);
  const mayAct = (): void => {
    if (signal.aborted || !held()) throw new NotOursError('the work may have passed to another process');
  };
  const jobs = jobRunner({
    writer,
    logger,
    ticks: () => performance.now(),
    retryPolicy,
    tally,
    held,
    mayAct,
    signal,
    timesParked: open.timesParked,
  });
  const stepDeps = processes.open({ ...deps, writer, mayAct, wake: jobs.wake });

  const reopenJob = ({ manager, intent: { instance } }: Asked<D>): Job => ({
    key: `${REOPEN}/${manager.name}/${instance}`,
    pool: REOPENINGS,
    transactionId: instance,
    parkAs: { name: manager.name, entity: instance, step: open.reopening(manager, instance)?.step ?? REOPEN },
    cause: () => open.reopening(manager, instance)?.cause,
    run: async () => {
      if (open.reopening(manager, instance) === undefined) return;
      for (const asked of await reopen(open, events, manager, instance)) act(asked);
    },
  });

  const takeOn = (some: Iterator<Job>): void => {
    if (signal.aborted) return;
    const time = slices(LOW_PRIORITY_SLICE_MS);
    for (let next = some.next(); next.done !== true; next = some.next()) {
      jobs.takeOn(next.value);
      if (time.due()) return void setImmediate(takeOn, some);
    }
  };

  const act = (asked: Asked<D>): void => {
    const { manager, intent } = asked;
    if (intent.do === REOPEN) return jobs.takeOn(reopenJob(asked));
    const done = (): void => open.done(asked).forEach(act);
    takeOn(withDone(manager.jobs(intent, open, stepDeps), manager.done === undefined ? undefined : done));
  };

  let saved = { position: from, at: Number.NEGATIVE_INFINITY };
  const save = async (): Promise<void> => {
    const position = open.checkpoint();
    if (position === undefined || position === saved.position) return;
    if (!signal.aborted && performance.now() - saved.at < CHECKPOINT_EVERY_MS) return;
    saved = { position, at: performance.now() };
    await checkpoint(position);
  };

  let caughtUp = false;
  // A function of its own: what it makes would stay in memory for as long as the session's own frame.
  const fold = ({ events: batch, position }: EventBatch): void => {
    // A batch is folded as a whole first: of a gift that is issued and cancelled in one append, nobody is notified.
    const asked: Asked<D>[] = [];
    for (const event of batch) {
      asked.push(...open.apply(event));
      if (event.type === 'WorkParked')
        jobs.parkingSeen(parkedNameOf(event.stream), (event.data as WorkParked['data']).entity);
    }
    open.lookedAt(position);
    if (caughtUp) asked.forEach(act);
  };
  // There may be tens of thousands; jobs change the open work meanwhile.
  const resume = (): Promise<void> => inSlices([...open.resume()], act);

  tally.started(() => ({ caughtUp, position: open.position, open: open.size, oldestAt: open.oldestAt }));
  try {
    for await (const batch of events.follow(
      from,
      { types },
      { signal, batchSize: BATCH_SIZE, onTrouble: health.onTrouble },
    )) {
      fold(batch);
      if (batch.caughtUp && !caughtUp) {
        caughtUp = true;
        await resume();
        logger.info({ open: open.size }, 'process managers have caught up');
      }
      if (caughtUp) health.well();
      await save();
    }
  } finally {
    await within(jobs.stop(), FINISH_MS, () => undefined);
    tally.ended();
    await save();
  }
}

/** The types of the events that these managers follow. */
export function feedTypes(managers: readonly Pick<AnyManager, 'events'>[]): readonly string[] {
  return [...new Set(managers.flatMap(({ events }) => Object.keys(events)))];
}

function* withDone(jobs: Iterable<Job>, done: (() => void) | undefined): Generator<Job, void> {
  for (const job of jobs) yield done === undefined ? job : { ...job, done };
}
