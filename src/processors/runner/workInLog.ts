/** Open work as the log tells it, for the status: independently of the process that does the work. */
import type { ParkedName } from '../../domain/parked.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { inSlices } from '../../lib/async/slices.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { REOPEN } from './foldEvent.js';
import { type OpenWork, openWork } from './openWork.js';
import type { AnyManager } from './processManager.js';
import { reopen } from './reopen.js';
import { feedTypes } from './session.js';

const STREAMS_AT_ONCE = 8;

export interface WorkInLog {
  /** Number of open intents of each name under which work is parked. */
  readonly inFlight: ReadonlyMap<ParkedName, number>;
  /** See `OpenWork`. */
  readonly size: number;
  readonly checkpoint: Position | undefined;
  readonly oldestAt: string | undefined;
  /** False: time ran out before the log's end. */
  readonly whole: boolean;
}

/** Folds open work from a checkpoint to the log's end, or until `late` is aborted. @throws UnavailableError */
export async function workInLog<D>(
  events: EventStore,
  managers: readonly AnyManager<D>[],
  from: Position | undefined,
  late: AbortSignal,
): Promise<WorkInLog> {
  const open = openWork(managers, from);
  let whole = true;
  for await (const batch of events.readAll(from, { types: feedTypes(managers) }, { signal: late })) {
    await inSlices(batch.events, (event) => void open.apply(event));
    open.foldedTo(batch.position);
    whole = batch.caughtUp;
  }
  // The loop may have ended before its first batch.
  if (late.aborted) whole = false;
  await settleByStreams(events, open, late);
  const inFlight = new Map<ParkedName, number>();
  await inSlices(open.resume(), ({ manager, intent }) => {
    const name = intent.do === REOPEN ? manager.name : manager.parkAs(intent).name;
    inFlight.set(name, (inFlight.get(name) ?? 0) + 1);
  });
  return { inFlight, size: open.size, checkpoint: open.checkpoint(), oldestAt: open.oldestAt, whole };
}

/** Settles open work by its streams where its events are from before the checkpoint, at which the feed starts. */
async function settleByStreams<D>(events: EventStore, open: OpenWork<D>, late: AbortSignal): Promise<void> {
  const requested = [...open.resume()];
  await inParallel(
    requested.filter(({ manager, intent }) => intent.do === REOPEN || manager.settledBefore !== undefined),
    STREAMS_AT_ONCE,
    async (one) => {
      const { manager, intent } = one;
      if (intent.do === REOPEN) await reopen(open, events, manager, intent.instance);
      else if ((await manager.settledBefore?.(events, intent)) === true) open.done(one);
    },
    late,
  );
}
