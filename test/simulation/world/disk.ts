/**
 * A simulated disk: real files of a folder, in whose changes faults happen. What a process has written and not synced,
 * a power cut may lose. The names of files are lost and retained as on ext4 and XFS: a synced file has its name, and a
 * renaming is durable once its folder is synced.
 */
import fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { Simulation } from './simulation.js';
import type { SimulatedProcess } from './simulatedProcess.js';

/** Node's own functions: a simulation replaces those that everybody else calls. */
const { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } =
  fs;

/** Its changes have the meaning of Node's functions, and throw the file system's errors. */
export interface Disk {
  readonly folder: string;
  /** Gives a file another content, from byte `from` on. */
  write(file: string, content: Buffer, from: number): void;
  rename(file: string, to: string): void;
  remove(path: string, options: fs.RmOptions | undefined): void;
  makeFolder(folder: string): void;
  /** What was written to the file, or the names in the folder, survive a power cut from now on. */
  sync(path: string): void;
  /** Adds a process that ends when the power is cut. */
  use(process: SimulatedProcess): void;
  /** Ends all processes of the machine, and loses what was not synced. */
  cutPower(): void;
}

/** What a power cut may do to a file. */
interface Unsynced {
  /** Former content; absent: there was no file. */
  readonly before: Buffer | undefined;
  /** Bytes of the present content that are on disk. */
  readonly safe: number;
  /** The former content can't come back. */
  readonly named: boolean;
}

/** Virtual ms for which a full disk refuses writes. */
const FULL = { least: 100, most: 30_000 };
/** Probabilities in a power cut: that a file has its former content, else only a part of it, and zeros for the rest. */
const [FORMER, TORN, ZEROS] = [1 / 3, 1 / 2, 1 / 2];
export const FULL_DISK = 'disk fills up';
export const WRITER_LOST = 'disk loses its writer';
export const POWER_CUT = 'disk loses its power';

export function openDisk(folder: string, simulation: Simulation): Disk {
  const chance = simulation.chance.stream('disk');
  const { faults, outages } = simulation;
  const unsynced = new Map<string, Unsynced>();
  const users = new Set<SimulatedProcess>();
  /** Number of the entry whose process has crashed in the middle of a change: the rest of it does nothing. */
  let deadEntry = -1;

  function note(file: string, changed: Omit<Unsynced, 'before' | 'named'>): void {
    const known = unsynced.get(file);
    unsynced.set(file, { before: contentOf(file), named: false, ...known, ...changed });
  }

  function cutPower(): void {
    const lost = [...unsynced].filter(([file, state]) => loseOf(file, state));
    simulation.marks.sometimes('disk: a power cut loses a part of a file, or all', lost.length > 0);
    unsynced.clear();
    for (const user of users) user.crash();
  }

  /** @returns whether the file has another content now */
  function loseOf(file: string, { before, safe, named }: Unsynced): boolean {
    const content = contentOf(file);
    if (!named && chance.happens(FORMER)) {
      putBack(file, before);
      return true;
    }
    if (content === undefined || safe >= content.length || !chance.happens(TORN)) return false;
    const size = safe + chance.integer(content.length - safe);
    // Some file systems store the length first: what is missing then reads as zeros.
    if (chance.happens(ZEROS)) writeFileSync(file, content.fill(0, size));
    else truncateSync(file, size);
    return true;
  }

  function refuseDead(): void {
    if (simulation.entries() === deadEntry) throw diskError('EIO', 'the process has crashed');
  }

  /** Does a change, unless a fault happens; `half` is what a crash leaves of it. */
  function change(whole: () => void, half: () => void): void {
    refuseDead();
    const user = [...users].find((one) => one === simulation.actor());
    if (user !== undefined && faults.happens(WRITER_LOST)) {
      half();
      deadEntry = simulation.entries();
      user.crash();
    } else if (user !== undefined && faults.happens(POWER_CUT)) {
      whole();
      deadEntry = simulation.entries();
      cutPower();
    }
    refuseDead();
    if (faults.happens(FULL_DISK)) outages.begin('disk', simulation.ms() + chance.spread(FULL.least, FULL.most));
    if (!outages.isAway('disk', '', simulation.ms())) return whole();
    half();
    throw diskError('ENOSPC', 'no space left on device');
  }

  function store(file: string, content: Buffer, from: number): void {
    note(file, { safe: Math.min(from, unsynced.get(file)?.safe ?? from) });
    const former = from === 0 ? Buffer.alloc(0) : (contentOf(file) ?? Buffer.alloc(0));
    writeFileSync(file, Buffer.concat([former.subarray(0, from), content]), { mode: 0o600 });
  }

  function forget(file: string): void {
    note(file, { safe: Number.POSITIVE_INFINITY });
  }

  return {
    folder,
    write(file, content, from) {
      change(
        () => store(file, content, from),
        () => store(file, content.subarray(0, content.length >> 1), from),
      );
    },
    rename(file, to) {
      if (!existsSync(file)) return renameSync(file, to);
      return change(
        () => {
          const safe = unsynced.get(file)?.safe ?? Number.POSITIVE_INFINITY;
          unsynced.delete(file);
          note(to, { safe });
          renameSync(file, to);
        },
        () => undefined,
      );
    },
    remove(path, options) {
      refuseDead();
      if (!existsSync(path)) return rmSync(path, options);
      // Space is never needed to remove something, so a full disk refuses no removal.
      for (const file of filesIn(path)) forget(file);
      return rmSync(path, options);
    },
    makeFolder(made) {
      change(
        () => mkdirSync(made, { mode: 0o700 }),
        () => undefined,
      );
    },
    sync(path) {
      refuseDead();
      if (lstatSync(path).isDirectory()) syncNames(path);
      else unsynced.delete(path);
    },
    use(process) {
      users.add(process);
      process.onEnd(() => users.delete(process));
    },
    cutPower,
  };

  function syncNames(path: string): void {
    for (const [file, state] of unsynced)
      if (dirname(file) === path) {
        if (state.safe === Number.POSITIVE_INFINITY) unsynced.delete(file);
        else unsynced.set(file, { ...state, named: true });
      }
  }
}

function diskError(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}

function contentOf(file: string): Buffer | undefined {
  return existsSync(file) ? readFileSync(file) : undefined;
}

function putBack(file: string, before: Buffer | undefined): void {
  if (before === undefined) return rmSync(file, { force: true });
  mkdirSync(dirname(file), { recursive: true });
  return writeFileSync(file, before);
}

function filesIn(path: string): string[] {
  if (!lstatSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)));
}
