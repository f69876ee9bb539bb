import { setTimeout as sleep } from 'node:timers/promises';
import type { ReadStore } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { isDuplicateId } from './failures.js';
import { META } from './layout.js';
import type { Connection } from './connection.js';

export type Pointers = Pick<ReadStore, 'active' | 'activate' | 'deactivate' | 'boundTo'>;

interface Pointer {
  readonly _id: string;
  readonly version: number;
}

interface Binding {
  readonly _id: string;
  readonly logId: string;
}

const LOG = 'log';
/** Until a majority of the servers has another process's binding. */
const ATTEMPTS = 20;
const PAUSE_MS = 50;

export function createPointers(connection: Connection): Pointers {
  async function active(name: string): Promise<number | undefined> {
    const pointer = await connection.read((database) =>
      database.collection<Pointer>(META).findOne({ _id: idOf(name) }),
    );
    return pointer?.version;
  }

  /** @param before `undefined`: any version */
  async function set(
    name: string,
    version: number,
    before: readonly number[] | undefined,
    upsert: boolean,
  ): Promise<boolean> {
    const filter = { _id: idOf(name), ...(before === undefined ? {} : { version: { $in: [...before] } }) };
    const { matchedCount, upsertedCount } = await connection.write((database) =>
      database.collection<Pointer>(META).updateOne(filter, { $set: { version } }, { upsert }),
    );
    return matchedCount + upsertedCount === 1;
  }

  return {
    active,
    async activate(name, version, { expected } = {}) {
      try {
        // Where another version is active, the upsert meets its id and fails.
        if (expected === undefined) return await set(name, version, undefined, true);
        return await set(name, version, expected === 0 ? [version] : [expected, version], expected === 0);
      } catch (error) {
        if (!isDuplicateId(error)) throw error;
        // Another version is active: only a call without `expected` replaces it.
        return expected === undefined ? set(name, version, undefined, false) : (await active(name)) === version;
      }
    },
    async deactivate(name, version) {
      await connection.write((database) => database.collection<Pointer>(META).deleteOne({ _id: idOf(name), version }));
      return (await active(name)) === undefined;
    },
    async boundTo(logId) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt > 0) await sleep(PAUSE_MS);
        const present = await connection.read((database) =>
          database.collection<Binding>(META).findOne({ _id: LOG }, { readConcern: { level: 'majority' } }),
        );
        if (present !== null) return present.logId;
        const bound = await connection
          .write((database) => database.collection<Binding>(META).insertOne({ _id: LOG, logId }))
          .catch((error: unknown) => {
            if (!isDuplicateId(error)) throw error;
          });
        if (bound !== undefined) return logId;
      }
      throw new UnavailableError(
        'another process binds the read store, and its word does not reach a majority of the servers',
      );
    },
  };
}

function idOf(name: string): string {
  return `active/${name}`;
}
