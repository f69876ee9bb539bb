import { setTimeout as sleep } from 'node:timers/promises';
import type { Collection, Filter, UpdateOneModel } from 'mongodb';
import type { Logger } from 'pino';
import { inParallel } from '../../lib/async/inParallel.js';
import { inSlices } from '../../lib/async/slices.js';
import type { KeyStore, SubjectRow } from '../../ports/keyStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { refuseInvalid, refuseLongSecret, takenId } from '../keyStoreRules.js';
import { addressOf, engineErrorOf, KEY_STORE } from './address.js';
import { MAJORITY_ATTEMPTS, MAJORITY_PAUSE_MS } from './binding.js';
import { ensureIndexes } from './collections.js';
import { inCommands } from './commands.js';
import { BULK_MS, CALL_MS, type Connection, type Database, openConnection } from './connection.js';
import { duplicatesOf } from './failures.js';
import { all } from './reader.js';

export interface MongoKeyStoreOptions {
  /** `mongodb://` or `mongodb+srv://`; names the database, which holds nothing else (default `gift_keys`). */
  readonly url: string;
  /** For servers that were lost for long. */
  readonly logger?: Logger | undefined;
}

interface Subject {
  readonly _id: string;
  /** Lookup. */
  readonly l: string;
  /** Secret. */
  readonly s: string;
}

const SUBJECTS = 'subjects';
const BY_LOOKUP = { name: 'l', key: { l: 1 }, unique: true } as const;
/** Rows of one answer: they are parsed in one turn of the event loop, in some 5 ms. */
const ANSWER = 1_000;
const SIDE_BY_SIDE = 4;
/** A row that a majority of the servers does not have may still be lost, and with it the meaning of its id. */
const OF_A_MAJORITY = { readConcern: { level: 'majority' } } as const;

/**
 * Opens the key store, which any number of processes may share. A lost or silent server fails calls (within 5 s, or 20
 * s for writes and long results); the store recovers by itself.
 * @throws EngineError naming KEYS_URL: an invalid address, no answer, refused credentials, a server too old.
 */
