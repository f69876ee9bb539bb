/**
 * Rewrites the tables with personal data. SQLite (3.53) leaves copies of rows in unused parts of pages; `secure_delete`
 * zeroes deleted rows and freed pages, but not these copies. So each table's rows are copied into new pages and the old
 * ones freed, in steps of some milliseconds. Triggers repeat the concurrent writes of any process on the copy.
 * Everything runs within the caller's transaction. The next scrubbing removes the remains of a killed process.
 */
import { randomBytes } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { quoted } from './layout.js';

export interface Scrubbing {
  /**
   * Does the next step of scrubbing all tables with personal data.
   * @param owner a random id of this scrubbing
   * @returns `busy`: another scrubbing is in progress
   */
  step(owner: string, now: number): 'more' | 'busy' | 'done';
  markPersonal(table: string): void;
  /** Sets a table aside where it is marked as personal: `wipe` removes its rows. @returns whether it is marked */
  takeAway(table: string): boolean;
  /** Removes rows of tables that were set aside, for some milliseconds. @returns whether no row is left */
  wipe(): boolean;
}

interface State {
  readonly owner: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly tables: readonly string[];
  /** The rowid up to which the first table is copied; absent: there is no copy yet. */
  readonly copied?: number;
}

const STEP_MS = 20;
const ROWS = 100;
/** Milliseconds without a step after which a scrubbing's process counts as ended. */
const ENDED_MS = 10_000;

const COPY = 'copy:';
const GONE = 'gone:';
const PERSONAL = 'personal:';
const STATE = 'scrubbing';
const EVENTS = ['INSERT', 'UPDATE', 'DELETE'] as const;

export function openScrubbing(database: Database): Scrubbing {
  const setting = database.prepare<[string], string>('SELECT value FROM setting WHERE name = ?').pluck();
  const set = database.prepare<[string, string]>('INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)');
  const unset = database.prepare<[string]>('DELETE FROM setting WHERE name = ?');
  const settings = database.prepare<[string], string>(`SELECT name FROM setting WHERE name GLOB ? || '*'`).pluck();
  const tables = openTables(database);

  function put(state: State): 'more' {
    set.run(STATE, JSON.stringify(state));
    return 'more';
  }

  function start(owner: string, now: number): 'more' {
    for (const copy of tables.named(COPY)) tables.discardCopy(copy.slice(COPY.length));
    const personal = settings.all(PERSONAL).map((name) => name.slice(PERSONAL.length));
    return put({ owner, at: now, tables: ['record', ...personal] });
  }

  return {
    wipe: tables.wipe,
    markPersonal(table) {
      if (setting.get(PERSONAL + table) === undefined) set.run(PERSONAL + table, '');
    },
    takeAway(table) {
      if (setting.get(PERSONAL + table) === undefined) return false;
      unset.run(PERSONAL + table);
      tables.discardCopy(table);
      if (tables.schemaOf(table) !== undefined) tables.setAside(table);
      return true;
    },
    step(owner, now) {
      const stored = setting.get(STATE);
      const state = stored === undefined ? undefined : (JSON.parse(stored) as State);
      if (state?.owner !== owner) {
        const age = state === undefined ? ENDED_MS : now - state.at;
        // A clock that was set back must not delay the scrubbing.
        return age >= 0 && age < ENDED_MS ? 'busy' : start(owner, now);
      }
      const { tables: all, copied } = state;
      const [table, ...rest] = all;
      if (table === undefined) {
        if (!tables.wipe()) return put({ ...state, at: now });
        unset.run(STATE);
        return 'done';
      }
      const schema = tables.schemaOf(table);
      // The table was dropped since the last step, or has another column: then its rows are copied again.
      if (schema === undefined || (copied !== undefined && !tables.haveSameColumns(table, COPY + table))) {
        tables.discardCopy(table);
        return put({ owner, at: now, tables: schema === undefined ? rest : all });
      }
      if (copied === undefined) {
        tables.startCopy(table, schema);
        return put({ owner, at: now, tables: all, copied: 0 });
      }
      const reached = tables.copyRows(table, copied);
      if (reached !== undefined) return put({ owner, at: now, tables: all, copied: reached });
      tables.swap(table);
      return put({ owner, at: now, tables: rest });
    },
  };
}

