/** The tables of documents. All methods run on the writer's connection, within the caller's transaction. */
import type { Database, Statement } from 'better-sqlite3';
import type { Checkpoint, Scalar } from '../../../ports/readStore.js';
import { sqlScalar, type Layout, type SqlScalar, unquoted } from './layout.js';
import { type Numbering, openPartitions, PARTITION } from './partitions.js';
import type { Scrubbing } from './scrub.js';
import type { EncodedCorrection, EncodedDocuments } from './messages.js';

export const DOCUMENTS_CHANGED = `INSERT INTO setting (name, value) VALUES ('documents:' || ?, '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value + 1 AS TEXT)`;

/** Versions of the collections' documents. SQLite's own version rises with every record, for all collections. */
export const DOCUMENTS_VERSIONS = `SELECT substr(name, 11), value FROM setting WHERE name GLOB 'documents:*'`;

export interface Tables {
  /** Creates a collection's table and indexes. Also fills a new index's column from stored documents. */
  ensure(layout: Layout, deferIndexes: boolean): void;
  /** @returns whether rows are left to be wiped (`Scrubbing`) */
  drop(layout: Layout): boolean;
  /** Writes documents, and creates a missing table. Skips documents older than the stored ones. */
  write(documents: EncodedDocuments): void;
  /** Stores checkpoints, except those earlier than the stored ones. */
  advance(checkpoints: readonly Checkpoint[]): void;
  /** Carries out corrections, and creates a missing table. @returns for each correction whether it took effect */
  correct(layout: Layout, corrections: readonly EncodedCorrection[]): boolean[];
  /** Drops prepared statements: a transaction was rolled back, or another process changed the tables. */
  forget(): void;
}

/** Number of values that begin each row: id, position and body. */
const FIXED = 3;

/** Number of values of each row that is sent to the writer. */
export const widthOf = ({ columns }: Pick<Layout, 'columns'>): number => FIXED + columns.length;

/** All columns but id, position and body. In a partitioned table the number of the document's partition comes last. */
function ownColumns({ columns, partitioned }: Layout): readonly string[] {
  const own = columns.map(({ column }) => column);
  return partitioned.length === 0 ? own : [...own, PARTITION];
}

/** Statements with the parameters id, position, body, columns. */
interface Plan {
  /**
   * Inserts a document, or replaces one of a lower position and equal columns: SQLite then leaves the indexes
   * unchanged.
   */
  readonly put: Statement<SqlScalar[]>;
  readonly replace?: Statement<SqlScalar[]>;
}

interface TablesDeps {
  readonly scrubbing: Pick<Scrubbing, 'markPersonal' | 'takeAway'>;
  readonly secure: (on: boolean) => void;
  /** Most documents of a partition; default: that of `openPartitions`. */
  readonly documentsAPartition?: number | undefined;
}

export function tablesOf(database: Database, { scrubbing, secure, documentsAPartition }: TablesDeps): Tables {
  const plans = new Map<string, Plan>();
  const advanceAll = database.prepare<[string]>(
    `INSERT INTO checkpoint (projection, position)
     SELECT value ->> 'projection', value ->> 'position' FROM json_each(?) WHERE true
     ON CONFLICT (projection) DO UPDATE SET position = excluded.position WHERE excluded.position > checkpoint.position`,
  );
  const forgetCheckpoint = database.prepare<[string]>('DELETE FROM checkpoint WHERE projection = ?');
  const columnNames = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();
  const partitions = openPartitions(database, documentsAPartition);

  function ensure(layout: Layout, deferIndexes: boolean): void {
    const { table, columns, indexes, partitioned } = layout;
    // Columns have no types: SQLite would convert a number compared with a TEXT column to a string.
    const declared = [
      'id NOT NULL PRIMARY KEY',
      'position TEXT NOT NULL',
      'body TEXT NOT NULL',
      ...columns.map(({ column }) => column),
    ];
    database.exec(`CREATE TABLE IF NOT EXISTS ${table} (${declared.join(', ')})`);
    if (layout.personal) scrubbing.markPersonal(unquoted(table));
    const present = new Set(columnNames.all(unquoted(table)));
    for (const { field, column } of columns) if (!present.has(unquoted(column))) addColumn(table, field, column);
    if (partitioned.length > 0 && !present.has(unquoted(PARTITION))) {
      database.exec(`ALTER TABLE ${table} ADD COLUMN ${PARTITION} INTEGER`);
      partitions.ensure(table, partitioned);
    }
    if (deferIndexes) return;
    for (const index of indexes) if (index.columns.length > 0) database.exec(createIndex(table, index));
  }

  function addColumn(table: string, field: string, column: string): void {
    database.exec(`ALTER TABLE ${table} ADD COLUMN ${column}`);
    const value = `CASE json_type(body, $path) WHEN 'true' THEN x'01' WHEN 'false' THEN x'00'
      WHEN 'text' THEN body ->> $path WHEN 'integer' THEN body ->> $path WHEN 'real' THEN body ->> $path END`;
    database.prepare(`UPDATE ${table} SET ${column} = ${value}`).run({ path: `$.${JSON.stringify(field)}` });
  }

  function planOf(layout: Layout): Plan {
    let plan = plans.get(layout.key);
    if (plan === undefined) {
      ensure(layout, true);
      plan = prepare(layout);
      plans.set(layout.key, plan);
    }
    return plan;
  }

  function prepare(layout: Layout): Plan {
    const { table } = layout;
    const own = ownColumns(layout);
    const all = ['id', 'position', 'body', ...own];
    const upsert = (replaced: readonly string[], unchanged: readonly string[]): Statement<SqlScalar[]> =>
      database.prepare<SqlScalar[]>(
        `INSERT INTO ${table} (${all.join(', ')}) VALUES (${all.map(() => '?').join(', ')})
         ON CONFLICT (id) DO UPDATE SET ${replaced.map((column) => `${column} = excluded.${column}`).join(', ')}
         WHERE excluded.position > ${table}.position ${unchanged.map((column) => `AND excluded.${column} IS ${table}.${column}`).join(' ')}`,
      );
    const put = upsert(['position', 'body'], own);
    return own.length === 0 ? { put } : { put, replace: upsert(all.slice(1), []) };
  }

  function numberingOf({ table, columns, partitioned }: Layout): RowNumbering | undefined {
    if (partitioned.length === 0) return undefined;
    const numbering = partitions.numbering(table);
    const places = columns.flatMap(({ column }, index) => (partitioned.includes(column) ? FIXED + index : []));
    return { ...numbering, places };
  }

  return {
    ensure,
    drop(layout) {
      plans.clear();
      forgetCheckpoint.run(layout.name);
      partitions.remove(layout.table);
      if (scrubbing.takeAway(unquoted(layout.table))) return true;
      // Zeroing the pages of a million documents would write a gigabyte.
      secure(false);
      database.exec(`DROP TABLE IF EXISTS ${layout.table}`);
      return false;
    },
    write({ layout, rows }) {
      secure(layout.personal);
      const plan = planOf(layout);
      const numbering = numberingOf(layout);
      writeAll(plan, rows, widthOf(layout), numbering);
      numbering?.end();
    },
    advance(checkpoints) {
      if (checkpoints.length > 0) advanceAll.run(JSON.stringify(checkpoints));
    },
    correct(layout, corrections) {
      planOf(layout);
      const numbering = numberingOf(layout);
      const corrected = corrections.map((correction) => correctOne(database, layout, correction, numbering));
      numbering?.end();
      return corrected;
    },
    forget() {
      plans.clear();
      partitions.forget();
    },
  };
}

