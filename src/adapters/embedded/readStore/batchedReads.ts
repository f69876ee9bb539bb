/**
 * Documents looked up by id. What is asked for in one turn of the event loop is looked up together, when the turn is
 * done; where that is much, a thread of its own reads, so that the main thread has its time for requests. Little is
 * read at once: a message to a thread and back would take longer.
 */
import type { Worker } from 'node:worker_threads';
import type { CollectionSpec, StoredDocument } from '../../../ports/readStore.js';
import { endThread, loaded } from '../thread.js';
import { type Layout, layoutOf } from './layout.js';
import type { Memory } from './memory.js';
import type { FromLookupThread, ToLookupThread } from './messages.js';
import { documentOf } from './reader.js';

/** Looks documents up. */
export interface Lookups {
  /** The document, or `undefined`; throws what `read` does. */
  get(collection: CollectionSpec, id: string): Promise<StoredDocument | undefined>;
  /** Resolves when the thread has loaded everything, where it is started at once. */
  readonly loaded: Promise<void>;
  /** Ends the thread; what it was asked is answered before. From now on everything is read on this one. */
  close(): Promise<void>;
}

/** What looking up takes. */
export interface LookupsOptions {
  /** Reads a document on this thread. */
  readonly read: (layout: Layout, id: string) => StoredDocument | undefined;
  /** The documents remembered, brought up to date. @throws what `read` does. */
  readonly memory: () => Memory;
  /** Starts the thread; `undefined`: there is no processor for one. What one that dies was asked is read here. */
  readonly start: (() => Worker) | undefined;
  /** Whether the thread is started now, not when there is much to look up for the first time. Default false. */
  readonly longLived?: boolean;
  /** Told what the thread died of. Everything can be read here, more slowly: what ails the file shows there. */
  readonly onDeath: (error: Error) => void;
  /** From one start of the thread to the next, in ms, at least; default 5,000. */
  readonly restartMs?: number;
}

interface Lookup {
  readonly layout: Layout;
  readonly id: string;
  readonly resolve: (document: StoredDocument | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** What the thread is asked, in the order of its answer, and the memory's age then. */
interface Question {
  readonly lookups: readonly Lookup[];
  readonly age: number;
}

interface Thread {
  readonly worker: Worker;
  /** It has said that it listens. */
  ready: boolean;
  /** In the order in which it answers. */
  readonly questions: Question[];
}

/** So many in one turn are worth a message. */
const MANY = 8;
/** At most so many in one turn, or in one message: less than 2 ms of reading. */
const AT_ONCE = 100;
/**
 * So many messages may wait for the thread: what comes in the meantime need not wait for all of them before it is read.
 */
const UNDER_WAY = 8;
/** See `LookupsOptions.restartMs`. */
const RESTART_MS = 5_000;

/** Starts no thread before there is much to look up, unless it is to be there from the beginning. */
export function openLookups({
  read,
  memory,
  start,
  longLived = false,
  onDeath,
  restartMs = RESTART_MS,
}: LookupsOptions): Lookups {
  let waiting: Lookup[] = [];
  let scheduled = false;
  let thread: Thread | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  let closed = false;

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(answerThem);
  }

  function answerThem(): void {
    scheduled = false;
    const much = waiting.length >= MANY && !closed;
    if (much && thread === undefined) startThread();
    if (much && thread?.ready === true && thread.questions.length < UNDER_WAY) askThread(thread);
    else for (const lookup of take()) lookUpHere(lookup);
    if (waiting.length > 0) schedule();
  }

  function take(): Lookup[] {
    const taken = waiting;
    waiting = taken.length > AT_ONCE ? taken.splice(AT_ONCE) : [];
    return taken;
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

  function startThread(): void {
    const now = performance.now();
    if (start === undefined || now - startedAt < restartMs) return;
    startedAt = now;
    const worker = start();
    const started: Thread = { worker, ready: false, questions: [] };
    worker.on('message', (message: FromLookupThread) => {
      if (message === 'ready') started.ready = true;
      else answered(started, message);
    });
    worker.on('error', onDeath);
    worker.on('exit', () => {
      thread = undefined;
      for (const { lookups } of started.questions) for (const lookup of lookups) lookUpHere(lookup);
    });
    worker.unref();
    thread = started;
  }

  /** Asks the thread for what is not remembered, where that is still much. */
  function askThread(asked: Thread): void {
    const unknown = new Map<Layout, Lookup[]>();
    let age = 0;
    const taken = take();
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
      // The thread alone must not keep the process alive; what it is asked must.
      if (asked.questions.length === 0) asked.worker.ref();
      asked.questions.push({ lookups, age });
      asked.worker.postMessage(
        [...unknown].map(([{ table }, of]) => ({ table, ids: of.map(({ id }) => id) })) satisfies ToLookupThread,
      );
    }
  }

  function answered(by: Thread, found: Exclude<FromLookupThread, 'ready'>): void {
    const { lookups, age } = by.questions.shift()!;
    if (by.questions.length === 0 && !closed) by.worker.unref();
    // What kept the thread from reading shows here too, and is told as it always is.
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

  if (longLived) startThread();
  return {
    loaded: loaded(thread?.worker),
    get: (collection, id) =>
      new Promise((resolve, reject) => {
        waiting.push({ layout: layoutOf(collection), id, resolve, reject });
        schedule();
      }),
    async close() {
      closed = true;
      if (thread !== undefined) await endThread(thread.worker);
    },
  };
}