export async function openMongoKeyStore({ url, logger }: MongoKeyStoreOptions): Promise<KeyStore> {
  const { database, newClient } = addressOf(url, KEY_STORE);
  const connection = openConnection({ store: KEY_STORE, newClient, database, logger });
  try {
    await ensureIndexes(connection, SUBJECTS, [BY_LOOKUP]);
  } catch (error) {
    await connection.close();
    throw engineErrorOf(error, KEY_STORE);
  }

  async function read(filterOf: (keys: readonly string[]) => Filter<Subject>, keys: readonly string[]) {
    const found: Subject[] = [];
    await inParallel(inParts(keys), SIDE_BY_SIDE, async (some) => {
      const options = { ...OF_A_MAJORITY, batchSize: some.length + 1 };
      found.push(...(await connection.read((db) => all(subjects(db).find(filterOf(some), options), (one) => one))));
    });
    return found;
  }
  const byId = (ids: readonly string[]): Promise<readonly Subject[]> => read((some) => ({ _id: { $in: some } }), ids);
  const byLookup = (lookups: readonly string[]): Promise<readonly Subject[]> =>
    read((some) => ({ l: { $in: some } }), lookups);

  /** Adds subjects whose lookups differ. @returns those that stand now, of which `left` is not known yet */
  async function insert(
    wanted: readonly Subject[],
  ): Promise<{ readonly standing: readonly Subject[]; readonly left: readonly Subject[] }> {
    const met = await insertFree(connection, wanted);
    const others = met.length === 0 ? [] : await byLookup(met.map(({ l }) => l));
    const known = new Set(others.map(({ l }) => l));
    const taken = new Set(met);
    return {
      standing: [...wanted.filter((subject) => !taken.has(subject)), ...others],
      left: met.filter(({ l }) => !known.has(l)),
    };
  }

  /** @throws Error when the id of one of these has another lookup */
  async function refuseTakenIds(wanted: readonly Subject[]): Promise<void> {
    const lookupOf = new Map(wanted.map(({ _id, l }) => [_id, l]));
    const taken = (await byId([...lookupOf.keys()])).find(({ _id, l }) => lookupOf.get(_id) !== l);
    if (taken !== undefined) throw takenId(taken._id);
  }

  return {
    engine: 'mongodb',
    async byId(ids) {
      return new Map((await byId(ids)).map((subject) => [subject._id, rowOf(subject)]));
    },
    async byLookup(lookups) {
      return new Map((await byLookup(lookups)).map((subject) => [subject.l, rowOf(subject)]));
    },
    async add(rows) {
      const first = new Map<string, Subject>();
      await inSlices(rows, (row) => {
        refuseInvalid(row);
        if (!first.has(row.lookup)) first.set(row.lookup, { _id: row.id, l: row.lookup, s: row.secret });
      });
      const rowsNow = new Map<string, SubjectRow>();
      let left: readonly Subject[] = [...first.values()];
      for (let attempt = 0; left.length > 0; attempt++) {
        if (attempt === MAJORITY_ATTEMPTS)
          throw new UnavailableError('subjects of another process do not reach a majority of the servers', {
            outcomeUnknown: true,
          });
        if (attempt > 0) {
          await refuseTakenIds(left);
          await sleep(MAJORITY_PAUSE_MS);
        }
        const inserted = await insert(left);
        await inSlices(inserted.standing, (subject) => rowsNow.set(subject.l, rowOf(subject)));
        left = inserted.left;
      }
      return rowsNow;
    },
    async rewrap(rows) {
      await inSlices(rows, refuseLongSecret);
      const last = [...new Map(rows.map(({ id, secret }) => [id, { _id: id, s: secret }])).values()];
      await inParallel(inCommands(last.sort(byKey(({ _id }) => _id))), SIDE_BY_SIDE, async (command) => {
        if (command.length === 0) return;
        const operations = command.map(({ _id, s }): { updateOne: UpdateOneModel<Subject> } => ({
          updateOne: { filter: { _id }, update: { $set: { s } } },
        }));
        await connection.write((db) => subjects(db).bulkWrite(operations, { ordered: false }), BULK_MS);
      });
    },
    async page(after, limit) {
      // To the driver a limit of 0 means none.
      if (limit === 0) return [];
      const filter = after === undefined ? {} : { _id: { $gt: after } };
      const options = { ...OF_A_MAJORITY, sort: { _id: 1 }, limit, batchSize: ANSWER } as const;
      return connection.read(
        (db) => all(subjects(db).find(filter, options), rowOf),
        limit <= ANSWER ? CALL_MS : BULK_MS,
      );
    },
    async remove(ids) {
      await inParallel(inParts([...ids].sort()), SIDE_BY_SIDE, async (some) => {
        await connection.write((db) => subjects(db).deleteMany({ _id: { $in: some } }), BULK_MS);
      });
    },
    async ping() {
      await connection.read(({ db }) => db.command({ ping: 1 }));
    },
    close: connection.close,
  };
}

/**
 * Inserts subjects whose id and lookup are free. In the order of lookups: so two processes that add the same ones do not
 * wait for each other. @returns the others
 */
async function insertFree(connection: Connection, wanted: readonly Subject[]): Promise<readonly Subject[]> {
  const met: Subject[] = [];
  await inParallel(inCommands(wanted.toSorted(byKey(({ l }) => l))), SIDE_BY_SIDE, async (command) => {
    await connection.write(async (db) => {
      try {
        await subjects(db).insertMany(command, { ordered: false });
      } catch (error) {
        const duplicates = duplicatesOf(error);
        if (duplicates === undefined) throw error;
        met.push(...duplicates.map((index) => command[index] as Subject));
      }
    }, BULK_MS);
  });
  return met;
}

function subjects(database: Database): Collection<Subject> {
  return database.collection<Subject>(SUBJECTS);
}

function rowOf({ _id, l, s }: Subject): SubjectRow {
  return { id: _id, lookup: l, secret: s };
}

function byKey<T>(keyOf: (item: T) => string): (a: T, b: T) => number {
  return (a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0);
}

function* inParts(keys: readonly string[]): Iterable<string[]> {
  for (let at = 0; at < keys.length; at += ANSWER) yield keys.slice(at, at + ANSWER);
}
