/** A real EventStoreDB, by the command in TEST_EVENTSTORE_START. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/eventStore.js';
import { freePort, killed } from './serverProcess.js';

/** How long a server may take to start, in ms: some seconds, and a minute beside much else. */
const START_MS = 180_000;

/** Empty: there is none. */
export const eventStoreCommand = (): string => process.env['TEST_EVENTSTORE_START'] ?? '';

export interface EventStoreServer {
  readonly url: string;
  /** Resolves when it has ended, also by itself. */
  readonly ended: Promise<void>;
  /** Kills it. The folder stays. */
  stop(): Promise<void>;
}

/**
 * @param dir empty, or with the data of an earlier one
 * @param options of the server, as it takes them from its environment
 * @throws Error where it does not start
 */
export async function startEventStoreServer(
  command: string,
  dir: string,
  options: Readonly<Record<string, string>> = {},
): Promise<EventStoreServer> {
  const port = await freePort();
  const child = spawn(command, [String(port), dir], { stdio: 'ignore', env: { ...process.env, ...options } });
  let gone = false;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      gone = true;
      resolve();
    });
  });
  const url = `esdb://127.0.0.1:${port}?tls=false`;
  const until = performance.now() + START_MS;
  // It is up when it takes appends: the adapter's first is the log's id.
  for (;;) {
    const up = await openEventStoreDb({ url, timeoutMs: 1_000 }).then(
      (store) => store.close().then(() => true),
      () => false,
    );
    if (up) break;
    if (gone || performance.now() > until) {
      await killed(child);
      throw new Error(`${command} started no EventStoreDB`);
    }
    await sleep(100);
  }
  return { url, ended, stop: async () => killed(child) };
}
