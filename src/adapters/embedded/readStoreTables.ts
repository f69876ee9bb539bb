/** The tables of collections as the writer keeps them: made, filled, dropped. Every function runs within the caller's transaction. */
import type { Database, Statement } from 'better-sqlite3';
import type { Scalar } from '../../ports/readStore.js';
import { sqlScalar } from './readStoreLayout.js';
import type { Layout, SqlScalar } from './readStoreLayout.js';
import type { PackedBatch } from './readStoreMessages.js';

/** Writes to the tables of collections. */
export interface Tables {
  /** Makes what is missing; a column that a new index needs is filled from the documents there are. */
  ensure(layout: Layout, deferIndexes: boolean): void;
  drop(layout: Layout): void;
  /** Writes the documents, then the checkpoint; what is older than what stands there is skipped. Makes the table if it must. */
  write(batch: PackedBatch): void;
  /** Forgets what it knows of the tables there are: a transaction was rolled back, or another process changed them. */
  forget(): void;
}

type Insert = Statement<SqlScalar[]>;

/** @param database the writer's connection. */
export function tablesOf(database: Database): Tables {
  const inserts = new Map<string, Insert>();
  const advance = database.prepare<[string, string]>(
    `INSERT INTO checkpoint (projection, position) VALUES (?, ?)
     ON CONFLICT (projection) DO UPDATE SET position = excluded.position WHERE excluded.position > checkpoint.position`,
  );
  const forgetCheckpoint = database.prepare<[string]>('DELETE FROM checkpoint WHERE projection = ?');
  const columnNames = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();

  function ensure(layout: Layout, deferIndexes: boolean): void {
    const { table, columns, indexes } = layout;
    // `id` and the fields have no type: SQLite would turn a number that is compared with a TEXT column into a string.
    const declared = ['id NOT NULL PRIMARY KEY', 'position TEXT NOT NULL', 'body TEXT NOT NULL', ...columns.map(({ column }) => column)];
    database.exec(`CREATE TABLE IF NOT EXISTS ${table} (${declared.join(', ')})`);
    const present = new Set(columnNames.all(unquoted(table)));
    for (const { field, column } of columns) if (!present.has(unquoted(column))) addColumn(table, field, column);
    if (deferIndexes) return;
    for (const index of indexes) {
      if (index.columns.length > 0) database.exec(`CREATE INDEX IF NOT EXISTS ${index.name} ON ${table} (${[...index.columns, 'id'].join(', ')})`);
    }
  }

  function addColumn(table: string, field: string, column: string): void {
    database.exec(`ALTER TABLE ${table} ADD COLUMN ${column}`);
    const value = `CASE json_type(body, $path) WHEN 'true' THEN x'01' WHEN 'false' THEN x'00'
      WHEN 'text' THEN body ->> $path WHEN 'integer' THEN body ->> $path WHEN 'real' THEN body ->> $path END`;
    database.prepare(`UPDATE ${table} SET ${column} = ${value}`).run({ path: `$.${JSON.stringify(field)}` });
  }

  function insertOf(layout: Layout): Insert {
    let insert = inserts.get(layout.key);
    if (insert === undefined) {
      ensure(layout, true);
      const columns = ['id', 'position', 'body', ...layout.columns.map(({ column }) => column)];
      insert = database.prepare<SqlScalar[]>(
        `INSERT INTO ${layout.table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
         ON CONFLICT (id) DO UPDATE SET ${columns.slice(1).map((column) => `${column} = excluded.${column}`).join(', ')}
         WHERE excluded.position > ${layout.table}.position`,
      );
      inserts.set(layout.key, insert);
    }
    return insert;
  }

  return {
    ensure,
    drop(layout) {
      inserts.delete(layout.key);
      database.exec(`DROP TABLE IF EXISTS ${layout.table}`);
      forgetCheckpoint.run(layout.name);
    },
    write({ layout, rows, checkpoint }) {
      if (rows.length > 0) insertAll(insertOf(layout), rows, 3 + layout.columns.length);
      if (checkpoint !== undefined) advance.run(checkpoint.projection, checkpoint.position);
    },
    forget() {
      inserts.clear();
    },
  };
}

/** In the order of ids, which is the order of the index that every insert looks into. */
function insertAll(insert: Insert, rows: readonly Scalar[], width: number): void {
  const starts: number[] = [];
  for (let start = 0; start < rows.length; start += width) starts.push(start);
  // Of one id the first given goes first: the sort is stable.
  starts.sort((a, b) => ((rows[a] as string) < (rows[b] as string) ? -1 : (rows[a] as string) > (rows[b] as string) ? 1 : 0));
  if (width === 3) for (const start of starts) insert.run(rows[start] as string, rows[start + 1] as string, rows[start + 2] as string);
  else for (const start of starts) insert.run(...rows.slice(start, start + width).map(sqlScalar));
}

function unquoted(name: string): string {
  return name.slice(1, -1).replaceAll('""', '"');
}
