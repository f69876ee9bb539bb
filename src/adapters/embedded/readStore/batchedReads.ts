/**
 * Look-ups by id, batched by turn of the event loop. A worker thread answers many, which leaves this thread free for
 * requests. A few are read on this thread, which is faster than a message and its answer.
 */
import type { Worker } from 'node:worker_threads';
import { tickBatcher } from '../../../lib/async/tickBatcher.js';
import type { CollectionSpec, StoredDocument } from '../../../ports/readStore.js';
import { threadClient } from '../thread.js';
import { type Layout, layoutOf } from './layout.js';
import type { Memory } from './memory.js';
import type { LookupAnswer, LookupQuestion } from './messages.js';
import { documentOf } from './reader.js';

export interface BatchedReads {
  get(collection: CollectionSpec, id: string): Promise<StoredDocument | undefined>;
  close(): Promise<void>;
}

export interface BatchedReadsOptions {
  readonly read: (layout: Layout, id: string) => StoredDocument | undefined;
  /** The documents in memory, brought up to date. @throws errors of `read` */
  readonly memory: () => Memory;
  /** Starts the thread for look-ups; `undefined`: no processor is free for one. */
  readonly start: (() => Worker) | undefined;
  readonly longLived?: boolean;
  /** Called when the thread has died: this thread then reads instead, more slowly, and meets any fault of the file. */
  readonly onDeath: (error: Error) => void;
  /** Milliseconds between two starts of the thread; default 5,000. */
  readonly restartMs?: number;
}

interface Lookup {
  readonly layout: Layout;
  readonly id: string;
  readonly resolve: (document: StoredDocument | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Look-ups that were sent to the thread; `age`: the memory's age at that time. */
interface Question {
  readonly lookups: readonly Lookup[];
  readonly age: number;
}

/** Least look-ups of a message to the thread: fewer are not worth one. */
const MANY = 8;
/** Most look-ups of a message, and of those that this thread answers in one turn: less than 2 ms of reading. */
const AT_ONCE = 100;
const UNDER_WAY = 8;
const RESTART_MS = 5_000;

export function openBatchedReads({
  read,
  memory,
  start,
  longLived = false,
  onDeath,
  restartMs = RESTART_MS,
}: BatchedReadsOptions): BatchedReads {
  let startedAt = Number.NEGATIVE_INFINITY;
  let closed = false;
  let questions: Question[] = [];
  const thread =
    start === undefined
      ? undefined
      : threadClient<LookupQuestion, LookupAnswer>({
          spawn: start,
          atOnce: longLived && 'soon',
          ended: () => 'the read store: its thread for look-ups ended',
          onAnswer: answered,
          onEnd({ cause }) {
            const left = questions;
            questions = [];
            thread?.keepAlive(false);
            for (const { lookups } of left) for (const lookup of lookups) lookUpHere(lookup);
            if (cause instanceof Error) onDeath(cause);
          },
        });
  const waiting = tickBatcher<Lookup>((lookups) => {
    while (lookups.length >= MANY && threadIsFree()) askThread(lookups.splice(0, AT_ONCE));
    for (const lookup of lookups.splice(0, AT_ONCE)) lookUpHere(lookup);
    return lookups.length > 0 ? lookups : undefined;
  });

  function threadIsFree(): boolean {
    if (thread === undefined || closed) return false;
    if (thread.state() === 'none' && performance.now() - startedAt >= restartMs) {
      startedAt = performance.now();
      thread.start();
    }
    return thread.state() === 'ready' && questions.length < UNDER_WAY;
  }

  function lookUpHere({ layout, id, resolve, reject }: Lookup): void {
    try {
      const remembered = memory();
      let document = remembered.known(layout, id);
      if (document === undefined) {
        document = read(layout, id);
        if (document !== undefined) remembered.remember(layout, document, remembered.age());
      }
      resolve(document);
    } catch (error) {
      reject(error);
    }
  }

  function askThread(taken: readonly Lookup[]): void {
    const unknown = new Map<Layout, Lookup[]>();
    let age = 0;
    try {
      const remembered = memory();
      age = remembered.age();
      for (const lookup of taken) {
        const { layout, id } = lookup;
        const known = remembered.known(layout, id);
        if (known !== undefined) {
          lookup.resolve(known);
          continue;
        }
        const others = unknown.get(layout);
        if (others === undefined) unknown.set(layout, [lookup]);
        else others.push(lookup);
      }
    } catch (error) {
      for (const { reject } of taken) reject(error);
      return;
    }
    const lookups = [...unknown.values()].flat();
    if (lookups.length < MANY) for (const lookup of lookups) lookUpHere(lookup);
    else {
      thread?.keepAlive(true);
      questions.push({ lookups, age });
      thread?.send([...unknown].map(([{ table }, of]) => ({ table, ids: of.map(({ id }) => id) })));
    }
  }

  function answered(found: LookupAnswer): void {
    const { lookups, age } = questions.shift()!;
    if (questions.length === 0) thread?.keepAlive(false);
    // Reading on this thread meets the same error, and throws it as usual.
    if (found === undefined) for (const lookup of lookups) lookUpHere(lookup);
    else lookups.forEach((lookup, index) => settle(lookup, found[2 * index], found[2 * index + 1], age));
  }

  function settle(
    { layout, id, resolve, reject }: Lookup,
    position: string | undefined,
    body: string | undefined,
    age: number,
  ): void {
    if (position === undefined || body === undefined) return resolve(undefined);
    try {
      const document = documentOf([id, position, body]);
      memory().remember(layout, document, age);
      return resolve(document);
    } catch (error) {
      return reject(error);
    }
  }

  return {
    get: (collection, id) =>
      new Promise((resolve, reject) => void waiting.add({ layout: layoutOf(collection), id, resolve, reject })),
    async close() {
      closed = true;
      await thread?.close();
    },
  };
}
