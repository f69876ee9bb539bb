/** An embedded read store in a process of its own, driven over the process's channel. */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import type { CollectionSpec } from '../../../src/ports/readStore.js';
import { at, batch, doc } from './readStoreDocuments.js';

/** The collection that the process writes. */
export const OTHERS: CollectionSpec = { name: 'others', version: 1, indexes: [{ fields: ['n'] }] };

/**
 * One document and the checkpoint at position `write`; or without end: groups of documents, each with a checkpoint,
 * from position `load` on.
 */
type Order = { readonly write: number } | { readonly load: number };

/** Documents between two checkpoints under `load`: document n is at position n. */
const LOAD_GROUP = 2_500;

/** The process, opened and ready. */
export interface OtherProcess {
  /** Writes one document at the nth position; resolves when the process says that it is done. */
  write(n: number): Promise<void>;
  /** Starts to write without end. */
  load(from: number): void;
  /** The last checkpoint reported as stored. */
  acknowledged(): number;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
}

/** Starts it on a data folder. */
export async function startReadStore(dir: string): Promise<OtherProcess> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [dir]);
  let acknowledged = 0;
  child.on('message', (position: number) => {
    acknowledged = position;
  });
  await once(child, 'message');
  return {
    async write(n) {
      child.send({ write: n } satisfies Order);
      while (acknowledged < n) await once(child, 'message');
    },
    load(from) {
      child.send({ load: from } satisfies Order);
    },
    acknowledged: () => acknowledged,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

async function serve(dir: string): Promise<void> {
  const store = await openEmbeddedReadStore({ dir });
  await store.ensure(OTHERS);
  const tell = (position: number): void => void process.send?.(position);
  async function load(from: number): Promise<void> {
    const pending: Promise<void>[] = [];
    for (let n = from; ; n += LOAD_GROUP) {
      const documents = Array.from({ length: LOAD_GROUP }, (_, i) =>
        doc(`d${n + i}`, n + i, { n: n + i, text: 'x'.repeat(300) }),
      );
      const last = n + LOAD_GROUP - 1;
      pending.push(
        store
          .write([
            batch(OTHERS, documents.slice(0, 1_000)),
            batch(OTHERS, documents.slice(1_000, 2_000)),
            batch(OTHERS, documents.slice(2_000), last),
          ])
          .then(() => tell(last)),
      );
      if (pending.length > 2) await pending.shift();
    }
  }
  process.on('message', (order: Order) => {
    if ('load' in order) void load(order.load);
    else
      void store
        .write([batch(OTHERS, [doc(`d${order.write}`, order.write, { n: order.write })], order.write)])
        .then(() => tell(order.write));
  });
  tell(0);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(process.argv[2] as string);

/** The position as a number; 0 for none. */
export function numberOf(position: string | undefined): number {
  return Number(position ?? at(0));
}
