import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from 'better-sqlite3';
import type { StoredText } from '../../../ports/readStore.js';
import { quoted } from './layout.js';

const PAGE = 256;

type Row = Readonly<Record<string, unknown>>;

/**
 * Yields the text of every row in every table, whatever its purpose.
 * @param read runs at once, and throws the port's errors
 */
export async function* storedTexts(
  database: Database,
  read: <T>(work: () => T) => T,
): AsyncGenerator<readonly StoredText[], void> {
  const tables = read(() =>
    database
      .prepare<[], { readonly name: string; readonly wr: number }>(
        `SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT GLOB 'sqlite_*'`,
      )
      .all(),
  );
  for (const { name, wr } of tables) {
    const table = quoted(name);
    if (wr === 1) {
      yield read(() => database.prepare<[], Row>(`SELECT * FROM ${table}`).all()).map((row) => textOf(name, row));
      continue;
    }
    for (let after = 0; ;) {
      const rows = read(() => {
        // Builds of read models create and drop tables.
        if (database.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(name) === undefined) return [];
        return database
          .prepare<[number], Row>(
            `SELECT rowid AS "(rowid)", * FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE}`,
          )
          .all(after);
      });
      yield rows.map((row) => textOf(name, row));
      const last = rows.at(-1)?.['(rowid)'];
      if (last === undefined) break;
      after = last as number;
      await nextTurn();
    }
  }
}

function textOf(table: string, row: Row): StoredText {
  const { id, key } = row;
  return {
    place: `${table} ${String((id ?? key ?? '') as string | number)}`.trimEnd(),
    text: Object.values(row).join('\n'),
  };
}