/** Numbers the partitions of one write's rows; `places`: indexes of the partitioned columns in a row. */
interface RowNumbering extends Numbering {
  readonly places: readonly number[];
}

/**
 * The partition of a row. A document without values in partitioned columns is in no partition, and in no partitioned
 * index.
 */
function partitionOf(row: readonly SqlScalar[], { places, numberOf }: RowNumbering): number | null {
  return places.some((slot) => row[slot] !== null) ? numberOf(row[0] as string) : null;
}

function createIndex(table: string, { name, columns, partitioned }: Layout['indexes'][number]): string {
  const of = `CREATE INDEX IF NOT EXISTS ${name} ON ${table}`;
  if (partitioned !== true) return `${of} (${[...columns, 'id'].join(', ')})`;
  const valued = columns.map((column) => `${column} IS NOT NULL`).join(' AND ');
  return `${of} (${[PARTITION, ...columns, 'id'].join(', ')}) WHERE ${valued}`;
}

function writeAll(
  { put, replace }: Plan,
  rows: readonly Scalar[],
  width: number,
  numbering: RowNumbering | undefined,
): void {
  const starts: number[] = [];
  for (let start = 0; start < rows.length; start += width) starts.push(start);
  // The sort is stable: equal ids keep their order.
  starts.sort((a, b) =>
    (rows[a] as string) < (rows[b] as string) ? -1 : (rows[a] as string) > (rows[b] as string) ? 1 : 0,
  );
  for (const start of starts) {
    if (replace === undefined) put.run(rows[start] as string, rows[start + 1] as string, rows[start + 2] as string);
    else {
      const row = rows.slice(start, start + width) as SqlScalar[];
      for (let at = FIXED; at < width; at++) row[at] = sqlScalar(rows[start + at] as Scalar);
      if (numbering !== undefined) row.push(partitionOf(row, numbering));
      // As one array: spread arguments cost as much as the row.
      if (put.run(row as never).changes === 0) replace.run(row as never);
    }
  }
}

function correctOne(
  database: Database,
  layout: Layout,
  { id, expected, row }: EncodedCorrection,
  numbering: RowNumbering | undefined,
): boolean {
  const { table } = layout;
  const all = ['id', 'position', 'body', ...ownColumns(layout)];
  const values = row?.map(sqlScalar) ?? [];
  if (row !== undefined && numbering !== undefined) values.push(partitionOf(values, numbering));
  if (expected === undefined) {
    if (row === undefined) return database.prepare(`SELECT 1 FROM ${table} WHERE id = ?`).get(id) === undefined;
    return (
      database
        .prepare(`INSERT OR IGNORE INTO ${table} (${all.join(', ')}) VALUES (${all.map(() => '?').join(', ')})`)
        .run(...values).changes === 1
    );
  }
  if (row === undefined)
    return database.prepare(`DELETE FROM ${table} WHERE id = ? AND position = ?`).run(id, expected).changes === 1;
  const changed = all.map((column) => `${column} = ?`).join(', ');
  return (
    database.prepare(`UPDATE ${table} SET ${changed} WHERE id = ? AND position = ?`).run(...values, id, expected)
      .changes === 1
  );
}
