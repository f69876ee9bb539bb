/** Which version of a collection is in use, and which log the store was filled from. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ActivateOptions } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { isDuplicateId } from './failures.js';
import { META } from './layout.js';
import type { Link } from './connection.js';

/** The single documents beside the collections. */
export interface Pointers {
  active(name: string): Promise<number | undefined>;
  activate(name: string, version: number, options?: ActivateOptions): Promise<boolean>;
  deactivate(name: string, version: number): Promise<boolean>;
  boundTo(logId: string): Promise<string>;
}

interface Pointer {
  readonly _id: string;
  readonly version: number;
}

interface Binding {
  readonly _id: string;
  readonly logId: string;
}

const LOG = 'log';
/**
 * Another process's binding is had once a majority of the servers has it: so often is asked, and so long between, in
 * ms.
 */
const ATTEMPTS = 20;
const PAUSE_MS = 50;

/** @param link to the server. */
export function createPointers(link: Link): Pointers {
  async function active(name: string): Promise<number | undefined> {
    const pointer = await link.read((database) => database.collection<Pointer>(META).findOne({ _id: idOf(name) }));
    return pointer?.version;
  }

  /**
   * Sets the pointer where it is one of `before`; `undefined`: whatever it is. @returns whether it was there to be set
   */
  async function set(
    name: string,
    version: number,
    before: readonly number[] | undefined,
    upsert: boolean,
  ): Promise<boolean> {
    const filter = { _id: idOf(name), ...(before === undefined ? {} : { version: { $in: [...before] } }) };
    const { matchedCount, upsertedCount } = await link.write((database) =>
      database.collection<Pointer>(META).updateOne(filter, { $set: { version } }, { upsert }),
    );
    return matchedCount + upsertedCount === 1;
  }

  return {
    active,
    async activate(name, version, { expected } = {}) {
      try {
        // An upsert that finds another version meets its id: it makes the first one, or none.
        if (expected === undefined) return await set(name, version, undefined, true);
        return await set(name, version, expected === 0 ? [version] : [expected, version], expected === 0);
      } catch (error) {
        if (!isDuplicateId(error)) throw error;
        // Another client's first one came in between, or was there: it is gone over only where whatever is in use may
        // be.
        return expected === undefined ? set(name, version, undefined, false) : (await active(name)) === version;
      }
    },
    async deactivate(name, version) {
      await link.write((database) => database.collection<Pointer>(META).deleteOne({ _id: idOf(name), version }));
      return (await active(name)) === undefined;
    },
    async boundTo(logId) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt > 0) await sleep(PAUSE_MS);
        const present = await link.read((database) =>
          database.collection<Binding>(META).findOne({ _id: LOG }, { readConcern: { level: 'majority' } }),
        );
        if (present !== null) return present.logId;
        const bound = await link
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
