import type { Position } from '../../../ports/eventStore.js';
import type { ReadStore } from '../../../ports/readStore.js';
import { checkpointWaiters, type CheckpointWaiters } from '../../checkpointWaiters.js';

interface StoredCheckpointWaiters
  extends Pick<CheckpointWaiters, 'advanced' | 'forget' | 'close'>, Pick<ReadStore, 'reached'> {}

interface Stored {
  /** Number that changes whenever another connection has written. */
  version(): number;
  checkpoint(projection: string): Position | undefined;
  /** Called for the first waiter of a turn of the event loop, and once more at its end if others came. */
  wanted(): void;
}

export function createCheckpointWaiters(stored: Stored): StoredCheckpointWaiters {
  const waiters = checkpointWaiters(pollForAll);
  /** Projections that this process writes, on any of its threads: a waiter need not read their checkpoints at once. */
  const own = new Set<string>();
  let announced: 'once' | 'more' | undefined;
  let version: number | undefined;

  function poll(projection: string, position: Position): boolean {
    const checkpoint = stored.checkpoint(projection);
    if (checkpoint === undefined) return false;
    waiters.advanced(projection, checkpoint);
    return checkpoint >= position;
  }

  function pollForAll(): void {
    try {
      const now = stored.version();
      if (now !== version) for (const projection of waiters.projections()) poll(projection, '');
      version = now;
    } catch (error) {
      waiters.fail(waiters.projections(), error);
    }
  }

  function announce(): void {
    if (announced !== undefined) {
      announced = 'more';
      return;
    }
    announced = 'once';
    stored.wanted();
    setImmediate(() => {
      // The projector may have polled the log before the events of later waiters were stored.
      if (announced === 'more') stored.wanted();
      announced = undefined;
    });
  }

  return {
    advanced(projection, position) {
      own.add(projection);
      waiters.advanced(projection, position);
    },
    forget: waiters.forget,
    async reached(projection, position, timeoutMs) {
      if (waiters.known(projection, position)) return true;
      // A waiter for an earlier position exists: the checkpoint was read just now, and is read again soon.
      const lowest = waiters.lowest(projection);
      const looked = own.has(projection) || (lowest !== undefined && lowest <= position);
      if ((timeoutMs <= 0 || !looked) && poll(projection, position)) return true;
      if (timeoutMs <= 0) return false;
      // Earlier checks left this projection out.
      if (lowest === undefined) version = undefined;
      const reached = waiters.wait(projection, position, timeoutMs);
      announce();
      return reached;
    },
    close: waiters.close,
  };
}
