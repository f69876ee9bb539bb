/** The writer of the embedded key store, on its own thread: commits requests in their order, in groups. */
import type { Database } from 'better-sqlite3';
import { emptyWal } from '../checkpoint.js';
import { UNGUARDED, type WriteGuard } from '../openedFiles.js';
import { faultOf } from '../sqlite.js';
import { beginWriting, breathe, LOCK_WAIT_MS } from '../writeLock.js';
import type { Answer } from '../writerClient.js';
import type { NumberedKeyRequest } from './messages.js';
import { openSubjects } from './subjects.js';

interface KeyWriterOptions {
  /** Returns the requests that have arrived since the last call. */
  readonly receive: () => readonly NumberedKeyRequest[];
  readonly answer: (answers: readonly Answer[]) => void;
  readonly guard?: Pick<WriteGuard, 'refuse' | 'confirm'>;
  readonly lockWaitMs?: number;
}

/** Limit of a transaction, in ms, for which other processes wait. */
const GROUP_MS = 50;

/**
 * Commits requests until none is left, including those that arrive in between. A request fails when another process
 * keeps the file locked for `lockWaitMs`, or when `guard` refuses.
 * @returns a function that takes requests
 */
export function createKeyWriter(
  database: Database,
  { receive, answer, guard = UNGUARDED, lockWaitMs = LOCK_WAIT_MS }: KeyWriterOptions,
): (requests: readonly NumberedKeyRequest[]) => void {
  const subjects = openSubjects(database);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');

  /** Carries out `requests` in one transaction. @returns their answers */
  function transaction(requests: Iterable<NumberedKeyRequest>, until: number): readonly Answer[] {
    guard.refuse();
    beginWriting(begin, until);
    const began = performance.now();
    try {
      const made: Answer[] = [];
      for (const { id, request } of requests) made.push({ id, value: subjects.execute(request) });
      commit.run();
      guard.confirm();
      breathe(performance.now() - began);
      return made;
    } catch (error) {
      // A full disk has ended the transaction already.
      if (database.inTransaction) rollback.run();
      throw error;
    }
  }

  /** Takes requests of `waiting` until time is up. */
  function* taken(waiting: NumberedKeyRequest[], group: NumberedKeyRequest[]): Iterable<NumberedKeyRequest> {
    const end = performance.now() + GROUP_MS;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      group.push(next);
      yield next;
      if (performance.now() >= end) return;
      waiting.push(...receive());
    }
  }

  /** When a group fails, each of its requests is tried alone: the fault may be one's own. */
  function commitGroup(waiting: NumberedKeyRequest[]): void {
    const group: NumberedKeyRequest[] = [];
    let answers: readonly Answer[];
    try {
      answers = transaction(taken(waiting, group), performance.now() + lockWaitMs);
    } catch (error) {
      // Without the lock no request was taken, and waiting again for each would take too long.
      if (group.length === 0) return answer(waiting.splice(0).map(({ id }) => ({ id, fault: faultOf(error) })));
      answers = eachOnItsOwn(group);
    }
    answer(erased(group, answers));
  }

  function eachOnItsOwn(group: readonly NumberedKeyRequest[]): readonly Answer[] {
    const until = performance.now() + lockWaitMs;
    return group.flatMap((numbered) => {
      try {
        return transaction([numbered], until);
      } catch (error) {
        return { id: numbered.id, fault: faultOf(error) };
      }
    });
  }

  /** Empties the WAL, whose earlier pages still have the removed rows: a removal is answered when they are gone. */
  function erased(group: readonly NumberedKeyRequest[], answers: readonly Answer[]): readonly Answer[] {
    const removals = new Set(group.flatMap(({ id, request }) => (request.kind === 'remove' ? id : [])));
    if (removals.size === 0) return answers;
    try {
      emptyWal(database, performance.now() + lockWaitMs);
      return answers;
    } catch (error) {
      return answers.map((one) => (removals.has(one.id) ? { id: one.id, fault: faultOf(error) } : one));
    }
  }

  return (requests) => {
    const waiting = [...requests];
    while (waiting.length > 0) {
      commitGroup(waiting);
      waiting.push(...receive());
    }
  };
}
