/** The writer of the embedded read store, on its own thread: commits requests in their order, in groups. */
import type { Database } from 'better-sqlite3';
import { Sqlite } from '../driver.js';
import { FilesGoneError, UNGUARDED, type WriteGuard } from '../openedFiles.js';
import { beginWriting, breathe, LOCK_WAIT_MS } from '../writeLock.js';
import { makeRoom } from './file.js';
import type { ThreadFault } from '../sqlite.js';
import type { Answer, Numbered, WriterRequest } from './messages.js';
import { recordsTable } from './records.js';
import { DOCUMENTS_CHANGED, tablesOf } from './tables.js';

export interface WriterPort {
  receive(): readonly Numbered[];
  answer(answers: readonly Answer[]): void;
  checkpoint(): void;
}

export interface Writer {
  /** Commits until nothing is left, including requests that come meanwhile. */
  run(requests: readonly Numbered[]): void;
}

/** Limits of a transaction, in changes and in ms: other requests and processes wait meanwhile. */
const GROUP_CHANGES = 20_000;
const GROUP_MS = 50;
/**
 * Changes after which the WAL is moved into the file, once so many small groups have come in a row. During the large
 * groups of a rebuild, pages would be moved again and again.
 */
const CHECKPOINT_CHANGES = 4_000;
const SMALL_GROUPS_IN_A_ROW = 10;
const SMALL_GROUP_CHANGES = 1_000;
/**
 * After so many small groups in a row, some seconds under load, no rebuild runs at full speed: the writer's cache
 * shrinks.
 */
const SMALL_GROUPS = 1_000;
/** How often expired records are deleted, in ms, while anything is written. */
const SWEEP_MS = 10_000;

export interface WriterOptions {
  /** Milliseconds since the epoch, to decide what has expired. */
  readonly now?: () => number;
  readonly lockWaitMs?: number;
  readonly guard?: Pick<WriteGuard, 'refuse' | 'confirm'>;
}

