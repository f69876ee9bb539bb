import { setTimeout as sleep } from 'node:timers/promises';
import type { AnyBulkWriteOperation, Collection, Filter, UpdateFilter, WithId } from 'mongodb';
import type { Logger } from 'pino';
import { inParallel } from '../../lib/async/inParallel.js';
import { inSlices } from '../../lib/async/slices.js';
import type { ErasureRow, KeyStore, SubjectRow } from '../../ports/keyStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { refuseInvalid, refuseInvalidErasure, refuseInvalidId, refuseLongSecret, takenId } from '../keyStoreRules.js';
import { addressOf, engineErrorOf, KEY_STORE } from './address.js';
import { MAJORITY_ATTEMPTS, MAJORITY_PAUSE_MS } from './binding.js';
import { ensureIndexes, refuseIfEmptied, refuseIfGone } from './collections.js';
import { byKey, inCommands } from './commands.js';
import { BULK_MS, CALL_MS, type Connection, type Database, openConnection } from './connection.js';
import { duplicatesOf } from './failures.js';
import { refuseOtherFormat } from './format.js';
import { ANSWER, findAmong, inParts, SIDE_BY_SIDE, sortedFind } from './finds.js';
import { ERASURES, SUBJECTS } from './layout.js';

interface MongoKeyStoreOptions {
  /** `mongodb://` or `mongodb+srv://`; names the database, which holds nothing else (default `gift_keys`). */
  readonly url: string;
  /** Receives warnings about servers that were lost for long. */
  readonly logger?: Logger | undefined;
}

interface Keyed {
  readonly _id: string;
}

interface Subject extends Keyed {
  /** The lookup; for a removed subject `noLookup` of its id. */
  readonly l: string;
  /** The wrapped secret; a removed subject has none. */
  readonly s?: string;
  /** Present where the subject is fenced. */
  readonly f?: true;
}

interface Present extends Subject {
  readonly s: string;
}

interface Erasure extends Keyed {
  /** The erasure's text (`ErasureRow`). */
  readonly t: string;
}

/** Filter for subjects that are not removed. */
const PRESENT = { s: { $exists: true } } as const;
/** Lookup of a removed subject: the index takes one document a lookup, so each needs one that no other subject has. */
const noLookup = (id: string): string => `.${id}`;
const BY_LOOKUP = { name: 'l', key: { l: 1 }, unique: true } as const;
/**
 * Options of reads. A row that a majority of the servers does not have may still be lost, and with it the meaning of
 * its id.
 */
const OF_A_MAJORITY = { readConcern: { level: 'majority' } } as const;

/**
 * Opens the key store, which any number of processes may share. A lost or silent server fails calls (within 5 s, or 20
 * s for writes and long results); the store recovers by itself.
 * @throws EngineError naming KEYS_URL: an invalid address, no answer, refused credentials, a server too old, data of
 * another format
 */
