/** An embedded event store in a process of its own, driven over the process's channel. */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import type { Appended, EventStore, ExpectedRevision, NewEvent } from '../../../src/ports/eventStore.js';
import { events } from './eventStoreEvents.js';

/** A request to the other process. */
type Order =
  | {
      readonly id: number;
      readonly append: readonly [stream: string, events: readonly NewEvent[], expected: ExpectedRevision];
    }
  /** Appends for ever: `clients` at once, each to streams of its own, three events at a time. */
  | { readonly load: string; readonly clients: number };

/** The outcome of an append, and its time. */
interface Answer {
  readonly answers: number;
  readonly appended?: Appended;
  readonly at: number;
  readonly error?: { readonly name: string; readonly message: string; readonly outcomeUnknown?: boolean };
}

/** A message of the other process. */
type Report = Answer | { readonly opened: string } | { readonly stored: readonly string[]; readonly stream: string };

/** The other process. */
export interface EventStoreProcess {
  readonly pid: number;
  readonly logId: string;
  /**
   * Resolves with the append and its time in the other process (ms since the epoch); rejects with the error's name,
   * message and `outcomeUnknown`.
   */
  append(
    ...args: [stream: string, events: readonly NewEvent[], expected: ExpectedRevision]
  ): Promise<Appended & { at: number }>;
  /** Starts appending for ever. `stored` is called with the stream and the ids of each append that was acknowledged. */
  load(prefix: string, clients: number, stored: (stream: string, ids: readonly string[]) => void): void;
  /** Ends it at once (SIGKILL); resolves when everything it said has been heard. */
  kill(): Promise<void>;
}

/** Starts a process that opens the log in `dir`. */
export async function startEventStore(dir: string): Promise<EventStoreProcess> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [dir], { serialization: 'advanced' });
  const waiting = new Map<number, (report: Answer) => void>();
  let stored: (stream: string, ids: readonly string[]) => void = () => undefined;
  let id = 0;
  child.on('message', (report: Report) => {
    if ('answers' in report) waiting.get(report.answers)?.(report);
    else if ('stored' in report) stored(report.stream, report.stored);
  });
  const [{ opened }] = (await once(child, 'message')) as [{ opened: string }];
  return {
    pid: child.pid!,
    logId: opened,
    async append(...args) {
      const order = ++id;
      const report = await new Promise<Answer>((resolve) => {
        waiting.set(order, resolve);
        child.send({ id: order, append: args } satisfies Order);
      });
      if (report.error !== undefined) throw Object.assign(new Error(report.error.message), report.error);
      return { ...report.appended!, at: report.at };
    },
    load(prefix, clients, heard) {
      stored = heard;
      child.send({ load: prefix, clients } satisfies Order);
    },
    async kill() {
      const closed = once(child, 'close');
      const disconnected = child.connected ? once(child, 'disconnect') : undefined;
      child.kill('SIGKILL');
      await Promise.all([closed, disconnected]);
    },
  };
}

async function appendForEver(store: EventStore, prefix: string): Promise<never> {
  for (let stream = 0; ; stream++) {
    for (let revision = -1; revision < 29; revision += 3) {
      const batch = events(3);
      await store.append(`${prefix}-${stream}`, batch, revision === -1 ? 'none' : revision);
      process.send!({ stored: batch.map((event) => event.id), stream: `${prefix}-${stream}` } satisfies Report);
    }
  }
}

async function serve(dir: string): Promise<void> {
  const store = await openEmbeddedEventStore({ dir });
  process.on('disconnect', () => process.exit());
  process.on('message', (order: Order) => {
    if ('load' in order) {
      for (let client = 0; client < order.clients; client++) void appendForEver(store, `${order.load}-${client}`);
      return;
    }
    store.append(...order.append).then(
      (appended) => process.send!({ answers: order.id, appended, at: Date.now() } satisfies Report),
      (error: Error & { outcomeUnknown?: boolean }) => {
        const { name, message, outcomeUnknown } = error;
        process.send!({
          answers: order.id,
          at: Date.now(),
          error: { name, message, ...(outcomeUnknown === undefined ? {} : { outcomeUnknown }) },
        } satisfies Report);
      },
    );
  });
  process.send!({ opened: store.logId } satisfies Report);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(process.argv[2]!);
