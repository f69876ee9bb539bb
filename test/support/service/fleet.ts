/**
 * The service as it is run for real: several processes of each role on one set of engines, each of which can be killed,
 * frozen and started again.
 */
import { type ProcessRole, ROLES } from '../../../src/service/config.js';
import { type ServiceProcess, startProcess } from './service.js';

/** One place in the fleet: the process in it may be another after a while. */
export interface Ship {
  readonly role: ProcessRole;
  /** From 0, within its role. */
  readonly number: number;
  /** Whether a process runs there and is not frozen. */
  readonly up: boolean;
  /** Where its API is served; `undefined` for the other roles. */
  readonly url: string | undefined;
  /** Ends it as a lost machine does. Resolves when it has ended. */
  kill(): Promise<void>;
  /** Starts another in its place, once it was killed. */
  restart(): Promise<void>;
  /** Stops it where it stands, as a machine that is swapped out or suspended. */
  freeze(): void;
  /** Lets it go on, as if nothing had been. */
  thaw(): void;
}

/** All of them. */
export interface Fleet {
  readonly ships: readonly Ship[];
  /** Addresses of the API that are served at the moment. */
  urls(): readonly string[];
  /** Everything that all processes have logged. */
  lines(): readonly string[];
  /** Ends them: nicely, then for good. */
  close(): Promise<void>;
}

/** Starts two processes of every role with these settings. */
export async function startFleet(settings: Readonly<Record<string, string>>): Promise<Fleet> {
  const logs: (readonly string[])[] = [];
  const place = async (role: ProcessRole, number: number): Promise<Ship & { process: ServiceProcess }> => {
    const start = async (): Promise<ServiceProcess> => {
      const process = await startProcess({ ...settings, ROLES: role });
      logs.push(process.lines);
      return process;
    };
    let frozen = false;
    const ship = {
      role,
      number,
      process: await start(),
      get up() {
        return !frozen && ship.process.child.exitCode === null && ship.process.child.signalCode === null;
      },
      get url() {
        return ship.process.url;
      },
      kill: async () => ship.process.end('SIGKILL'),
      async restart() {
        ship.process = await start();
      },
      freeze() {
        frozen = true;
        ship.process.child.kill('SIGSTOP');
      },
      thaw() {
        frozen = false;
        ship.process.child.kill('SIGCONT');
      },
    };
    return ship;
  };
  const ships: (Ship & { process: ServiceProcess })[] = [];
  for (let number = 0; number < 2; number++)
    ships.push(...(await Promise.all(ROLES.map((role) => place(role, number)))));
  return {
    ships,
    urls: () => ships.flatMap(({ up, url }) => (up && url !== undefined ? [url] : [])),
    lines: () => logs.flat(),
    async close() {
      for (const ship of ships) ship.thaw();
      await Promise.all(
        ships.map(async ({ process }) => {
          if (process.child.exitCode !== null || process.child.signalCode !== null) return;
          const late = setTimeout(() => process.child.kill('SIGKILL'), 15_000);
          await process.end();
          clearTimeout(late);
        }),
      );
    },
  };
}