export async function openMongoKeyStore({ url, logger }: MongoKeyStoreOptions): Promise<KeyStore> {
  const { database, newClient } = addressOf(url, KEY_STORE);
  const connection = openConnection({ store: KEY_STORE, newClient, database, logger });
  try {
    await refuseOtherFormat(connection);
    await ensureIndexes(connection, SUBJECTS, [BY_LOOKUP]);
  } catch (error) {
    await connection.close();
    throw engineErrorOf(error, KEY_STORE);
  }
  let isFilled = false;
  connection.guard(async (db) => {
    await refuseIfGone(db, KEY_STORE, SUBJECTS, [BY_LOOKUP]);
    // A removed subject leaves its document, so no store is emptied by removals.
    isFilled = await refuseIfEmptied(db, KEY_STORE, SUBJECTS, isFilled);
  });

  return {
    engine: 'mongodb',
    async byId(ids) {
      return new Map((await byId(connection, ids)).filter(isPresent).map((subject) => [subject._id, rowOf(subject)]));
    },
    async byLookup(lookups) {
      return new Map((await byLookup(connection, lookups)).map((subject) => [subject.l, rowOf(subject)]));
    },
    async add(rows) {
      await inSlices(rows, refuseInvalid);
      const rowsNow = new Map<string, SubjectRow>();
      for (let left = rows; left.length > 0;) {
        const gone = await addFirst(connection, left, rowsNow);
        left = left.filter(({ id, lookup }) => !gone.has(id) && !rowsNow.has(lookup));
      }
      isFilled ||= rowsNow.size > 0;
      return rowsNow;
    },
    async rewrap(rows) {
      await inSlices(rows, refuseLongSecret);
      const last = [...new Map(rows.map(({ id, secret }) => [id, { _id: id, s: secret }])).values()];
      await inParallel(inCommands(last.sort(byKey(({ _id }) => _id))), SIDE_BY_SIDE, async (command) => {
        if (command.length === 0) return;
        const operations = command.map(({ _id, s }): AnyBulkWriteOperation<Subject> => ({
          updateOne: { filter: { _id, ...PRESENT }, update: { $set: { s } } },
        }));
        await connection.write((db) => subjects(db).bulkWrite(operations, { ordered: false }), BULK_MS);
      });
    },
    async page(...requested) {
      return page<Present, SubjectRow>(connection, SUBJECTS, PRESENT, requested, rowOf);
    },
    fence: async (ids) => changePresent(connection, ids, { $set: { f: true } }),
    unfence: async (ids) => changePresent(connection, ids, { $unset: { f: 1 } }),
    async remove(ids) {
      await inSlices(ids, refuseInvalidId);
      await inParallel(inParts([...new Set(ids)].sort()), SIDE_BY_SIDE, async (some) => {
        await upsert(connection, SUBJECTS, some, (id) => ({ $set: { l: noLookup(id) }, $unset: { s: 1, f: 1 } }));
      });
    },
    async removed(ids) {
      return new Set((await byId(connection, ids)).filter((subject) => !isPresent(subject)).map(({ _id }) => _id));
    },
    async putErasure(row) {
      refuseInvalidErasure(row);
      await upsert(connection, ERASURES, [row.id], () => ({ $set: { t: row.text } }));
    },
    async erasures(...requested) {
      const of = ({ _id, t }: Erasure): ErasureRow => ({ id: _id, text: t });
      return page<Erasure, ErasureRow>(connection, ERASURES, {}, requested, of);
    },
    async ping() {
      connection.checkAgain();
      await connection.read(({ db }) => db.command({ ping: 1 }));
    },
    close: connection.close,
  };
}

/** Subjects by id, including removed ones. */
async function byId(connection: Connection, ids: readonly string[]): Promise<readonly Subject[]> {
  return found(connection, ids, (some) => ({ _id: { $in: some } }));
}

async function byLookup(connection: Connection, lookups: readonly string[]): Promise<readonly Present[]> {
  return (await found(connection, lookups, (some) => ({ l: { $in: some } }))).filter(isPresent);
}

async function found(
  connection: Connection,
  keys: readonly string[],
  filterOf: (some: readonly string[]) => Filter<Subject>,
): Promise<readonly Subject[]> {
  return findAmong<Subject, Subject>(connection, SUBJECTS, keys, filterOf, (one) => one, OF_A_MAJORITY);
}

async function page<D extends Keyed, T>(
  connection: Connection,
  collection: string,
  only: Filter<D>,
  [after, limit]: Parameters<KeyStore['page']>,
  of: (document: WithId<D>) => T,
): Promise<readonly T[]> {
  const filter = after === undefined ? only : ({ ...only, _id: { $gt: after } } as Filter<D>);
  const options = { ...OF_A_MAJORITY, sort: { _id: 1 }, limit } as const;
  return connection.read(
    (db) => sortedFind(db.collection<D>(collection), filter, options, of),
    limit <= ANSWER ? CALL_MS : BULK_MS,
  );
}

/**
 * Adds the first row of each lookup, and puts the rows now stored into `rowsNow`.
 * @returns the ids that were removed before
 */
async function addFirst(
  connection: Connection,
  rows: readonly SubjectRow[],
  rowsNow: Map<string, SubjectRow>,
): Promise<ReadonlySet<string>> {
  const first = new Map<string, Present>();
  await inSlices(rows, ({ id, lookup, secret }) => {
    if (!first.has(lookup)) first.set(lookup, { _id: id, l: lookup, s: secret });
  });
  const gone = new Set<string>();
  let left: readonly Present[] = [...first.values()];
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === MAJORITY_ATTEMPTS)
      throw new UnavailableError('subjects of another process do not reach a majority of the servers', {
        outcomeUnknown: true,
      });
    if (attempt > 0) {
      for (const id of await removedAmong(connection, left)) gone.add(id);
      left = left.filter(({ _id }) => !gone.has(_id));
      if (left.length === 0) break;
      await sleep(MAJORITY_PAUSE_MS);
    }
    const inserted = await insert(connection, left);
    await inSlices(inserted.present, (subject) => rowsNow.set(subject.l, rowOf(subject)));
    left = inserted.left;
  }
  return gone;
}

