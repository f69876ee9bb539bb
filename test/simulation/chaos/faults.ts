/** What happens to real processes of the service while clients use it, one fault after the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { rmSync } from 'node:fs';
import { fillDisk } from '../../support/faults/smallDisk.js';
import type { Fleet, Ship } from '../../support/service/fleet.js';

export interface FaultsOptions {
  readonly fleet: Fleet;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
  /** The folder of all processes, where it is on a small disk of its own: then the disk fills up now and then. */
  readonly smallDisk: string | undefined;
  /** Aborted when no further fault is to begin. */
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

type Fault = (options: FaultsOptions) => Promise<void>;

/** Longer than a lease lasts: another process has taken over when the frozen one goes on. */
const MOST_FROZEN_MS = 7_000;
const MOST_DOWN_MS = 3_000;
/** Longest pause between two faults. */
const MOST_CALM_MS = 3_000;

/** Starts a process anew, also where its first starts fail, as on a full disk. */
async function restart(ship: Ship, { log }: FaultsOptions): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return await ship.restart();
    } catch (error) {
      if (attempt === 5) throw error;
      log(`${ship.role} ${ship.number} did not start: ${String(error).slice(0, 300)}`);
      await sleep(1_000);
    }
}

const one = <T>(some: readonly T[], random: () => number): T => some[Math.floor(random() * some.length)] as T;

async function killed(ships: readonly Ship[], options: FaultsOptions): Promise<void> {
  await Promise.all(ships.map(async (ship) => ship.kill()));
  await sleep(options.random() * MOST_DOWN_MS);
  await Promise.all(ships.map(async (ship) => restart(ship, options)));
}

const FAULTS: Readonly<Record<string, { readonly weight: number; readonly make: Fault }>> = {
  'a process is killed': {
    weight: 5,
    make: async (options) => killed([one(options.fleet.ships, options.random)], options),
  },
  'a process freezes': {
    weight: 4,
    async make({ fleet, random }) {
      const ship = one(fleet.ships, random);
      ship.freeze();
      await sleep(random() * MOST_FROZEN_MS);
      ship.thaw();
    },
  },
  'both processes of a role are killed': {
    weight: 2,
    async make(options) {
      const { role } = one(options.fleet.ships, options.random);
      await killed(
        options.fleet.ships.filter((ship) => ship.role === role),
        options,
      );
    },
  },
  'all processes are killed': { weight: 1, make: async (options) => killed(options.fleet.ships, options) },
  'the disk is full': {
    weight: 1,
    async make({ smallDisk = '', random }) {
      const file = join(smallDisk, 'filling');
      fillDisk(file);
      await sleep(random() * MOST_DOWN_MS);
      rmSync(file);
    },
  },
};

/** Has one fault after the other happen until the signal. @returns how often each happened, by its name */
export async function makeFaults(options: FaultsOptions): Promise<Readonly<Record<string, number>>> {
  const { random, signal, smallDisk, log } = options;
  const possible = Object.entries(FAULTS).filter(([name]) => smallDisk !== undefined || name !== 'the disk is full');
  const lots = possible.flatMap(([name, { weight }]) => Array.from({ length: weight }, () => name));
  const happened = new Map<string, number>();
  while (!signal.aborted) {
    await sleep(random() * MOST_CALM_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) break;
    const name = one(lots, random);
    log(name);
    happened.set(name, (happened.get(name) ?? 0) + 1);
    await FAULTS[name]?.make(options);
  }
  return Object.fromEntries(happened);
}
