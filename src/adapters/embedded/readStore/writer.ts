import type { Database } from 'better-sqlite3';
import { UNGUARDED, type WriteGuard } from '../openedFiles.js';
import { emptyWal } from '../checkpoint.js';
import { beginWriting, breathe, isBusy, LOCK_WAIT_MS } from '../writeLock.js';
import { makeRoom } from './file.js';
import { faultOf } from '../sqlite.js';
import type { Answer, Numbered, NumberedChange } from './messages.js';
import { openRequestQueue } from './requestQueue.js';
import { openRequests } from './requests.js';

export interface WriterPort {
  receive(): readonly Numbered[];
  answer(answers: readonly Answer[]): void;
  checkpoint(): void;
}

export interface Writer {
  run(requests: readonly Numbered[]): void;
}

/** Limits of a transaction, in changes and ms, for which other requests and processes wait. */
const GROUP_CHANGES = 20_000;
const GROUP_MS = 50;
/**
 * Changes between checkpoints, once `SMALL_GROUPS_IN_A_ROW` have come. The large groups of a rebuild would move the
 * same pages again and again.
 */
const CHECKPOINT_CHANGES = 4_000;
const SMALL_GROUPS_IN_A_ROW = 10;
const SMALL_GROUP_CHANGES = 1_000;
/**
 * Small groups in a row after which the writer's cache shrinks: after some seconds under load, no rebuild runs at full
 * speed.
 */
const SMALL_GROUPS = 1_000;
/** Milliseconds that writes wait for the WAL to be emptied. */
const EMPTY_MS = 25;

export interface WriterOptions {
  /** The current time in ms since the epoch, by which records expire. */
  readonly now?: () => number;
  readonly lockWaitMs?: number;
  readonly guard?: Pick<WriteGuard, 'refuse' | 'confirm'>;
}

/** Requests fail when another process locks the file for `lockWaitMs`, or when `guard` refuses. */
export function createWriter(
  database: Database,
  port: WriterPort,
  { now = Date.now, lockWaitMs = LOCK_WAIT_MS, guard = UNGUARDED }: WriterOptions = {},
): Writer {
  const requests = openRequests(database, now);
  const queue = openRequestQueue();
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  const emptying: Numbered[] = [];
  let uncheckpointed = 0;
  let lastGroup = 0;
  let smallGroups = SMALL_GROUPS;

  /** @param work returns the number of its changes */
  function transaction(work: (made: Answer[]) => number): Answer[] {
    const made: Answer[] = [];
    requests.begin();
    try {
      const changes = work(made);
      requests.end();
      commit.run();
      guard.confirm();
      uncheckpointed += changes;
      lastGroup = changes;
      return made;
    } catch (error) {
      // A full disk has already ended the transaction.
      if (database.inTransaction) rollback.run();
      requests.forget();
      throw error;
    }
  }

  function admit(numbered: readonly Numbered[]): void {
    for (const one of numbered) {
      if (isChange(one)) queue.add([one]);
      else emptying.push(one);
    }
  }

  /** Carries out requests to empty the WAL; the answer is false while readers or other processes need it. */
  function emptyWals(): void {
    for (const { id } of emptying.splice(0)) {
      try {
        guard.refuse();
        emptyWal(database, performance.now() + EMPTY_MS);
        queue.answer([{ id, value: true }]);
      } catch (error) {
        queue.answer([isBusy(error) ? { id, value: false } : { id, fault: faultOf(error) }]);
      }
    }
  }

  function fitRoom(): void {
    const roomy = smallGroups < SMALL_GROUPS;
    smallGroups = lastGroup < SMALL_GROUP_CHANGES ? smallGroups + 1 : 0;
    if (roomy !== smallGroups < SMALL_GROUPS) makeRoom(database, roomy ? 'few' : 'many');
  }

  /** When a group fails, each of its requests is tried alone. */
  function commitGroup(): void {
    const taken: NumberedChange[] = [];
    try {
      guard.refuse();
      beginWriting(begin, performance.now() + lockWaitMs);
      const startedAt = performance.now();
      const made = transaction((into) => {
        let changes = 0;
        for (let numbered = queue.next(); numbered !== undefined; numbered = queue.next()) {
          taken.push(numbered);
          changes += requests.execute(numbered, into);
          if (changes >= GROUP_CHANGES || performance.now() - startedAt > GROUP_MS) break;
          admit(port.receive());
        }
        return changes;
      });
      queue.answer(made);
      breathe(performance.now() - startedAt);
    } catch (error) {
      // Without the lock no request was taken, and waiting again for each would take too long.
      if (taken.length === 0)
        for (let numbered = queue.next(); numbered !== undefined; numbered = queue.next())
          queue.fail(numbered, faultOf(error));
      const until = performance.now() + lockWaitMs;
      for (const numbered of taken) commitAlone(numbered, until);
    }
  }

  function commitAlone(numbered: NumberedChange, until: number): void {
    const fault = queue.faultBefore(numbered);
    if (fault !== undefined) return queue.fail(numbered, fault);
    try {
      guard.refuse();
      beginWriting(begin, until);
      queue.answer(transaction((into) => requests.execute(numbered, into)));
    } catch (error) {
      queue.fail(numbered, faultOf(error));
    }
    return undefined;
  }

  return {
    run(first) {
      admit(first);
      while (!queue.empty() || emptying.length > 0) {
        if (!queue.empty()) commitGroup();
        emptyWals();
        const answers = queue.takeAnswers();
        if (answers.length > 0) port.answer(answers);
        fitRoom();
        admit(port.receive());
        if (uncheckpointed >= CHECKPOINT_CHANGES && smallGroups >= SMALL_GROUPS_IN_A_ROW) {
          uncheckpointed = 0;
          port.checkpoint();
        }
      }
    },
  };
}

function isChange(numbered: Numbered): numbered is NumberedChange {
  return numbered.request.kind !== 'empty WAL';
}
