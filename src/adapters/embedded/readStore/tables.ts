/**
 * The tables of collections as the writer keeps them: made, filled, dropped. Every function runs within the caller's
 * transaction.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Scalar } from '../../../ports/readStore.js';
import { sqlScalar } from './layout.js';
import type { Layout, SqlScalar } from './layout.js';
import type { PackedBatch, PackedCorrection } from './messages.js';

/** Counts a transaction that changes documents of a collection, by its name and version; to be run within it. */
export const DOCUMENTS_CHANGED = `INSERT INTO setting (name, value) VALUES ('documents:' || ?, '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value + 1 AS TEXT)`;

/**
 * What differs for a collection whenever its documents may have changed, by its name and version. The file's own
 * version says too little about what may be remembered: it changes with every lease that is renewed, and gifts change
 * far more often than purchases.
 */
export const DOCUMENTS_VERSIONS = `SELECT substr(name, 11), value FROM setting WHERE name GLOB 'documents:*'`;

/** Writes to the tables of collections. */
export interface Tables {
  /** Makes what is missing; a column that a new index needs is filled from the documents there are. */
  ensure(layout: Layout, deferIndexes: boolean): void;
  drop(layout: Layout): void;
  /**
   * Writes the documents, then the checkpoint; what is older than what stands there is skipped. Makes the table if it
   * must.
   */
  write(batch: PackedBatch): void;
  /**
   * Puts documents right by compare-and-set of their positions. Makes the table if it must. @returns whether each was.
   */
  correct(layout: Layout, corrections: readonly PackedCorrection[]): boolean[];
  /** Forgets what it knows of the tables there are: a transaction was rolled back, or another process changed them. */
  forget(): void;
}

/** How documents get into a table. Parameters: id, position, body, the columns. */
interface Plan {
  /**
   * Inserts a document, or replaces one of a lower position whose columns stay as they are: then SQLite leaves the
   * indexes alone.
   */
  readonly put: Statement<SqlScalar[]>;
  /** Replaces one of a lower position, whatever its columns; absent where there are none. */
  readonly replace?: Statement<SqlScalar[]>;
}

/** @param database the writer's connection. */
export function tablesOf(database: Database): Tables {
  const plans = new Map<string, Plan>();
  const advance = database.prepare<[string, string]>(
    `INSERT INTO checkpoint (projection, position) VALUES (?, ?)
     ON CONFLICT (projection) DO UPDATE SET position = excluded.position WHERE excluded.position > checkpoint.position`,
  );
  const forgetCheckpoint = database.prepare<[string]>('DELETE FROM checkpoint WHERE projection = ?');
  const columnNames = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();

  function ensure(layout: Layout, deferIndexes: boolean): void {
    const { table, columns, indexes } = layout;
    // `id` and the fields have no type: SQLite would turn a number that is compared with a TEXT column into a string.
    const declared = [
      'id NOT NULL PRIMARY KEY',
      'position TEXT NOT NULL',
      'body TEXT NOT NULL',
      ...columns.map(({ column }) => column),
    ];
    database.exec(`CREATE TABLE IF NOT EXISTS ${table} (${declared.join(', ')})`);
    const present = new Set(columnNames.all(unquoted(table)));
    for (const { field, column } of columns) if (!present.has(unquoted(column))) addColumn(table, field, column);
    if (deferIndexes) return;
    for (const index of indexes) {
      if (index.columns.length > 0)
        database.exec(`CREATE INDEX IF NOT EXISTS ${index.name} ON ${table} (${[...index.columns, 'id'].join(', ')})`);
    }
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

  function prepare({ table, columns }: Layout): Plan {
    const own = columns.map(({ column }) => column);
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

  return {
    ensure,
    drop(layout) {
      plans.clear();
      database.exec(`DROP TABLE IF EXISTS ${layout.table}`);
      forgetCheckpoint.run(layout.name);
    },
    write({ layout, rows, checkpoint }) {
      if (rows.length > 0) writeAll(planOf(layout), rows, 3 + layout.columns.length);
      if (checkpoint !== undefined) advance.run(checkpoint.projection, checkpoint.position);
    },
    correct(layout, corrections) {
      planOf(layout);
      return corrections.map((correction) => correctOne(database, layout, correction));
    },
    forget() {
      plans.clear();
    },
  };
}

/** In the order of ids, which is the order of the index that every write looks into. */
function writeAll({ put, replace }: Plan, rows: readonly Scalar[], width: number): void {
  const starts: number[] = [];
  for (let start = 0; start < rows.length; start += width) starts.push(start);
  // Of one id the first given goes first: the sort is stable.
  starts.sort((a, b) =>
    (rows[a] as string) < (rows[b] as string) ? -1 : (rows[a] as string) > (rows[b] as string) ? 1 : 0,
  );
  for (const start of starts) {
    if (replace === undefined) put.run(rows[start] as string, rows[start + 1] as string, rows[start + 2] as string);
    else {
      const row = rows.slice(start, start + width).map(sqlScalar);
      if (put.run(...row).changes === 0) replace.run(...row);
    }
  }
}

/** Rare, so nothing is kept prepared for it. */
function correctOne(database: Database, { table, columns }: Layout, { id, expected, row }: PackedCorrection): boolean {
  const all = ['id', 'position', 'body', ...columns.map(({ column }) => column)];
  const values = row?.map(sqlScalar) ?? [];
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

function unquoted(name: string): string {
  return name.slice(1, -1).replaceAll('""', '"');
}
