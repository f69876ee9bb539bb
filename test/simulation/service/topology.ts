/** Which processes a run has, drawn from its seed. */
import type { Chance } from '../world/chance.js';

export interface Place {
  readonly name: string;
  /** Roles, comma-separated. */
  readonly roles: string;
}

const ALL = 'api,projector,processor,worker';

const TOPOLOGIES: readonly (readonly string[])[] = [
  [ALL],
  [ALL, ALL],
  [ALL, ALL, ALL],
  ['api,worker', 'api,projector', 'projector,processor', 'processor,worker'],
  ['api', 'api', 'projector', 'projector', 'processor', 'processor', 'worker', 'worker'],
];

export function drawnTopology(chance: Chance): Place[] {
  const numbers = new Map<string, number>();
  return chance.pick(TOPOLOGIES).map((roles) => {
    const kind = roles === ALL ? 'all' : roles.replaceAll(',', '+');
    const number = (numbers.get(kind) ?? 0) + 1;
    numbers.set(kind, number);
    return { name: `${kind}-${number}`, roles };
  });
}
