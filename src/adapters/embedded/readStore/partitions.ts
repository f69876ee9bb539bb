/**
 * Partitions of a table's ids, for `partitioned` indexes: ranges that follow each other, so that a page by id takes one
 * partition after the other. All within the caller's transaction.
 */
import type { Database, Statement } from 'better-sqlite3';
import { byBytes } from '../../../lib/byBytes.js';
import { unquoted } from './layout.js';

/** Column of a document's row with the number of its partition. */
export const PARTITION = '"partition"';

/**
 * Table of the partitions. A partition holds the ids from its `first_id` to the next one's; the first one also all ids
 * before.
 */
export const PARTITIONS = 'partitions';

/** The number of the partition that holds an id. Parameter: the table's name. */
export const partitionOf = (id: string): string => `SELECT number FROM ${PARTITIONS}
  WHERE collection = ? AND first_id <= ${id} ORDER BY number DESC LIMIT 1`;

/** The query for the partition that holds an id. Parameters: the table's name, the id. */
export const PARTITION_OF_ID = partitionOf('?');

/**
 * Documents of a partition: its part of an index has some hundred pages, of which a batch of new documents writes each
 * about once. A query looks into each partition of its range, which takes half a microsecond.
 */
const DOCUMENTS = 8_192;

interface Partitions {
  /** Creates the table of partitions. Documents that the collection's table already has become one partition. */
  ensure(table: string, columns: readonly string[]): void;
  /** Numbers the partitions of one write's documents. */
  numbering(table: string): Numbering;
  remove(table: string): void;
  /** Drops prepared statements: the table of partitions may be gone with a transaction. */
  forget(): void;
}

export interface Numbering {
  numberOf(id: string): number;
  /** Stores the state of the latest partition: called once, after the last document. */
  end(): void;
}

interface Latest {
  readonly number: number;
  readonly first_id: string;
  last_id: string;
  documents: number;
}

interface Statements {
  readonly latest: Statement<[string], Latest>;
  readonly holding: Statement<[string, string], number>;
  readonly save: Statement<[string, number, string, string, number]>;
}

export function openPartitions(database: Database, most = DOCUMENTS): Partitions {
  const exists = database
    .prepare<[], number>(`SELECT count(*) FROM sqlite_master WHERE name = '${PARTITIONS}'`)
    .pluck();
  let prepared: Statements | undefined;

  const statements = (): Statements =>
    (prepared ??= {
      latest: database.prepare(
        `SELECT number, first_id, last_id, documents FROM ${PARTITIONS}
         WHERE collection = ? ORDER BY number DESC LIMIT 1`,
      ),
      holding: database.prepare<[string, string], number>(PARTITION_OF_ID).pluck(),
      save: database.prepare(
        `INSERT INTO ${PARTITIONS} (collection, number, first_id, last_id, documents) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (collection, number) DO UPDATE SET last_id = excluded.last_id, documents = excluded.documents`,
      ),
    });

  function save(collection: string, { number, first_id, last_id, documents }: Latest): void {
    statements().save.run(collection, number, first_id, last_id, documents);
  }

  return {
    ensure(table, columns) {
      database.exec(
        `CREATE TABLE IF NOT EXISTS ${PARTITIONS} (collection TEXT NOT NULL, number INTEGER NOT NULL,
           first_id TEXT NOT NULL, last_id TEXT NOT NULL, documents INTEGER NOT NULL,
           PRIMARY KEY (collection, number)) WITHOUT ROWID`,
      );
      const valued = columns.map((column) => `${column} IS NOT NULL`).join(' OR ');
      const last = database.prepare<[], string | null>(`SELECT max(id) FROM ${table} WHERE ${valued}`).pluck().get();
      if (last === null || last === undefined) return;
      database.exec(`UPDATE ${table} SET ${PARTITION} = 0 WHERE ${valued}`);
      save(unquoted(table), { number: 0, first_id: '', last_id: last, documents: most });
    },
    numbering(table) {
      const collection = unquoted(table);
      let latest = statements().latest.get(collection);
      let changed = false;
      return {
        numberOf(id) {
          if (latest === undefined) latest = { number: 0, first_id: '', last_id: id, documents: 0 };
          else if (byBytes(id, latest.last_id) > 0) {
            if (latest.documents >= most) {
              save(collection, latest);
              latest = { number: latest.number + 1, first_id: id, last_id: id, documents: 0 };
            } else latest.last_id = id;
          } else if (byBytes(id, latest.first_id) < 0) return statements().holding.get(collection, id) ?? 0;
          latest.documents += 1;
          changed = true;
          return latest.number;
        },
        end() {
          if (changed && latest !== undefined) save(collection, latest);
        },
      };
    },
    remove(table) {
      if (exists.get() === 0) return;
      database.prepare<[string]>(`DELETE FROM ${PARTITIONS} WHERE collection = ?`).run(unquoted(table));
    },
    forget() {
      prepared = undefined;
    },
  };
}
