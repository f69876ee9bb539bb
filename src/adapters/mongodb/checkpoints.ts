import type { Position } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { checkpointWaiters, type CheckpointWaiters } from '../checkpointWaiters.js';
import type { Positioned } from './guarded.js';
import { CHECKPOINTS } from './layout.js';
import type { Connection } from './connection.js';

export interface Checkpoints
  extends Pick<CheckpointWaiters, 'advanced' | 'forget' | 'close'>, Pick<ReadStore, 'reached'> {
  stored(projection: string): Promise<Position | undefined>;
}

/** Milliseconds from an answer to the next query for checkpoints. */
const POLL_MS = 15;

export function createCheckpoints(connection: Pick<Connection, 'read'>): Checkpoints {
  const waiters = checkpointWaiters(poll);
  let looking = false;
  let next = 0;
  let closed = false;

  async function read(projections: readonly string[]): Promise<Positioned[]> {
    // A checkpoint that a failover takes back would leave a projection ahead of lost documents.
    const found = await connection.read((database) =>
      database
        .collection<Positioned>(CHECKPOINTS)
        .find({ _id: { $in: projections } }, { readConcern: { level: 'majority' }, batchSize: projections.length + 1 })
        .toArray(),
    );
    for (const { _id, p } of found) waiters.advanced(_id, p);
    return found;
  }

  function poll(): void {
    if (looking || performance.now() < next) return;
    looking = true;
    const requested = waiters.projections();
    void read(requested)
      .catch((error: unknown) => waiters.fail(requested, error))
      .finally(() => {
        looking = false;
        next = performance.now() + POLL_MS;
      });
  }

  async function stored(projection: string): Promise<Position | undefined> {
    return (await read([projection]))[0]?.p;
  }

  return {
    stored,
    advanced: waiters.advanced,
    forget: waiters.forget,
    async reached(projection, position, timeoutMs) {
      if (closed) throw new UnavailableError('the read store is closed');
      if (waiters.known(projection, position)) return true;
      if (timeoutMs <= 0) {
        const now = await stored(projection);
        return now !== undefined && now >= position;
      }
      if (waiters.projections().length === 0) next = 0;
      const reached = waiters.wait(projection, position, timeoutMs);
      poll();
      return reached;
    },
    close() {
      closed = true;
      waiters.close();
    },
  };
}
