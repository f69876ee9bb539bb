import type { ReadStore } from '../../ports/readStore.js';
import { isDuplicateId } from './failures.js';
import { META } from './layout.js';
import type { Connection } from './connection.js';

type Pointers = Pick<ReadStore, 'active' | 'activate' | 'deactivate'>;

interface Pointer {
  readonly _id: string;
  readonly version: number;
}

export function createPointers(connection: Connection): Pointers {
  async function active(name: string): Promise<number | undefined> {
    const pointer = await connection.read((database) =>
      database.collection<Pointer>(META).findOne({ _id: idOf(name) }),
    );
    return pointer?.version;
  }

  /** Sets the active version where the present one is among `before`. @param before `undefined`: any version */
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
  };
}

function idOf(name: string): string {
  return `active/${name}`;
}
