/** Which version of a collection is in use, and which log the store was filled from. */
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../../ports/unavailable.js';
import { isDuplicateId } from './failures.js';
import { META } from './layout.js';
import type { Link } from './link.js';

/** The single documents beside the collections. */
export interface Pointers {
  active(name: string): Promise<number | undefined>;
  activate(name: string, version: number): Promise<void>;
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
/** Another process's binding is had once a majority of the servers has it: so often is asked, and so long between, in ms. */
const ATTEMPTS = 20;
const PAUSE_MS = 50;

/** @param link to the server. */
export function createPointers(link: Link): Pointers {
  return {
    async active(name) {
      const pointer = await link.read((database) => database.collection<Pointer>(META).findOne({ _id: idOf(name) }));
      return pointer?.version;
    },
    async activate(name, version) {
      const set = (upsert: boolean): Promise<unknown> => link.write((database) => database.collection<Pointer>(META).updateOne({ _id: idOf(name) }, { $set: { version } }, { upsert }));
      // Another client's first one came in between: this one goes over it.
      await set(true).catch((error: unknown) => (isDuplicateId(error) ? set(false) : Promise.reject(error as Error)));
    },
    async boundTo(logId) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt > 0) await sleep(PAUSE_MS);
        const present = await link.read((database) => database.collection<Binding>(META).findOne({ _id: LOG }, { readConcern: { level: 'majority' } }));
        if (present !== null) return present.logId;
        const bound = await link.write((database) => database.collection<Binding>(META).insertOne({ _id: LOG, logId })).catch((error: unknown) => {
          if (!isDuplicateId(error)) throw error;
        });
        if (bound !== undefined) return logId;
      }
      throw new UnavailableError('another process binds the read store, and its word does not reach a majority of the servers');
    },
  };
}

function idOf(name: string): string {
  return `active/${name}`;
}