/**
 * Adds subjects whose lookups differ.
 * @returns `present`: the subjects now stored under these lookups; `left`: those whose lookup or id is taken by a
 * subject not found yet
 */
async function insert(
  connection: Connection,
  required: readonly Present[],
): Promise<{ readonly present: readonly Present[]; readonly left: readonly Present[] }> {
  const met = await insertFree(connection, required);
  const others =
    met.length === 0
      ? []
      : await byLookup(
          connection,
          met.map(({ l }) => l),
        );
  const known = new Set(others.map(({ l }) => l));
  const taken = new Set(met);
  return {
    present: [...required.filter((subject) => !taken.has(subject)), ...others],
    left: met.filter(({ l }) => !known.has(l)),
  };
}

/** Checks ids that may be taken. @returns which of them were removed. @throws Error when one has another lookup */
async function removedAmong(connection: Connection, required: readonly Present[]): Promise<ReadonlySet<string>> {
  const lookupOf = new Map(required.map(({ _id, l }) => [_id, l]));
  const present = await byId(connection, [...lookupOf.keys()]);
  const taken = present.filter(isPresent).find(({ _id, l }) => lookupOf.get(_id) !== l);
  if (taken !== undefined) throw takenId(taken._id);
  return new Set(present.filter((subject) => !isPresent(subject)).map(({ _id }) => _id));
}

async function changePresent(
  connection: Connection,
  ids: readonly string[],
  change: UpdateFilter<Subject>,
): Promise<void> {
  await inSlices(ids, refuseInvalidId);
  await inParallel(inParts([...ids].sort()), SIDE_BY_SIDE, async (some) => {
    const filter = { _id: { $in: some }, ...PRESENT };
    await connection.write((db) => subjects(db).updateMany(filter, change), BULK_MS);
  });
}

/**
 * Inserts subjects whose id and lookup are free. The order of lookups keeps two processes that add the same subjects
 * from waiting for each other.
 * @returns the subjects that were not inserted
 */
async function insertFree(connection: Connection, required: readonly Present[]): Promise<readonly Present[]> {
  const met: Present[] = [];
  await inParallel(inCommands(required.toSorted(byKey(({ l }) => l))), SIDE_BY_SIDE, async (command) => {
    await connection.write(async (db) => {
      try {
        await subjects(db).insertMany(command, { ordered: false });
      } catch (error) {
        const duplicates = duplicatesOf(error);
        if (duplicates === undefined) throw error;
        met.push(...duplicates.map((index) => command[index] as Present));
      }
    }, BULK_MS);
  });
  return met;
}

/**
 * Changes documents, or creates them. A document that another process creates at the same moment fails the change,
 * which succeeds when it is repeated.
 */
async function upsert(
  connection: Connection,
  collection: string,
  ids: readonly string[],
  changeOf: (id: string) => UpdateFilter<Keyed>,
): Promise<void> {
  const change = (some: readonly string[], again: boolean): Promise<readonly string[]> =>
    connection.write(async (db) => {
      const operations = some.map((_id): AnyBulkWriteOperation<Keyed> => ({
        updateOne: { filter: { _id }, update: changeOf(_id), upsert: true },
      }));
      try {
        await db.collection<Keyed>(collection).bulkWrite(operations, { ordered: false });
        return [];
      } catch (error) {
        const met = again ? undefined : duplicatesOf(error);
        if (met === undefined) throw error;
        return met.map((index) => some[index] as string);
      }
    }, BULK_MS);
  const met = await change(ids, false);
  if (met.length > 0) await change(met, true);
}

function subjects(database: Database): Collection<Subject> {
  return database.collection<Subject>(SUBJECTS);
}

function isPresent(subject: Subject): subject is Present {
  return subject.s !== undefined;
}

function rowOf({ _id, l, s, f }: Present): SubjectRow {
  return f === true ? { id: _id, lookup: l, secret: s, fenced: true } : { id: _id, lookup: l, secret: s };
}