/** The tables of a file, their copies, and the tables that were set aside. */
interface Tables {
  /** Names that begin with a prefix. */
  named(prefix: string): readonly string[];
  schemaOf(table: string): string | undefined;
  haveSameColumns(table: string, other: string): boolean;
  setAside(table: string): void;
  /** Makes the table's empty copy, and the triggers that repeat concurrent writes on it. */
  startCopy(table: string, schema: string): void;
  /** @returns the last copied rowid; `undefined`: all are copied */
  copyRows(table: string, from: number): number | undefined;
  /** Removes the table's copy where there is one; the table itself stays. */
  discardCopy(table: string): void;
  /** Puts the copy in the table's place, and sets the table aside. */
  swap(table: string): void;
  wipe: Scrubbing['wipe'];
}

function openTables(database: Database): Tables {
  const names = database
    .prepare<[string], string>(`SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB ? || '*'`)
    .pluck();
  const schemas = database.prepare<[string], string>(`SELECT sql FROM sqlite_master WHERE name = ?`).pluck();
  const indexesOf = database.prepare<[string], { readonly name: string; readonly sql: string }>(
    `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL`,
  );
  const columnNames = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();

  const columnsOf = (table: string): string[] => columnNames.all(table).map(quoted);

  function removeTriggers(table: string): void {
    for (const event of EVENTS) database.exec(`DROP TRIGGER IF EXISTS ${triggerOf(event, table)}`);
  }

  function rename(table: string, to: string): void {
    database.exec(`ALTER TABLE ${quoted(table)} RENAME TO ${quoted(to)}`);
  }

  function setAside(table: string): void {
    rename(table, GONE + randomBytes(8).toString('hex'));
  }

  return {
    named: (prefix) => names.all(prefix),
    schemaOf: (table) => schemas.get(table),
    haveSameColumns: (table, other) => columnsOf(table).join() === columnsOf(other).join(),
    setAside,
    startCopy(table, schema) {
      const copy = quoted(COPY + table);
      database.exec(schema.replace(/^CREATE TABLE\s+("(?:[^"]|"")+"|\w+)/, `CREATE TABLE ${copy}`));
      const columns = columnsOf(table);
      const [key] = columns;
      const repeat = `INSERT OR REPLACE INTO ${copy} (${columns.join(', ')}) VALUES (${columns.map((column) => `NEW.${column}`).join(', ')})`;
      const remove = `DELETE FROM ${copy} WHERE ${key} = OLD.${key}`;
      for (const event of EVENTS)
        database.exec(
          `CREATE TRIGGER ${triggerOf(event, table)} AFTER ${event} ON ${quoted(table)} BEGIN ${event === 'DELETE' ? remove : repeat}; END`,
        );
    },
    copyRows(table, from) {
      const [name, columns] = [quoted(table), columnsOf(table).join(', ')];
      const last = database
        .prepare<[number], number | null>(
          `SELECT max(rowid) FROM (SELECT rowid FROM ${name} WHERE rowid > ? ORDER BY rowid LIMIT ${ROWS})`,
        )
        .pluck();
      // A row that was written concurrently is in the copy already.
      const copy = database.prepare<[number, number]>(
        `INSERT OR IGNORE INTO ${quoted(COPY + table)} (${columns}) SELECT ${columns} FROM ${name} WHERE rowid > ? AND rowid <= ? ORDER BY rowid`,
      );
      let at = from;
      for (const until = performance.now() + STEP_MS; performance.now() < until;) {
        const next = last.get(at) ?? undefined;
        if (next === undefined) return undefined;
        copy.run(at, next);
        at = next;
      }
      return at;
    },
    discardCopy(table) {
      removeTriggers(table);
      if (schemas.get(COPY + table) !== undefined) setAside(COPY + table);
    },
    swap(table) {
      removeTriggers(table);
      const indexes = indexesOf.all(table);
      for (const { name } of indexes) database.exec(`DROP INDEX ${quoted(name)}`);
      setAside(table);
      rename(COPY + table, table);
      for (const { sql } of indexes) database.exec(sql);
    },
    wipe() {
      const until = performance.now() + STEP_MS;
      for (const table of names.all(GONE)) {
        const remove = database.prepare(
          `DELETE FROM ${quoted(table)} WHERE rowid IN (SELECT rowid FROM ${quoted(table)} ORDER BY rowid DESC LIMIT ${ROWS})`,
        );
        while (remove.run().changes > 0) if (performance.now() >= until) return false;
        database.exec(`DROP TABLE ${quoted(table)}`);
      }
      return true;
    },
  };
}

const triggerOf = (event: string, table: string): string => quoted(`${COPY}${event}:${table}`);
