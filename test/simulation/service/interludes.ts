/** What happens once in the middle of some runs, mostly while no process runs. */
import type { Finding } from '../model/finding.js';
import type { Chance } from '../world/chance.js';
import { LATE } from '../world/link.js';
import type { Cluster } from './cluster.js';
import type { Member } from './member.js';
import { backUp, copiedKeys, putBackLog, restore, type RestoredLog } from './restore.js';

const DAY_MS = 24 * 3_600_000;
const MOST_DAYS = 3;
/** Virtual ms in which processes start again. */
const READY_MS = 300_000;
/** By half of it, when the engines are changed, they have got all that the processes sent. */
const REST_MS = 2 * LATE.most;

/** The engine that is away in an interlude, by the number of times that it is named. */
const AWAY = ['keys', 'keys', 'keys', 'bus', 'provider', 'documents', 'events'];
const OUTAGE = { least: 90_000, most: 180_000 };

interface Interlude {
  readonly name: string;
  readonly probability: number;
  /** Whether it puts back what knows of erasures. */
  readonly forgetsErasures?: true;
  /** Ms for which no process runs; absent: they run on. */
  rest?(chance: Chance): number;
  /** An engine that is away, and ms for which it is. */
  outage?(chance: Chance): { readonly engine: string; readonly ms: number };
  /** Changes what the engines have stored. */
  change?(cluster: Cluster, chance: Chance): void;
  /** Copies what engines have stored, at a moment before. @returns puts it back */
  copied?(cluster: Cluster, chance: Chance): () => Promise<RestoredLog | void>;
}

/** A client that notes what the service does. */
interface Witness {
  /** Forgets what a service does not know that was put back to a moment, ms since the epoch. */
  forgetSince(moment: number): void;
  /** Forgets all idempotency keys: they are free again a day later. */
  forgetKeys?(): void;
}

interface RunOf {
  readonly members: readonly Member[];
  readonly witnesses: readonly Witness[];
}

const INTERLUDES: readonly Interlude[] = [
  { name: 'days pass', probability: 0.2, rest: (chance) => (1 + chance.integer(MOST_DAYS)) * DAY_MS },
  {
    name: 'the read store is lost',
    probability: 0.15,
    rest: () => REST_MS,
    change({ readStore }) {
      readStore.documents.clear();
      readStore.records.clear();
    },
  },
  {
    name: 'the read store is put back to an earlier state',
    probability: 0.15,
    rest: () => REST_MS,
    copied({ readStore: { documents, records } }) {
      const putBack = [documents.copied(), records.copied()];
      return async () => {
        for (const one of putBack) one();
      };
    },
  },
  {
    name: 'the log is restored from a backup',
    probability: 0.1,
    forgetsErasures: true,
    rest: () => REST_MS,
    copied(cluster, chance) {
      const backups = backUp(cluster);
      return async () => restore(cluster, backups, chance);
    },
  },
  {
    name: 'a checkpoint is beyond the log',
    probability: 0.1,
    rest: () => REST_MS,
    change({ readStore: { documents } }, chance) {
      documents.alterCheckpoint(chance.pick(documents.checkpoints()), '9'.repeat(15).padStart(16, '0'));
    },
  },
  {
    name: 'the key store is put back to an earlier state',
    probability: 0.1,
    forgetsErasures: true,
    rest: () => REST_MS,
    copied(cluster) {
      const keys = copiedKeys(cluster);
      return async () => {
        if (!keys.fits()) return;
        cluster.simulation.marks.sometimes('a key store of before an erasure is put back', keys.lacksErasures());
        keys.putBack();
      };
    },
  },
  {
    name: 'the log is put back under its own id',
    probability: 0.05,
    forgetsErasures: true,
    rest: () => REST_MS,
    copied(cluster, chance) {
      const backups = backUp(cluster);
      return async () => putBackLog(cluster, backups, chance);
    },
  },
  {
    // For longer than ten attempts of a process manager take (docs/process-managers.md).
    name: 'an engine is away for minutes',
    probability: 0.07,
    outage: (chance) => ({ engine: chance.pick(AWAY), ms: chance.between(OUTAGE.least, OUTAGE.most) }),
  },
];

/** An outage begins up to so many virtual ms before the middle of the run, so that it finds work in hand. */
const IN_HAND_MS = 2_000;

export const INTERLUDE_NAMES: readonly string[] = INTERLUDES.map(({ name }) => name);

/** Something that happens in the middle of a run. */
export interface DrawnInterlude {
  readonly name: string;
  /** Whether it puts back what knows of erasures. */
  readonly forgetsErasures: boolean;
  /** Ends all processes, lets it happen, and starts them again. */
  run(of: RunOf): Promise<void>;
  /** Waits for what is done about it later. @returns what must not have been */
  finish(): Promise<readonly Finding[]>;
  /** What it has undone for good. To be called once all is done. */
  undone(): readonly Finding[];
}

/**
 * @param withinMs virtual ms until the middle of the run
 * @returns `undefined`: nothing happens in this run
 */
export function drawnInterlude(cluster: Cluster, withinMs: number): DrawnInterlude | undefined {
  const { simulation } = cluster;
  const chance = simulation.chance.stream('interlude');
  let drawn = chance.random();
  const happening = INTERLUDES.find(({ probability }) => (drawn -= probability) < 0);
  if (happening === undefined) return undefined;
  let copy: { readonly at: number; readonly putBack: () => Promise<RestoredLog | void> } | undefined;
  let restored: RestoredLog | undefined;
  if (happening.copied !== undefined)
    simulation.schedule({
      owner: simulation.neutral,
      inMs: chance.between(0, withinMs),
      kind: 'backup',
      text: happening.name,
      run() {
        const putBack = happening.copied?.(cluster, chance);
        if (putBack !== undefined) copy = { at: simulation.now(), putBack };
      },
    });
  const outage = happening.outage?.(chance);
  if (outage !== undefined) {
    const { engine, ms } = outage;
    simulation.schedule({
      owner: simulation.neutral,
      inMs: Math.max(0, withinMs - chance.between(0, IN_HAND_MS)),
      kind: 'fault',
      text: `${engine} is away`,
      run: () => simulation.outages.begin(engine, simulation.ms() + ms),
    });
  }
  return {
    name: happening.name,
    forgetsErasures: happening.forgetsErasures ?? false,
    async run({ members, witnesses }) {
      simulation.marks.sometimes(happening.name);
      if (outage !== undefined) return simulation.run(simulation.ms() + outage.ms);
      const ms = happening.rest?.(chance) ?? 0;
      for (const member of members) member.restAndRestart(ms);
      await simulation.run(simulation.ms() + ms / 2);
      happening.change?.(cluster, chance);
      restored = (await copy?.putBack()) ?? undefined;
      if (copy !== undefined && restored !== undefined) for (const one of witnesses) one.forgetSince(copy.at);
      await simulation.run(simulation.ms() + ms / 2);
      await simulation.run(simulation.ms() + READY_MS, () => members.every((member) => member.started()));
      for (const one of witnesses) one.forgetKeys?.();
      restored?.resumeLater();
    },
    finish: async () => restored?.finish() ?? [],
    undone: () => restored?.undone() ?? [],
  };
}
