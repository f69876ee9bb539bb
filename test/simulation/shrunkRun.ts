/** A seed's run that was cut down to what its first finding needs, in at most 30 lines. */
import type { Finding } from './model/finding.js';
import { reportOf } from './seedReport.js';
import { type DrawnFault, faultId, type Outcome, type Plan, plannedFaults, shrink } from './shrink.js';
import { INTERLUDE_NAMES } from './service/interludes.js';
import { MOST_CLIENTS } from './simulate.js';
import { seededChance } from './world/chance.js';
import { drawnFaults } from './world/faults.js';

const MOST_LINES = 30;
const MOST_FINDING_LINES = 12;
const MOST_FAULTS = 8;
const MOST_WIDTH = 200;

interface ToldFault extends DrawnFault {
  /** The entry in which it happened. */
  readonly entry: string;
}

interface ToldOutcome extends Outcome {
  readonly faults: readonly ToldFault[];
  readonly finding: Finding | undefined;
  readonly entries: readonly string[];
  /** What happened in the middle of the run. */
  readonly interlude: string | undefined;
}

/** @param forMs virtual ms in which clients act in the whole run */
export async function tellShrunk(seed: number | string, forMs: number): Promise<readonly string[]> {
  let runs = 0;
  let rule: string | undefined;
  let told: ToldOutcome | undefined;
  const small = await shrink(
    { forMs, clients: MOST_CLIENTS, interlude: true, off: new Set(), dropped: new Set() },
    async (plan) => {
      runs += 1;
      const outcome = await runPlan(seed, plan, (one) => rule === undefined || one.rule === rule);
      rule ??= outcome.finding?.rule;
      if (outcome.found) told = outcome;
      return outcome;
    },
  );
  if (small === undefined || told === undefined) return [`seed ${seed} has no finding`];
  return linesOf(seed, { plan: small.plan, told, runs });
}

async function runPlan(
  seed: number | string,
  plan: Plan,
  isOfKind: (finding: Finding) => boolean,
): Promise<ToldOutcome> {
  const faults: ToldFault[] = [];
  const entries: string[] = [];
  const { findings, marks } = await reportOf({
    seed,
    forMs: plan.forMs,
    mostClients: plan.clients,
    interludes: plan.interlude,
    faults: plannedFaults(drawnFaults(seededChance(seed).stream('faults')), plan, (fault) =>
      faults.push({ ...fault, entry: entries.at(-1) ?? 'the start' }),
    ),
    onEntry: (line) => entries.push(line),
  });
  const finding = findings.find(isOfKind);
  const interlude = INTERLUDE_NAMES.find((name) => name in marks);
  return { found: finding !== undefined, faults, finding, entries, interlude };
}

function linesOf(
  seed: number | string,
  { plan, told, runs }: { readonly plan: Plan; readonly told: ToldOutcome; readonly runs: number },
): string[] {
  const { finding, faults, entries, interlude } = told;
  const text = (finding?.text ?? '').split('\n');
  const head = [
    `seed ${seed}, cut down in ${runs} runs: clients act for ${(plan.forMs / 1_000).toFixed(1)} virtual s; ` +
      `clients: ${plan.clients} at most; in the middle: ${interlude ?? 'nothing'}`,
    `FINDING ${finding?.rule}: ${text.slice(0, MOST_FINDING_LINES).join('\n  ')}`,
    faults.length === 0 ? 'no fault is needed' : `faults: ${faults.length}`,
  ].flatMap((part) => part.split('\n'));
  const [few, more] = [faults.slice(0, MOST_FAULTS), faults.length - MOST_FAULTS];
  const ofFaults = few.map((fault) => `  ${fault.entry}: ${faultId(fault)}`);
  if (more > 0) ofFaults.push(`  and ${more} more`);
  const all = [...head, ...ofFaults];
  const about = entriesAbout(finding?.text ?? '', entries);
  const room = MOST_LINES - all.length - 1;
  if (about.length > 0) all.push('what the log was given of it:', ...about.slice(-room).map((line) => `  ${line}`));
  return all.slice(0, MOST_LINES).map((line) => line.slice(0, MOST_WIDTH));
}

/** Appends to streams that a finding names. */
function entriesAbout(text: string, entries: readonly string[]): string[] {
  const ids = new Set(text.match(/\b[0-9a-f]{8}[0-9a-f-]{8,}\b/g) ?? []);
  return entries.filter((line) => line.includes(' effect events append') && [...ids].some((id) => line.includes(id)));
}
