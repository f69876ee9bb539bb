import { parkedNameOf, type WorkParked } from '../../domain/parked.js';
import { LOW_PRIORITY_SLICE_MS, inSlices, slices } from '../../lib/async/slices.js';
import { within } from '../../lib/async/within.js';
import { clockTicks } from '../../lib/clock.js';
import { soon, ticks } from '../../lib/world.js';
import type { EventBatch, Position } from '../../ports/eventStore.js';
import { whileHeld } from '../../runtime/coordination/index.js';
import type { FollowerRun } from '../../runtime/supervision/followers.js';
import { type Job, jobRunner, type PoolSize } from './jobs.js';
import { type Requested, REOPEN } from './foldEvent.js';
import { openWork } from './openWork.js';
import type { AnyManager } from './processManager.js';
import { reopen } from './reopen.js';
import type { ProcessTally } from './status.js';
import type { StepDeps } from './stepDeps.js';
import { openWriter } from './writing.js';

const REOPENINGS: PoolSize = { atOnce: 128 };
const BATCH_SIZE = 500;
/** Milliseconds between two checkpoints. A checkpoint only spares reading, so a slightly old one does no harm. */
const CHECKPOINT_EVERY_MS = 1_000;
/** Milliseconds that running jobs have at the end. The work of unfinished ones stays open in the log. */
const FINISH_MS = 5_000;

export interface ProcessManagers<D> {
  readonly managers: readonly AnyManager<D>[];
  open(deps: StepDeps): D;
}

export interface SessionDeps<D> extends Omit<StepDeps, 'writer' | 'mayAct' | 'wake'> {
  readonly processes: ProcessManagers<D>;
  readonly tally: ProcessTally;
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
}

interface SessionOptions {
  readonly from: Position | undefined;
  /** Stores the position of a checkpoint; must not throw. */
  readonly checkpoint: (position: Position) => Promise<void>;
  readonly signal: AbortSignal;
  readonly held: () => boolean;
}

/** Works until `signal` is aborted, then waits a little for running jobs. @throws Error when the feed breaks */
export async function workThrough<D>(
  { processes, tally, health, ...deps }: SessionDeps<D>,
  { from, checkpoint, signal, held }: SessionOptions,
): Promise<void> {
  const { events, logger, now, retryPolicy } = deps;
  const types = feedTypes(processes.managers);
  const open = openWork(processes.managers, from);
  const writer = openWriter(events, now);
  const mayAct = whileHeld(held, signal);
  const jobs = jobRunner({
    writer,
    logger,
    ticks: clockTicks,
    retryPolicy,
    tally,
    held,
    mayAct,
    signal,
    timesParked: open.timesParked,
  });
  const stepDeps = processes.open({ ...deps, writer, mayAct, wake: jobs.wake });

  const reopenJob = ({ manager, intent: { instance } }: Requested<D>): Job => ({
    key: `${REOPEN}/${manager.name}/${instance}`,
    pool: REOPENINGS,
    transactionId: instance,
    parkAs: { name: manager.name, entity: instance, step: open.reopening(manager, instance)?.step ?? REOPEN },
    cause: () => open.reopening(manager, instance)?.cause,
    run: async () => {
      if (open.reopening(manager, instance) === undefined) return;
      for (const requested of await reopen(open, events, manager, instance)) act(requested);
    },
  });

  const takeOn = (some: Iterator<Job>): void => {
    if (signal.aborted) return;
    const time = slices(LOW_PRIORITY_SLICE_MS);
    for (let next = some.next(); next.done !== true; next = some.next()) {
      jobs.takeOn(next.value);
      if (time.due()) return soon(() => takeOn(some));
    }
  };

  const act = (requested: Requested<D>): void => {
    const { manager, intent } = requested;
    if (intent.do === REOPEN) return jobs.takeOn(reopenJob(requested));
    const done = (): void => open.done(requested).forEach(act);
    takeOn(withDone(manager.jobs(intent, open, stepDeps), manager.done === undefined ? undefined : done));
  };

  let saved = { position: from, at: Number.NEGATIVE_INFINITY };
  const save = async (): Promise<void> => {
    const position = open.checkpoint();
    if (position === undefined || position === saved.position) return;
    if (!signal.aborted && ticks() - saved.at < CHECKPOINT_EVERY_MS) return;
    saved = { position, at: ticks() };
    await checkpoint(position);
  };

  let caughtUp = false;
  // A separate function: its variables would stay in memory as long as the session's own frame.
  const fold = ({ events: batch, position }: EventBatch): void => {
    // The whole batch is folded before any job starts: a gift issued and cancelled in one append notifies no receiver.
    const requested: Requested<D>[] = [];
    for (const event of batch) {
      requested.push(...open.apply(event));
      if (event.type === 'WorkParked')
        jobs.parkingSeen(parkedNameOf(event.stream), (event.data as WorkParked['data']).entity);
    }
    open.foldedTo(position);
    if (caughtUp) requested.forEach(act);
  };
  // A copy, since there may be tens of thousands of intents, and jobs change the open work concurrently.
  const resume = (): Promise<void> => inSlices([...open.resume()], act);

  tally.started(() => ({
    caughtUp,
    position: open.position,
    open: open.size,
    oldestAt: open.oldestAtBut(jobs.isHeldBack),
  }));
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

export function feedTypes(managers: readonly Pick<AnyManager, 'events'>[]): readonly string[] {
  return [...new Set(managers.flatMap(({ events }) => Object.keys(events)))];
}

function* withDone(jobs: Iterable<Job>, done: (() => void) | undefined): Generator<Job, void> {
  for (const job of jobs) yield done === undefined ? job : { ...job, done };
}
