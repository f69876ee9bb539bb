/** The format mark of a database: a document of `meta` that is written before anything else is. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EngineError } from '../../lib/engineError.js';
import { FORMAT_MARK, formatFault, type FormatMark } from '../../ports/dataFormat.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { MAJORITY_ATTEMPTS, MAJORITY_PAUSE_MS } from './binding.js';
import type { Connection } from './connection.js';
import { isDuplicateId } from './failures.js';
import { ERASURES, META, RECORDS, SUBJECTS } from './layout.js';
import { isRecord } from './records.js';

interface StoredMark extends FormatMark {
  readonly _id: string;
}

const FORMAT = 'format';

/**
 * A collection that each store's database has. One database for both would put the keys into the backups of what they
 * decrypt.
 */
const COLLECTION_OF = { 'read store': RECORDS, 'key store': SUBJECTS } as const;

/**
 * Marks an empty database. @throws EngineError where it has another mark, holds something without one, or holds the
 * other store: nothing is changed then; UnavailableError
 */
export async function refuseOtherFormat(connection: Connection): Promise<void> {
  const { name, setting } = connection.store;
  // The collections are listed first: a process that fills an empty database has marked it before.
  const names = await connection.read(({ db }) => db.listCollections({}, { nameOnly: true }).toArray());
  for (const [other, collection] of Object.entries(COLLECTION_OF))
    if (other !== name && names.some((one) => one.name === collection))
      throw new EngineError(
        setting,
        `the database holds the ${other}, too: name one of its own; collections that are in the wrong one (those of the key store: ${SUBJECTS}, ${ERASURES} and ${META}) can be copied`,
      );
  const isEmpty = names.every((one) => one.name === META) || (await isEmptied(connection, names));
  for (let attempt = 0; attempt < MAJORITY_ATTEMPTS; attempt++) {
    if (attempt > 0) await sleep(MAJORITY_PAUSE_MS);
    const mark = await connection.read((database) =>
      database.collection<StoredMark>(META).findOne({ _id: FORMAT }, { readConcern: { level: 'majority' } }),
    );
    if (mark !== null || !isEmpty) {
      const fault = formatFault(mark ?? {});
      if (fault === undefined) return;
      const orEmpty = name === 'read store' ? ', or name an empty database, which is filled from the log' : '';
      throw new EngineError(setting, `the database ${fault.problem}: ${fault.remedy}${orEmpty}`);
    }
    if (await markFormat(connection)) return;
  }
  throw new UnavailableError(`another process marks the ${name}, and a majority of the servers does not have that yet`);
}

/**
 * Whether a read store holds nothing but records, as where its database was emptied while the service ran: processes
 * write them before a projector, which may have died, fills and marks the database again.
 */
async function isEmptied({ store, read }: Connection, names: readonly { readonly name: string }[]): Promise<boolean> {
  if (store.name !== 'read store' || names.some(({ name }) => name !== META && name !== RECORDS)) return false;
  const one = await read(async (database) => database.collection(RECORDS).findOne());
  // Another program may have a collection of that name.
  return one === null || isRecord(one);
}

/** Marks a database. @returns false where it has a mark */
export async function markFormat(connection: Connection): Promise<boolean> {
  const marked = await connection
    .write((database) => database.collection<StoredMark>(META).insertOne({ _id: FORMAT, ...FORMAT_MARK }))
    .catch((error: unknown) => {
      if (!isDuplicateId(error)) throw error;
    });
  return marked !== undefined;
}
