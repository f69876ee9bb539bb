/** Group commit: many appends in one transaction, each with its own expected revision, all durable by one fsync. */
import type { Database } from 'better-sqlite3';
import type { ExpectedRevision } from '../../../ports/eventStore.js';
import { UNGUARDED, type WriteGuard } from '../openedFiles.js';
import { forgetPages, isDamage, unavailableOf, VALUE } from '../sqlite.js';
import { beginWriting, breathe, LOCK_WAIT_MS } from '../writeLock.js';
import { Sqlite } from '../driver.js';
import { IN_LOG, LAST_POSITION, MAX_POSITION, sealMark } from './log.js';

/** One append as an array, the cheapest form: thousands a second cross threads. */
export type AppendRequest = readonly [
  sequence: number,
  stream: string,
  expected: ExpectedRevision,
  /** Fields of one event after another: type, id, at, data (JSON), metadata (JSON). */
  fields: readonly string[],
];

export const FIELDS = 5;

/** The error code of an append whose position in the log is occupied, as only an altered file can have it. */
export const OCCUPIED = 'SQLITE_CONSTRAINT_UNIQUE';

/** Limits of a group, so that its first append does not wait long. */
export const GROUP = { appends: 1_000, bytes: 8_000_000 };

/** Length of all fields in characters, close enough to bytes. */
export function sizeOf(fields: readonly string[]): number {
  let size = 0;
  for (const field of fields) size += field.length;
  return size;
}

export type AppendOutcome =
  | {
      readonly sequence: number;
      readonly kind: 'appended';
      readonly revision: number;
      readonly position: number;
      /** The events were stored by an earlier append of the same events. */
      readonly repeat?: true;
    }
  | { readonly sequence: number; readonly kind: 'conflict'; readonly actual: number }
  | { readonly sequence: number; readonly kind: 'sealed' }
  | {
      readonly sequence: number;
      readonly kind: 'failed';
      readonly message: string;
      readonly code?: string;
      readonly outcomeUnknown: boolean;
    };

interface GroupCommitOptions {
  readonly lockWaitMs?: number;
  readonly guard?: Pick<WriteGuard, 'refuse' | 'confirm'>;
}

/** A database to which groups are committed. */
interface Target extends Required<GroupCommitOptions> {
  readonly database: Database;
  readonly file: string;
  readonly statements: Statements;
  readonly sealed: () => boolean;
  /** Milliseconds for which the last group held the lock. */
  held: number;
  /** Time at which the last group freed the lock, by the monotonic clock. */
  freed: number;
}

/**
 * Prepares group commits. The returned function answers every append and never throws. An engine fault, a lock held by
 * others for `lockWaitMs` or a refusal of `guard` fails the whole group, with nothing written; any other error fails
 * one append. A failed expectation is a repeat when exactly the append's ids follow the expected revision; its answer
 * is that of the first time. With `'any'` the whole stream is searched for the first id.
 */
export function groupCommit(
  database: Database,
  file: string,
  { lockWaitMs = LOCK_WAIT_MS, guard = UNGUARDED }: GroupCommitOptions = {},
): (appends: readonly AppendRequest[]) => AppendOutcome[] {
  const target: Target = {
    database,
    file,
    lockWaitMs,
    guard,
    statements: statementsOf(database),
    sealed: sealMark(database),
    held: 0,
    freed: 0,
  };
  // `beginWriting` waits for the lock in place of SQLite.
  database.pragma('busy_timeout = 0');
  return (appends) => commitGroup(target, appends);
}

