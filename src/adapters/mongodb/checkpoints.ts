/** One repeated query serves thousands of waiters. */
import type { Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Positioned } from './guarded.js';
import { CHECKPOINTS } from './layout.js';
import type { Connection } from './connection.js';

export interface Checkpoints {
  stored(projection: string): Promise<Position | undefined>;
  advanced(projection: string, position: Position): void;
  forget(projection: string): void;
  /** False after `timeoutMs` or when closed. @throws UnavailableError */
  reached(projection: string, position: Position, timeoutMs: number): Promise<boolean>;
  close(): void;
}

interface Waiter {
  readonly position: Position;
  readonly end: (reached: boolean) => void;
  readonly fail: (error: unknown) => void;
}

/** ms between an answer and the next query. */
const LOOK_MS = 15;

export function createCheckpoints(connection: Pick<Connection, 'read'>): Checkpoints {
  const known = new Map<string, Position>();
  const waiting = new Map<string, Set<Waiter>>();
  let looking = false;
  let next: NodeJS.Timeout | undefined;
  let closed = false;

  async function read(projections: readonly string[]): Promise<Positioned[]> {
    // A checkpoint that a failover takes back would leave a projection ahead of lost documents.
    return connection.read((database) =>
      database
        .collection<Positioned>(CHECKPOINTS)
        .find({ _id: { $in: projections } }, { readConcern: { level: 'majority' }, batchSize: projections.length + 1 })
        .toArray(),
    );
  }

  function advanced(projection: string, position: Position): void {
    const last = known.get(projection);
    if (last !== undefined && last >= position) return;
    known.set(projection, position);
    for (const waiter of waiting.get(projection) ?? []) if (waiter.position <= position) waiter.end(true);
  }

  async function stored(projection: string): Promise<Position | undefined> {
    const position = (await read([projection]))[0]?.p;
    if (position !== undefined) advanced(projection, position);
    return position;
  }

  function look(): void {
    if (looking || next !== undefined || waiting.size === 0) return;
    looking = true;
    const asked = [...waiting.keys()];
    read(asked)
      .then(
        (found) => {
          for (const { _id, p } of found) advanced(_id, p);
        },
        (error: unknown) => {
          for (const projection of asked) for (const waiter of waiting.get(projection) ?? []) waiter.fail(error);
        },
      )
      .finally(() => {
        looking = false;
        if (waiting.size === 0) return;
        next = setTimeout(() => {
          next = undefined;
          look();
        }, LOOK_MS);
      });
  }

  function wait(projection: string, position: Position, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const waiters = waiting.get(projection) ?? new Set();
      waiting.set(projection, waiters);
      const leave = (): void => {
        clearTimeout(timer);
        waiters.delete(waiter);
        if (waiters.size > 0) return;
        waiting.delete(projection);
        if (waiting.size > 0) return;
        clearTimeout(next);
        next = undefined;
      };
      const waiter: Waiter = {
        position,
        end(reached) {
          leave();
          resolve(reached);
        },
        fail(error) {
          leave();
          reject(error as Error);
        },
      };
      const timer = setTimeout(() => waiter.end(false), timeoutMs);
      waiters.add(waiter);
      look();
    });
  }

  return {
    stored,
    advanced,
    forget(projection) {
      known.delete(projection);
    },
    async reached(projection, position, timeoutMs) {
      if (closed) throw new UnavailableError('the read store is closed');
      const last = known.get(projection);
      if (last !== undefined && last >= position) return true;
      if (timeoutMs > 0) return wait(projection, position, timeoutMs);
      const now = await stored(projection);
      return now !== undefined && now >= position;
    },
    close() {
      closed = true;
      for (const waiters of waiting.values()) for (const waiter of waiters) waiter.end(false);
    },
  };
}
