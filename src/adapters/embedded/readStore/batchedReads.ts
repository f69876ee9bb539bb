/**
 * Look-ups of documents by id, batched by turn of the event loop. Many are sent to a worker thread, so that this thread
 * has its time for requests. Few are read here, which is faster than a message there and back.
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
  readonly loaded: Promise<void>;
  /** Ends the thread after its answers. From now on this thread reads everything. */
  close(): Promise<void>;
}

export interface BatchedReadsOptions {
  readonly read: (layout: Layout, id: string) => StoredDocument | undefined;
  /** Documents in memory, up to date. @throws errors of `read` */
  readonly memory: () => Memory;
  /** Starts the thread; `undefined`: no processor is free for one. Look-ups of a thread that dies are made here. */
  readonly start: (() => Worker) | undefined;
  /** Whether the thread is started now, not by the first large batch. Default false. */
  readonly longLived?: boolean;
  /**
   * Called with the error that ended the thread. Everything can be read here, more slowly, and a fault of the file
   * shows there.
   */
  readonly onDeath: (error: Error) => void;
  /** The least time between two starts of the thread, in ms; default 5,000. */
  readonly restartMs?: number;
}

interface Lookup {
  readonly layout: Layout;
  readonly id: string;
  readonly resolve: (document: StoredDocument | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Look-ups sent to the thread, in the order of its answer, and the memory's age then. */
interface Question {
  readonly lookups: readonly Lookup[];
  readonly age: number;
}

/** Look-ups of a turn that are worth a message. */
const MANY = 8;
/** The most of a turn or a message: less than 2 ms of reading. */
const AT_ONCE = 100;
/** The most messages that wait for the thread. */
const UNDER_WAY = 8;
const RESTART_MS = 5_000;

/** The first large batch starts the thread, unless it is to be there from the beginning. */
export function openBatchedReads({
  read,
  memory,
  start,
  longLived = false,
  onDeath,
  restartMs = RESTART_MS,
}: BatchedReadsOptions): BatchedReads {
  let startedAt = longLived ? performance.now() : Number.NEGATIVE_INFINITY;
  let closed = false;
  let questions: Question[] = [];
  const thread =
    start === undefined
      ? undefined
      : threadClient<LookupQuestion, LookupAnswer>({
          spawn: start,
          atOnce: longLived,
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
    const left = lookups.length > AT_ONCE ? lookups.splice(AT_ONCE) : undefined;
    if (lookups.length >= MANY && threadIsFree()) askThread(lookups);
    else for (const lookup of lookups) lookUpHere(lookup);
    return left;
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

  /** Asks the thread for documents that are not in memory, where they are many. */
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
    // Reading here meets the thread's error, and throws it as usual.
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
    loaded: thread?.loaded ?? Promise.resolve(),
    get: (collection, id) =>
      new Promise((resolve, reject) => void waiting.add({ layout: layoutOf(collection), id, resolve, reject })),
    async close() {
      closed = true;
      await thread?.close();
    },
  };
}
