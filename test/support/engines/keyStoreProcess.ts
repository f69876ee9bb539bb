/** A key store in a process of its own, driven over the process's channel. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openEmbeddedKeyStore } from '../../../src/adapters/embedded/keyStore/keyStore.js';
import { openMongoKeyStore } from '../../../src/adapters/mongodb/keyStore.js';
import type { KeyStore, SubjectRow } from '../../../src/ports/keyStore.js';
import { type KeyStoreLoad, type KeyStoreProcess, newRows } from './keyStoreRows.js';

/** Where the store is. */
export type KeyStorePlace = { readonly dir: string } | { readonly url: string };

type Method = 'add' | 'byLookup' | 'fence' | 'putErasure' | 'remove' | 'rewrap' | 'unfence';

/** A call of the store; or without end: added groups of rows, of which every third is removed again. */
type Order = { readonly id: number; readonly method: Method; readonly argument: unknown } | { readonly load: number };

type Report =
  | { readonly answers: number; readonly value?: unknown; readonly error?: string }
  | { readonly added: readonly SubjectRow[] }
  | { readonly removed: readonly SubjectRow[] }
  | 'opened';

/** Starts it. */
export async function startKeyStore(place: KeyStorePlace): Promise<KeyStoreProcess> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [JSON.stringify(place)], {
    serialization: 'advanced',
  });
  const waiting = new Map<number, (report: { value?: unknown; error?: string }) => void>();
  const said: KeyStoreLoad = { added: [], removed: [] };
  let last = 0;
  child.on('message', (report: Report) => {
    if (report === 'opened') return;
    if ('answers' in report) waiting.get(report.answers)?.(report);
    else if ('added' in report) said.added.push(...report.added);
    else if ('removed' in report) said.removed.push(...report.removed);
  });
  await once(child, 'message');

  async function call<T>(method: Method, argument: unknown): Promise<T> {
    const id = ++last;
    const { value, error } = await new Promise<{ value?: unknown; error?: string }>((resolve) => {
      waiting.set(id, resolve);
      child.send({ id, method, argument } satisfies Order);
    });
    if (error !== undefined) throw new Error(error);
    return value as T;
  }

  return {
    add: async (rows) => call('add', rows),
    byLookup: async (lookups) => call('byLookup', lookups),
    fence: async (ids) => call('fence', ids),
    putErasure: async (row) => call('putErasure', row),
    remove: async (ids) => call('remove', ids),
    rewrap: async (rows) => call('rewrap', rows),
    unfence: async (ids) => call('unfence', ids),
    load(group) {
      child.send({ load: group } satisfies Order);
      return said;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const closed = once(child, 'close');
      const disconnected = child.connected ? once(child, 'disconnect') : undefined;
      child.kill('SIGKILL');
      await Promise.all([closed, disconnected]);
    },
  };
}

async function loadForEver(store: KeyStore, group: number, tell: (report: Report) => void): Promise<never> {
  for (;;) {
    const rows = newRows(group);
    await store.add(rows);
    const [gone, kept] = [rows.filter((_, n) => n % 3 === 0), rows.filter((_, n) => n % 3 !== 0)];
    tell({ added: kept });
    await store.remove(gone.map(({ id }) => id));
    tell({ removed: gone });
  }
}

async function serve(place: KeyStorePlace): Promise<void> {
  const store = await ('dir' in place ? openEmbeddedKeyStore(place) : openMongoKeyStore(place));
  const tell = (report: Report): void => void process.send?.(report);
  process.on('disconnect', () => process.exit());
  process.on('message', (order: Order) => {
    if ('load' in order) {
      void loadForEver(store, order.load, tell);
      return;
    }
    store[order.method](order.argument as never).then(
      (value) => tell({ answers: order.id, value }),
      (error: Error) => tell({ answers: order.id, error: error.message }),
    );
  });
  tell('opened');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(JSON.parse(process.argv[2]!) as KeyStorePlace);
