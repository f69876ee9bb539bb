/** Carries out requests to the read store's writer, within the caller's transaction. */
import type { Database } from 'better-sqlite3';
import type { Answer, NumberedChange, WriterRequest } from './messages.js';
import { recordsTable } from './records.js';
import { openScrubbing } from './scrub.js';
import { DOCUMENTS_CHANGED, tablesOf, widthOf } from './tables.js';

export interface Requests {
  begin(): void;
  /** Carries out a request, and adds its answer to `made`. @returns an upper bound of its changes */
  execute(numbered: NumberedChange, made: Answer[]): number;
  /** Ends the work of a transaction: called before the commit. */
  end(): void;
  /** Drops prepared statements: called after a rollback. */
  forget(): void;
}

/** Milliseconds between deletions of expired records, while anything is written. */
const SWEEP_MS = 10_000;

/** @param now milliseconds since the epoch, for expiry */
export function openRequests(database: Database, now: () => number): Requests {
  const secure = secureDelete(database);
  const scrubbing = openScrubbing(database);
  const tables = tablesOf(database, { scrubbing, secure });
  const records = recordsTable(database);
  const active = database.prepare<[string], number>('SELECT version FROM pointer WHERE name = ?').pluck();
  const activate = database.prepare<[string, number]>('INSERT OR REPLACE INTO pointer (name, version) VALUES (?, ?)');
  const deactivate = database.prepare<[string, number]>('DELETE FROM pointer WHERE name = ? AND version = ?');
  const bind = database.prepare<[string]>(`INSERT OR IGNORE INTO setting (name, value) VALUES ('log', ?)`);
  const bound = database.prepare<[], string>(`SELECT value FROM setting WHERE name = 'log'`).pluck();
  const count = database.prepare<[string]>(DOCUMENTS_CHANGED);
  const changed = new Set<string>();
  let nextSweep = 0;

  function administer(request: Exclude<WriterRequest, { kind: 'write' | 'put' | 'delete' | 'empty WAL' }>): unknown {
    switch (request.kind) {
      case 'ensure':
        return tables.ensure(request.layout, request.deferIndexes);
      case 'drop':
        changed.add(request.layout.name);
        return tables.drop(request.layout);
      case 'correct':
        changed.add(request.layout.name);
        return tables.correct(request.layout, request.corrections);
      case 'scrub':
        return scrubbing.step(request.owner, now());
      case 'wipe':
        return scrubbing.wipe();
      case 'activate':
        return swap(request);
      case 'deactivate':
        deactivate.run(request.name, request.version);
        return active.get(request.name) === undefined;
      case 'bind':
        bind.run(request.logId);
        return bound.get();
      default:
        return request satisfies never;
    }
  }

  function swap({ name, version, expected }: Extract<WriterRequest, { kind: 'activate' }>): boolean {
    const before = active.get(name);
    if (before === version) return true;
    if (expected !== undefined && (before ?? 0) !== expected) return false;
    activate.run(name, version);
    return true;
  }

  /** Whether expired records are due for deletion, also after the clock was set back. */
  function sweepIsDue(): boolean {
    const left = nextSweep - now();
    return left <= 0 || left > SWEEP_MS;
  }

  return {
    begin: () => changed.clear(),
    execute({ id, request }, made) {
      if (request.kind !== 'write') secure(true);
      switch (request.kind) {
        case 'write': {
          let changes = 1;
          for (const documents of request.documents) {
            tables.write(documents);
            changed.add(documents.layout.name);
            changes += documents.rows.length / widthOf(documents.layout);
          }
          tables.advance(request.checkpoints);
          made.push({ id });
          return changes;
        }
        case 'put':
        case 'delete':
          made.push({ id, value: records.change(request, now()) });
          return 1;
        default:
          made.push({ id, value: administer(request) });
          return 1;
      }
    },
    end() {
      secure(true);
      for (const collection of changed) count.run(collection);
      if (sweepIsDue() && !records.sweep(now())) nextSweep = now() + SWEEP_MS;
    },
    forget: tables.forget,
  };
}

/** SQLite's `secure_delete`: deleted rows and freed pages are zeroed. Setting it takes some 10 µs. */
function secureDelete(database: Database): (on: boolean) => void {
  let present: boolean | undefined;
  return (on) => {
    if (on === present) return;
    database.pragma(`secure_delete = ${on ? 'ON' : 'OFF'}`);
    present = on;
  };
}
