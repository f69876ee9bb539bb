/**
 * Group commit: many appends in one transaction, each judged by its own expected revision, all made durable by one
 * fsync.
 */
import type { Database } from 'better-sqlite3';
import type { ExpectedRevision } from '../../../ports/eventStore.js';
import { Sqlite } from '../driver.js';
import { UNGUARDED, type WriteGuard } from '../openedFiles.js';
import { forgetPages, isDamage, unavailableOf, VALUE } from '../sqlite.js';
import { beginWriting, breathe, LOCK_WAIT_MS } from '../writeLock.js';
import { sealMark } from './log.js';

/** An append on its way to the writer. A plain array, since thousands a second are copied from thread to thread. */
export type AppendRequest = readonly [
  /** Names the append in its outcome. */
  sequence: number,
  stream: string,
  expected: ExpectedRevision,
  /** Five for each event: type, id, at, data (JSON), metadata (JSON). */
  fields: readonly string[],
];

/** Fields of one event in an `AppendRequest`. */
export const FIELDS = 5;

/** One group takes what is waiting, but little more than this, so that its first append need not wait long. */
export const GROUP = { appends: 1_000, bytes: 8_000_000 };

/** Length of an append's texts: near enough to bytes to bound a group. */
export function sizeOf(fields: readonly string[]): number {
  let size = 0;
  for (const field of fields) size += field.length;
  return size;
}

/** What became of an append. */
export type AppendOutcome =
  | {
      readonly sequence: number;
      readonly kind: 'appended';
      readonly revision: number;
      readonly position: number;
      /** Stored by an earlier append of the same events. */
      readonly repeat?: true;
    }
  | { readonly sequence: number; readonly kind: 'conflict'; readonly actual: number }
  | { readonly sequence: number; readonly kind: 'sealed' }
  | {
      readonly sequence: number;
      readonly kind: 'failed';
      readonly message: string;
      /** SQLite's, where it was SQLite that failed. */
      readonly code?: string;
      /** True when it may have been stored all the same. */
      readonly outcomeUnknown: boolean;
    };

/** What may be other than it is. */
export interface GroupCommitOptions {
  /** How long the lock of the file is waited for, ms. */
  readonly lockWaitMs?: number;
  /** Whether what is written will be found again. */
  readonly guard?: Pick<WriteGuard, 'refuse' | 'confirm'>;
}

/**
 * Returns the function that commits a group. It answers for every append and throws nothing: engine trouble fails the
 * whole group (nothing was written), anything else only the append that caused it.
 *
 * An append whose expectation fails is a repeat, and answered as the first time, when exactly its ids stand right after
 * the expected revision. With `'any'` its first id is looked for in the whole stream, which takes time in a long one.
 *
 * A group fails when other processes keep the file locked for `lockWaitMs`, and when the `guard` says so. The
 * connection waits for no lock by itself any more.
 */
export function groupCommit(
  database: Database,
  file: string,
  { lockWaitMs = LOCK_WAIT_MS, guard = UNGUARDED }: GroupCommitOptions = {},
): (appends: readonly AppendRequest[]) => AppendOutcome[] {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  const sealed = sealMark(database);
  const end = database.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck();
  const lastRevision = database
    .prepare<[string], number>('SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1')
    .pluck();
  const placeOf = database
    .prepare<[string, string], number>(
      'SELECT revision FROM events WHERE stream = ? AND id = ? ORDER BY revision DESC LIMIT 1',
    )
    .pluck();
  const after = database
    .prepare<[string, number, number], [id: string, position: number]>(
      `SELECT id, position FROM events WHERE stream = ? AND revision > ${VALUE} ORDER BY revision LIMIT ${VALUE}`,
    )
    .raw();
  const insert = database.prepare(
    'INSERT INTO events (position, stream, revision, type, id, at, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );

  /** Position of the last of exactly these events right after `revision`; `undefined` when others stand there. */
  function repeated(stream: string, revision: number, fields: readonly string[]): number | undefined {
    const count = fields.length / FIELDS;
    const standing = after.all(stream, revision, count);
    if (standing.length < count || !standing.every(([id], index) => id === fields[index * FIELDS + 1]))
      return undefined;
    return standing[count - 1]![1];
  }

  function appendOne([sequence, stream, expected, fields]: AppendRequest, lastPosition: number): AppendOutcome {
    const count = fields.length / FIELDS;
    const actual = lastRevision.get(stream) ?? -1;
    let base = actual;
    if (expected === 'any') {
      const place = actual === -1 ? undefined : placeOf.get(stream, fields[1]!);
      if (place !== undefined) base = place - 1;
    } else {
      base = expected === 'none' ? -1 : expected;
    }
    if (base !== actual) {
      const position = base < actual ? repeated(stream, base, fields) : undefined;
      if (position !== undefined) return { sequence, kind: 'appended', revision: base + count, position, repeat: true };
      if (expected !== 'any') return { sequence, kind: 'conflict', actual };
    }
    for (let index = 0; index < count; index++) {
      const at = index * FIELDS;
      insert.run(
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

  // `beginWriting` waits.
  database.pragma('busy_timeout = 0');
  /** For how long the last group held the file's lock, and when it gave it back, ms. */
  let held = 0;
  let freed = 0;

  function commitGroup(appends: readonly AppendRequest[]): AppendOutcome[] {
    let committing = false;
    // Not right after the group: nobody need wait for its answers.
    breathe(held, performance.now() - freed);
    try {
      guard.refuse();
      beginWriting(begin, performance.now() + lockWaitMs);
      const begun = performance.now();
      if (sealed()) {
        rollback.run();
        return appends.map(([sequence]) => ({ sequence, kind: 'sealed' }));
      }
      let last = end.get()!;
      const outcomes = appends.map((append) => {
        const outcome = appendOne(append, last);
        // A repeat answers a position that stood before.
        if (outcome.kind === 'appended') last = Math.max(last, outcome.position);
        return outcome;
      });
      committing = true;
      commit.run();
      freed = performance.now();
      held = freed - begun;
      guard.confirm();
      return outcomes;
    } catch (error) {
      if (database.inTransaction) rollback.run();
      forgetPages(database, error);
      if (appends.length > 1 && concernsOne(error, file)) return appends.flatMap((append) => commitGroup([append]));
      const { message, code } = error as Error & { code?: string };
      // A frame that was written but not known to be synced may still be found after a crash; on a full disk the
      // commit's frame was never written.
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

  return commitGroup;
}

/** Whether it may be the fault of one append of a group: of its content, or of a damaged page that it alone needs. */
function concernsOne(error: unknown, file: string): boolean {
  if (error instanceof Sqlite.SqliteError && isDamage(error)) return true;
  try {
    unavailableOf(error, file);
    return false;
  } catch {
    return true;
  }
}