function commitGroup(target: Target, appends: readonly AppendRequest[]): AppendOutcome[] {
  const { database, file, lockWaitMs, guard, statements } = target;
  let committing = false;
  // The pause comes before this group, not right after the last one, whose answers would have waited.
  breathe(target.held, performance.now() - target.freed);
  try {
    guard.refuse();
    beginWriting(statements.begin, performance.now() + lockWaitMs);
    const startedAt = performance.now();
    if (target.sealed()) {
      statements.rollback.run();
      return appends.map(([sequence]) => ({ sequence, kind: 'sealed' }));
    }
    let last = statements.end.get()!;
    const outcomes = appends.map((append) => {
      const outcome = appendOne(statements, append, last);
      // The position of a repeat is an earlier one.
      if (outcome.kind === 'appended') last = Math.max(last, outcome.position);
      return outcome;
    });
    committing = true;
    statements.commit.run();
    target.freed = performance.now();
    target.held = target.freed - startedAt;
    guard.confirm();
    return outcomes;
  } catch (error) {
    if (database.inTransaction) statements.rollback.run();
    forgetPages(database, error);
    if (appends.length > 1 && concernsOne(error, file))
      return appends.flatMap((append) => commitGroup(target, [append]));
    const { message, code } = error as Error & { code?: string };
    // After a crash a WAL frame may be found that was written but not synced. On a full disk it was never written.
    const outcomeUnknown = committing && code !== 'SQLITE_FULL';
    return appends.map(([sequence]) => ({
      sequence,
      kind: 'failed',
      message,
      ...(code === undefined ? {} : { code }),
      outcomeUnknown,
    }));
  }
}

/** Appends within the group's transaction. @param lastPosition the log's end, with the group's earlier appends */
function appendOne(
  statements: Statements,
  [sequence, stream, expected, fields]: AppendRequest,
  lastPosition: number,
): AppendOutcome {
  const count = fields.length / FIELDS;
  const actual = statements.lastRevision.get(stream) ?? -1;
  let base = actual;
  if (expected === 'any') {
    const found = actual === -1 ? undefined : statements.revisionOf.get(stream, fields[1]!);
    if (found !== undefined) base = found - 1;
  } else {
    base = expected === 'none' ? -1 : expected;
  }
  if (base !== actual) {
    const position = base < actual ? repeated(statements, stream, base, fields) : undefined;
    if (position !== undefined) return { sequence, kind: 'appended', revision: base + count, position, repeat: true };
    if (expected !== 'any') return { sequence, kind: 'conflict', actual };
  }
  if (lastPosition + count > MAX_POSITION)
    throw new Sqlite.SqliteError(`no position is left behind ${lastPosition}`, OCCUPIED);
  for (let index = 0; index < count; index++) {
    const at = index * FIELDS;
    statements.insert.run(
      lastPosition + 1 + index,
      stream,
      actual + 1 + index,
      fields[at],
      fields[at + 1],
      fields[at + 2],
      fields[at + 3],
      fields[at + 4],
    );
  }
  return { sequence, kind: 'appended', revision: actual + count, position: lastPosition + count };
}

/** @returns the position of the last event, where exactly these events follow the revision in the stream */
function repeated(
  { after }: Statements,
  stream: string,
  revision: number,
  fields: readonly string[],
): number | undefined {
  const count = fields.length / FIELDS;
  const stored = after.all(stream, revision, count);
  if (stored.length < count || !stored.every(([id], index) => id === fields[index * FIELDS + 1])) return undefined;
  return stored[count - 1]![1];
}

type Statements = ReturnType<typeof statementsOf>;

function statementsOf(database: Database) {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  const end = database.prepare<[], number>(LAST_POSITION).pluck();
  const lastRevision = database
    .prepare<[string], number>(
      `SELECT revision FROM events WHERE stream = ? AND ${IN_LOG} ORDER BY revision DESC LIMIT 1`,
    )
    .pluck();
  const revisionOf = database
    .prepare<[string, string], number>(
      `SELECT revision FROM events WHERE stream = ? AND id = ? AND ${IN_LOG} ORDER BY revision DESC LIMIT 1`,
    )
    .pluck();
  const after = database
    .prepare<[string, number, number], [id: string, position: number]>(
      `SELECT id, position FROM events WHERE stream = ? AND revision > ${VALUE} AND ${IN_LOG} ORDER BY revision LIMIT ${VALUE}`,
    )
    .raw();
  const insert = database.prepare(
    'INSERT INTO events (position, stream, revision, type, id, at, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  return { begin, commit, rollback, end, lastRevision, revisionOf, after, insert };
}

/** Whether an error may concern one append only: by its content, or by a damaged page that no other append needs. */
function concernsOne(error: unknown, file: string): boolean {
  if (isDamage(error)) return true;
  try {
    unavailableOf(error, file);
    return false;
  } catch {
    return true;
  }
}