/** A request fails when another process keeps the file locked for `lockWaitMs`, or when `guard` refuses. */
export function createWriter(
  database: Database,
  port: WriterPort,
  { now = Date.now, lockWaitMs = LOCK_WAIT_MS, guard = UNGUARDED }: WriterOptions = {},
): Writer {
  const tables = tablesOf(database);
  const records = recordsTable(database);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  const active = database.prepare<[string], number>('SELECT version FROM pointer WHERE name = ?').pluck();
  const activate = database.prepare<[string, number]>('INSERT OR REPLACE INTO pointer (name, version) VALUES (?, ?)');
  const deactivate = database.prepare<[string, number]>('DELETE FROM pointer WHERE name = ? AND version = ?');
  const bind = database.prepare<[string]>(`INSERT OR IGNORE INTO setting (name, value) VALUES ('log', ?)`);
  const bound = database.prepare<[], string>(`SELECT value FROM setting WHERE name = 'log'`).pluck();
  const count = database.prepare<[string]>(DOCUMENTS_CHANGED);
  /** Changes to records go first: requests wait for them, and they are small. */
  const urgent: Numbered[] = [];
  const others: Numbered[] = [];
  /** Writes with a failed part, and its fault, until their last part has come. */
  const failed = new Map<number, ThreadFault>();
  let answers: Answer[] = [];
  const changed = new Set<string>();
  let uncheckpointed = 0;
  let lastGroup = 0;
  let smallGroups = SMALL_GROUPS;
  let nextSweep = 0;

  function enqueue(requests: readonly Numbered[]): void {
    for (const numbered of requests) {
      const { kind } = numbered.request;
      (kind === 'put' || kind === 'delete' ? urgent : others).push(numbered);
    }
  }

  /** The next request that has not failed already. */
  function next(): Numbered | undefined {
    for (;;) {
      const numbered = urgent.shift() ?? others.shift();
      if (numbered === undefined) return undefined;
      const doomed = faultBefore(numbered);
      if (doomed === undefined) return numbered;
      fail(numbered, doomed);
    }
  }

  function faultBefore({ request }: Numbered): ThreadFault | undefined {
    return request.kind === 'write' ? failed.get(request.call) : undefined;
  }

  function fail({ id, request }: Numbered, fault: ThreadFault): void {
    if (request.kind === 'write') {
      if (request.last) failed.delete(request.call);
      else failed.set(request.call, fault);
    }
    answers.push({ id, fault });
  }

  /** @returns an upper bound of its changes. */
  function execute({ id, request }: Numbered, made: Answer[]): number {
    switch (request.kind) {
      case 'write': {
        for (const batch of request.batches) {
          tables.write(batch);
          if (batch.rows.length > 0) changed.add(batch.layout.name);
        }
        made.push({ id });
        return request.batches.reduce((sum, { rows, layout }) => sum + rows.length / (3 + layout.columns.length), 1);
      }
      case 'put':
      case 'delete':
        made.push({ id, value: records.change(request, now()) });
        return 1;
      default:
        made.push({ id, value: administer(request) });
        return 1;
    }
  }

  function administer(request: Exclude<WriterRequest, { kind: 'write' | 'put' | 'delete' }>): unknown {
    switch (request.kind) {
      case 'ensure':
        return tables.ensure(request.layout, request.deferIndexes);
      case 'drop':
        changed.add(request.layout.name);
        return tables.drop(request.layout);
      case 'correct':
        changed.add(request.layout.name);
        return tables.correct(request.layout, request.corrections);
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

  /** @returns whether the version is in use now. */
  function swap({ name, version, expected }: Extract<WriterRequest, { kind: 'activate' }>): boolean {
    const before = active.get(name);
    if (before === version) return true;
    if (expected !== undefined && (before ?? 0) !== expected) return false;
    activate.run(name, version);
    return true;
  }

  /** Also after the clock was set back. */
  function sweepIsDue(): boolean {
    const left = nextSweep - now();
    return left <= 0 || left > SWEEP_MS;
  }

  function abandon(): void {
    // A full disk has ended the transaction already.
    if (database.inTransaction) rollback.run();
    tables.forget();
  }

  /** Commits `work`, which returns the number of its changes. @returns its answers, which may be sent now. */
  function transaction(work: (made: Answer[]) => number): Answer[] {
    const made: Answer[] = [];
    changed.clear();
    try {
      const changes = work(made);
      for (const collection of changed) count.run(collection);
      if (sweepIsDue() && !records.sweep(now())) nextSweep = now() + SWEEP_MS;
      commit.run();
      guard.confirm();
      uncheckpointed += changes;
      lastGroup = changes;
      return made;
    } catch (error) {
      abandon();
      throw error;
    }
  }

  function fitRoom(): void {
    const roomy = smallGroups < SMALL_GROUPS;
    smallGroups = lastGroup < SMALL_GROUP_CHANGES ? smallGroups + 1 : 0;
    if (roomy !== smallGroups < SMALL_GROUPS) makeRoom(database, roomy ? 'few' : 'many');
  }

  /** One transaction of the requests that are there and come meanwhile. When it fails, each request is tried alone. */
  function commitGroup(): void {
    const taken: Numbered[] = [];
    try {
      guard.refuse();
      beginWriting(begin, performance.now() + lockWaitMs);
      const begun = performance.now();
      const made = transaction((into) => {
        let changes = 0;
        for (let numbered = next(); numbered !== undefined; numbered = next()) {
          taken.push(numbered);
          changes += execute(numbered, into);
          if (changes >= GROUP_CHANGES || performance.now() - begun > GROUP_MS) break;
          enqueue(port.receive());
        }
        return changes;
      });
      answers.push(...made);
      breathe(performance.now() - begun);
    } catch (error) {
      // Without the lock no request was taken, and waiting again for each would take too long.
      if (taken.length === 0)
        for (let numbered = next(); numbered !== undefined; numbered = next()) fail(numbered, faultOf(error));
      const until = performance.now() + lockWaitMs;
      for (const numbered of taken) commitAlone(numbered, until);
    }
  }

  function commitAlone(numbered: Numbered, until: number): void {
    const doomed = faultBefore(numbered);
    if (doomed !== undefined) return fail(numbered, doomed);
    try {
      guard.refuse();
      beginWriting(begin, until);
      answers.push(...transaction((into) => execute(numbered, into)));
    } catch (error) {
      fail(numbered, faultOf(error));
    }
    return undefined;
  }

  return {
    run(requests) {
      enqueue(requests);
      while (urgent.length + others.length > 0) {
        commitGroup();
        const wanted = answers.filter(({ id }) => id !== 0);
        answers = [];
        if (wanted.length > 0) port.answer(wanted);
        fitRoom();
        enqueue(port.receive());
        if (uncheckpointed >= CHECKPOINT_CHANGES && smallGroups >= SMALL_GROUPS_IN_A_ROW) {
          uncheckpointed = 0;
          port.checkpoint();
        }
      }
    },
  };
}

function faultOf(error: unknown): ThreadFault {
  const { message } = error as Error;
  return error instanceof Sqlite.SqliteError || error instanceof FilesGoneError
    ? { message, code: error.code }
    : { message };
}
