/**
 * Cuts a run that has a finding down to what the finding needs: less virtual time, fewer clients, no interlude, fewer
 * kinds of faults, and at last fewer single faults of those that were drawn.
 */
import type { Faults } from './world/faults.js';

/** What is left of a seed's run. */
export interface Plan {
  /** Virtual ms in which clients act. */
  readonly forMs: number;
  /** Most clients. */
  readonly clients: number;
  /** Whether what happens in the middle of the run may happen. */
  readonly interlude: boolean;
  /** Kinds of faults that never happen. */
  readonly off: ReadonlySet<string>;
  /** Single faults that do not happen, by `faultId`. */
  readonly dropped: ReadonlySet<string>;
}

/** What the run of a plan showed. */
export interface Outcome {
  /** Whether it had the finding. */
  readonly found: boolean;
  /** The faults that happened, in their order. */
  readonly faults: readonly DrawnFault[];
}

/** A fault that happened: the `number`-th one that was drawn of its kind. */
export interface DrawnFault {
  readonly kind: string;
  readonly number: number;
}

export const faultId = ({ kind, number }: DrawnFault): string => `${kind} #${number}`;

const LEAST_MS = 1_000;

/**
 * The smallest plan that it finds, none of whose single cuts keeps the finding, with what it showed.
 * @param run runs a plan; equal plans must show the same
 * @returns `undefined`: the whole plan has no finding
 */
export async function shrink(
  whole: Plan,
  run: (plan: Plan) => Promise<Outcome>,
): Promise<{ readonly plan: Plan; readonly outcome: Outcome } | undefined> {
  let plan = whole;
  let outcome = await run(whole);
  if (!outcome.found) return undefined;

  async function keeps(change: Partial<Plan>): Promise<boolean> {
    const smaller = { ...plan, ...change };
    const shown = await run(smaller);
    if (shown.found) [plan, outcome] = [smaller, shown];
    return shown.found;
  }

  async function cutTime(): Promise<void> {
    for (let step = plan.forMs / 2; step >= LEAST_MS / 2; step /= 2)
      while (plan.forMs - step >= LEAST_MS && (await keeps({ forMs: plan.forMs - step })));
  }

  /** Switches parts of a list off: first all of it, then halves, at last one by one. */
  async function cutList(list: readonly string[], without: (part: readonly string[]) => Partial<Plan>): Promise<void> {
    if (list.length === 0 || (await keeps(without(list))) || list.length === 1) return;
    const middle = Math.ceil(list.length / 2);
    await cutList(list.slice(0, middle), without);
    await cutList(list.slice(middle), without);
  }

  await cutTime();
  if (plan.interlude) await keeps({ interlude: false });
  for (let fewer = 1; fewer < plan.clients; fewer++) if (await keeps({ clients: fewer })) break;
  await cutList([...new Set(outcome.faults.map(({ kind }) => kind))], (kinds) => ({
    off: new Set([...plan.off, ...kinds]),
  }));
  await cutList(outcome.faults.map(faultId), (ids) => ({ dropped: new Set([...plan.dropped, ...ids]) }));
  await cutTime();
  return { plan, outcome };
}

/** The faults of a seed without those that a plan leaves out. @param happened called with each one that is left */
export function plannedFaults(
  drawn: Faults,
  { off, dropped }: Pick<Plan, 'off' | 'dropped'>,
  happened: (fault: DrawnFault) => void,
): Faults {
  const numbers = new Map<string, number>();
  const counts = new Map<string, number>();
  return {
    ...drawn,
    happens(kind, call) {
      if (!drawn.happens(kind, call)) return false;
      const number = (numbers.get(kind) ?? 0) + 1;
      numbers.set(kind, number);
      const fault = { kind, number };
      if (off.has(kind) || dropped.has(faultId(fault))) return false;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      happened(fault);
      return true;
    },
    counts: () => new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1))),
  };
}
