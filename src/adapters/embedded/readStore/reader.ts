/** Reads on the calling thread: SQLite's cache answers faster than another thread. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database, Statement } from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import type { Body, CollectionSpec, Query, StoredDocument } from '../../../ports/readStore.js';
import { storedBodyOf } from '../../storedBody.js';
import { Sqlite } from '../driver.js';
import { type Layout, layoutOf, scalarFrom, type SqlScalar, unquoted } from './layout.js';
import { pageOf, whereOf } from './query.js';
import { isStoredAs, scalarOf } from '../../readStoreRules.js';
import { PARTITION, partitionOf } from './partitions.js';

/** Reads of documents; a missing collection reads as empty. */
interface Reader {
  get(layout: Layout, id: string): StoredDocument | undefined;
  getMany<B extends Body>(
    collection: CollectionSpec,
    ids: readonly string[],
  ): Promise<(StoredDocument<B> | undefined)[]>;
  find<B extends Body>(collection: CollectionSpec, query: Query): Promise<StoredDocument<B>[]>;
  count(collection: CollectionSpec, query: Query): number;
  misindexed(collection: CollectionSpec, ids: readonly string[]): Promise<string[]>;
}

type Row = readonly [id: string, position: string, body: string];

/** Documents read in one turn, which takes about 2 ms. */
const CHUNK = 256;
/** Longest page that is read at once: a document that moved in between would make the next page skip others. */
const PAGE = 1_024;
const STATEMENTS = 300;

export function createReader(database: Database): Reader {
  const statements = new LRUCache<string, Statement<SqlScalar[]>>({ max: STATEMENTS });
  const gets = new WeakMap<Layout, Statement<[string], Row>>();

  function statement(sql: string): Statement<SqlScalar[]> {
    let prepared = statements.get(sql);
    if (prepared === undefined) {
      prepared = database.prepare<SqlScalar[]>(sql);
      prepared.raw();
      statements.set(sql, prepared);
    }
    return prepared;
  }

  function getOf(layout: Layout): Statement<[string], Row> {
    let prepared = gets.get(layout);
    if (prepared === undefined) {
      prepared = database.prepare<[string], Row>(`SELECT id, position, body FROM ${layout.table} WHERE id = ?`).raw();
      gets.set(layout, prepared);
    }
    return prepared;
  }

  const columnNames = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();

  function rows<R>(sql: string, parameters: readonly SqlScalar[]): R[] {
    return orEmpty(() => statement(sql).all(...parameters) as R[], []);
  }

  async function getMany<B extends Body>(
    { table }: Layout,
    ids: readonly string[],
  ): Promise<(StoredDocument<B> | undefined)[]> {
    const documents = Array<StoredDocument<B> | undefined>(ids.length).fill(undefined);
    const sql = `SELECT wanted.key, d.id, d.position, d.body FROM json_each(?) AS wanted CROSS JOIN ${table} AS d ON d.id = wanted.value`;
    await inChunks(ids, (chunk, start) => {
      for (const [index, ...row] of rows<readonly [number, ...Row]>(sql, [JSON.stringify(chunk)]))
        documents[start + index] = documentOf<B>(row);
    });
    return documents;
  }

  return {
    get(layout, id) {
      const row = orEmpty(() => getOf(layout).get(id), undefined);
      return row === undefined ? undefined : documentOf(row);
    },
    async getMany<B extends Body>(collection: CollectionSpec, ids: readonly string[]) {
      return getMany<B>(layoutOf(collection), ids);
    },
    async find<B extends Body>(collection: CollectionSpec, query: Query) {
      const layout = layoutOf(collection);
      const where = whereOf(layout, query);
      const page = pageOf(layout, query, where);
      const parameters = [...where.parameters, ...page.parameters];
      if (query.limit !== undefined && query.limit <= PAGE) {
        const documents: StoredDocument<B>[] = [];
        for (const row of rows<Row>(`SELECT id, position, body FROM ${where.text}${page.text}`, parameters)) {
          if (documents.length > 0 && documents.length % CHUNK === 0) await nextTurn();
          documents.push(documentOf<B>(row));
        }
        return documents;
      }
      // Long results take their ids from one moment and read the documents in turns, without those deleted in between.
      const ids = rows<readonly [string]>(`SELECT id FROM ${where.text}${page.text}`, parameters).map(([id]) => id);
      return (await getMany<B>(layout, ids)).filter((document) => document !== undefined);
    },
    count(collection, query) {
      const { text, parameters } = whereOf(layoutOf(collection), query);
      return rows<readonly [number]>(`SELECT count(*) FROM ${text}`, parameters)[0]?.[0] ?? 0;
    },
    async misindexed(collection, ids) {
      const layout = layoutOf(collection);
      const table = unquoted(layout.table);
      const sql = indexedRowsSql(layout, new Set(columnNames.all(table)));
      const found: string[] = [];
      await inChunks(ids, (chunk) => {
        for (const row of rows<IndexedRow>(sql, [table, JSON.stringify(chunk)]))
          if (isMisindexed(layout, row)) found.push(row[0]);
      });
      return found;
    },
  };
}

export function documentOf<B extends Body>([id, position, body]: Row): StoredDocument<B> {
  return { id, position, body: storedBodyOf(body) as B };
}

/** Calls `work` with each chunk of the ids, in a turn of its own. */
async function inChunks(
  ids: readonly string[],
  work: (chunk: readonly string[], start: number) => void,
): Promise<void> {
  for (let start = 0; start < ids.length; start += CHUNK) {
    if (start > 0) await nextTurn();
    work(ids.slice(start, start + CHUNK), start);
  }
}

function orEmpty<T>(read: () => T, empty: T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && error.message.startsWith('no such table')) return empty;
    throw error;
  }
}

/** Id, body, the layout's columns, the row's partition and the partition that it should be in. */
type IndexedRow = readonly [id: string, body: string, ...SqlScalar[]];

/**
 * The query for rows to check. Parameters: the table's name, and ids as JSON.
 * @param present names of the table's columns; a column that was never added reads as NULL
 */
function indexedRowsSql({ table, columns, partitioned }: Layout, present: ReadonlySet<string>): string {
  const own = [...columns.map(({ column }) => column), PARTITION];
  const stored = own.map((column) => (present.has(unquoted(column)) ? `d.${column}` : 'NULL'));
  const holding = partitioned.length === 0 ? '?' : `(${partitionOf('d.id')})`;
  return `SELECT d.id, d.body, ${stored.join(', ')}, ${holding}
    FROM json_each(?) AS wanted CROSS JOIN ${table} AS d ON d.id = wanted.value`;
}

function isMisindexed({ columns, partitioned }: Layout, [, text, ...stored]: IndexedRow): boolean {
  const body = storedBodyOf(text) as Readonly<Record<string, unknown>>;
  const values = columns.map(({ field }) => scalarOf(body[field]));
  if (values.some((value, index) => !isStoredAs(value, scalarFrom(stored[index] ?? null)))) return true;
  if (partitioned.length === 0) return false;
  const isInOne = columns.some(({ column }, index) => partitioned.includes(column) && values[index] !== null);
  const [partition, holding] = stored.slice(columns.length);
  return partition !== (isInOne ? holding : null);
}
