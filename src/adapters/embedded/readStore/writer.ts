import type { Database, Statement } from 'better-sqlite3';
import { UNGUARDED, type WriteGuard } from '../openedFiles.js';
import { emptyWal } from '../checkpoint.js';
import { beginWriting, breathe, isBusy, LOCK_WAIT_MS } from '../writeLock.js';
import { makeRoom } from './file.js';
import { faultOf, type ThreadFault } from '../sqlite.js';
import type { Answer, Numbered, NumberedChange } from './messages.js';
import { openRequests, type Requests } from './requests.js';

interface WriterPort {
  receive(): readonly Numbered[];
  answer(answers: readonly Answer[]): void;
  checkpoint(): void;
}

interface Writer {
  take(requests: readonly Numbered[]): void;
  /** Carries out taken requests, and those that arrive in between, in one transaction. @returns whether some are left */
  work(): boolean;
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

interface WriterOptions {
  /** The current time in ms since the epoch, by which records expire. */
  readonly now?: () => number;
  readonly lockWaitMs?: number;
  readonly guard?: Pick<WriteGuard, 'refuse' | 'confirm'>;
}

/** A writer, and the requests that it has received. */
interface State extends Required<Pick<WriterOptions, 'lockWaitMs' | 'guard'>> {
  readonly database: Database;
  readonly port: WriterPort;
  readonly requests: Requests;
  readonly queue: RequestQueue;
  readonly begin: Statement;
  readonly commit: Statement;
  readonly rollback: Statement;
  /** Requests to empty the WAL. */
  readonly emptying: Numbered[];
  /** Changes since the last checkpoint. */
  uncheckpointed: number;
  /** Changes of the last transaction. */
  lastGroup: number;
  /** Small groups in a row. */
  smallGroups: number;
}

/** Requests fail when another process locks the file for `lockWaitMs`, or when `guard` refuses. */
export function createWriter(
  database: Database,
  port: WriterPort,
  { now = Date.now, lockWaitMs = LOCK_WAIT_MS, guard = UNGUARDED }: WriterOptions = {},
): Writer {
  const state: State = {
    database,
    port,
    lockWaitMs,
    guard,
    requests: openRequests(database, now),
    queue: openRequestQueue(),
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    rollback: database.prepare('ROLLBACK'),
    emptying: [],
    uncheckpointed: 0,
    lastGroup: 0,
    smallGroups: SMALL_GROUPS,
  };
  return { take: (requests) => admit(state, requests), work: () => work(state) };
}

function work(state: State): boolean {
  const { queue, emptying, port } = state;
  if (!queue.empty()) commitGroup(state);
  emptyWals(state);
  const answers = queue.takeAnswers();
  if (answers.length > 0) port.answer(answers);
  fitRoom(state);
  if (state.uncheckpointed >= CHECKPOINT_CHANGES && state.smallGroups >= SMALL_GROUPS_IN_A_ROW) {
    state.uncheckpointed = 0;
    port.checkpoint();
  }
  return !queue.empty() || emptying.length > 0;
}

function admit({ queue, emptying }: State, numbered: readonly Numbered[]): void {
  for (const one of numbered) {
    if (isChange(one)) queue.add([one]);
    else emptying.push(one);
  }
}

/** When a group fails, each of its requests is tried alone. */
function commitGroup(state: State): void {
  const { queue, guard, begin, lockWaitMs, requests, port } = state;
  const taken: NumberedChange[] = [];
  try {
    guard.refuse();
    beginWriting(begin, performance.now() + lockWaitMs);
    const startedAt = performance.now();
    const made = transaction(state, (into) => {
      let changes = 0;
      for (let numbered = queue.next(); numbered !== undefined; numbered = queue.next()) {
        taken.push(numbered);
        changes += requests.execute(numbered, into);
        if (changes >= GROUP_CHANGES || performance.now() - startedAt > GROUP_MS) break;
        admit(state, port.receive());
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
    for (const numbered of taken) commitOne(state, numbered, until);
  }
}

function commitOne(state: State, numbered: NumberedChange, until: number): void {
  const { queue, guard, begin, requests } = state;
  const fault = queue.faultBefore(numbered);
  if (fault !== undefined) return queue.fail(numbered, fault);
  try {
    guard.refuse();
    beginWriting(begin, until);
    queue.answer(transaction(state, (into) => requests.execute(numbered, into)));
  } catch (error) {
    queue.fail(numbered, faultOf(error));
  }
  return undefined;
}

/** Ends the transaction that was begun. @param work returns the number of its changes */
function transaction(state: State, work: (made: Answer[]) => number): Answer[] {
  const { database, requests, guard } = state;
  const made: Answer[] = [];
  requests.begin();
  try {
    const changes = work(made);
    requests.end();
    state.commit.run();
    guard.confirm();
    state.uncheckpointed += changes;
    state.lastGroup = changes;
    return made;
  } catch (error) {
    // A full disk has already ended the transaction.
    if (database.inTransaction) state.rollback.run();
    requests.forget();
    throw error;
  }
}

/** Carries out requests to empty the WAL; the answer is false while readers or other processes need it. */
function emptyWals({ database, emptying, queue, guard }: State): void {
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

function fitRoom(state: State): void {
  const roomy = state.smallGroups < SMALL_GROUPS;
  state.smallGroups = state.lastGroup < SMALL_GROUP_CHANGES ? state.smallGroups + 1 : 0;
  if (roomy !== state.smallGroups < SMALL_GROUPS) makeRoom(state.database, roomy ? 'few' : 'many');
}

function isChange(numbered: Numbered): numbered is NumberedChange {
  return numbered.request.kind !== 'empty WAL';
}

interface RequestQueue {
  add(requests: readonly NumberedChange[]): void;
  empty(): boolean;
  next(): NumberedChange | undefined;
  /** The fault of an earlier part of the same write. */
  faultBefore(numbered: NumberedChange): ThreadFault | undefined;
  fail(numbered: NumberedChange, fault: ThreadFault): void;
  answer(made: readonly Answer[]): void;
  takeAnswers(): Answer[];
}

function openRequestQueue(): RequestQueue {
  /** Changes to records go first: requests wait for them, and they are small. */
  const urgent: NumberedChange[] = [];
  const others: NumberedChange[] = [];
  /** Faults of failed writes, by call, until their last part. */
  const failed = new Map<number, ThreadFault>();
  let answers: Answer[] = [];

  function faultBefore({ request }: NumberedChange): ThreadFault | undefined {
    return request.kind === 'write' ? failed.get(request.call) : undefined;
  }

  function fail({ id, request }: NumberedChange, fault: ThreadFault): void {
    if (request.kind === 'write') {
      if (request.last) failed.delete(request.call);
      else failed.set(request.call, fault);
    }
    answers.push({ id, fault });
  }

  return {
    add(requests) {
      for (const numbered of requests) {
        const { kind } = numbered.request;
        (kind === 'put' || kind === 'delete' ? urgent : others).push(numbered);
      }
    },
    empty: () => urgent.length + others.length === 0,
    next() {
      for (;;) {
        const numbered = urgent.shift() ?? others.shift();
        if (numbered === undefined) return undefined;
        const fault = faultBefore(numbered);
        if (fault === undefined) return numbered;
        fail(numbered, fault);
      }
    },
    faultBefore,
    fail,
    answer(made) {
      answers.push(...made);
    },
    takeAnswers() {
      const answered = answers.filter(({ id }) => id !== 0);
      answers = [];
      return answered;
    },
  };
}
