/** What happens once in the middle of some runs, while no process runs. */
import type { Crowd } from '../clients/crowd.js';
import type { Chance } from '../world/chance.js';
import { LATE } from '../world/link.js';
import type { Cluster } from './cluster.js';
import type { Member } from './member.js';

const DAY_MS = 24 * 3_600_000;
const MOST_DAYS = 3;
/** Virtual ms in which processes start again. */
const READY_MS = 300_000;
/** By half of it, when the engines are changed, they have got all that the processes sent. */
const REST_MS = 2 * LATE.most;

interface Interlude {
  readonly name: string;
  readonly probability: number;
  /** Ms for which no process runs. */
  rest(chance: Chance): number;
  /** Changes what the engines have stored. */
  change?(cluster: Cluster, chance: Chance): void;
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
    name: 'a checkpoint is beyond the log',
    probability: 0.1,
    rest: () => REST_MS,
    change({ readStore: { documents } }, chance) {
      documents.alterCheckpoint(chance.pick(documents.checkpoints()), '9'.repeat(15).padStart(16, '0'));
    },
  },
];

export const INTERLUDE_NAMES: readonly string[] = INTERLUDES.map(({ name }) => name);

/** Ends all processes, lets something happen, and starts them again. @returns its name; `undefined`: nothing happens */
export async function interlude(
  cluster: Cluster,
  { members, crowd }: { readonly members: readonly Member[]; readonly crowd: Crowd },
): Promise<string | undefined> {
  const { simulation } = cluster;
  const chance = simulation.chance.stream('interlude');
  let drawn = chance.random();
  const happening = INTERLUDES.find(({ probability }) => (drawn -= probability) < 0);
  if (happening === undefined) return undefined;
  simulation.marks.sometimes(happening.name);
  const ms = happening.rest(chance);
  for (const member of members) member.restAndRestart(ms);
  await simulation.run(simulation.ms() + ms / 2);
  happening.change?.(cluster, chance);
  await simulation.run(simulation.ms() + ms / 2);
  await simulation.run(simulation.ms() + READY_MS, () => members.every((member) => member.started()));
  crowd.forgetKeys();
  return happening.name;
}
