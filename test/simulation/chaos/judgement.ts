/** What is wrong after a run of real processes: with what clients saw, and with what is stored. */
import { setTimeout as sleep } from 'node:timers/promises';
import { PROJECTIONS } from '../../../src/projections/index.js';
import { gift } from '../../support/service/cli.js';
import { codesOnCommandLine } from '../../support/service/diagnosis.js';
import type { Fleet } from '../../support/service/fleet.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import type { History } from '../model/history.js';
import { installationOf } from '../model/installation.js';
import { check } from '../model/model.js';

/** A process that froze goes on with a request after seconds; one that was killed never does. */
const LEEWAY = { clockMs: 1_000, effectMs: 20_000, answersLostMs: 30_000 };
/** Within this time nothing is behind. */
const SETTLED_MS = 60_000;
/** Findings of the diagnosis that are true of any fresh test installation. */
const USUAL: ReadonlySet<string> = new Set(['links_dead', 'backup_old', 'settings_contradict', 'disk_short']);

/** Writes a line with each name, and how long it took since the one before. */
export function timed(log: (line: string) => void): (name: string) => void {
  let began = performance.now();
  return (name) => {
    log(`judged ${name} in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
    began = performance.now();
  };
}

/** What the model does not explain of what clients saw, a text each. @param onJudged called after each judge */
export function historyFindings(history: History, onJudged: (name: string) => void): string[] {
  const findings = check(history, { installation: installationOf(CATALOGUE), leeway: LEEWAY, onJudged });
  return findings.map(({ rule, text }) => `${rule}: ${text}`);
}

/** What is wrong with what is stored: read models, evidence, and what the service itself finds wrong. */
export async function storedFindings(
  settings: Readonly<Record<string, string>>,
  fleet: Fleet,
  onJudged: (name: string) => void,
): Promise<string[]> {
  const findings: string[] = [];
  for (const { name } of PROJECTIONS) {
    const { code, out, err } = await gift(settings, ['projections', 'verify', name]);
    if (code !== 0) findings.push(`the read model ${name} is not the fold of the log: ${out}${err}`);
    onJudged(`the read model ${name}`);
  }
  const deadline = performance.now() + SETTLED_MS;
  for (;;) {
    const codes = (await codesOnCommandLine(settings, fleet.urls()[0])).filter((code) => !USUAL.has(code));
    const { code, out, err } = await gift(settings, ['audit', 'verify']);
    if ((codes.length > 0 || code !== 0) && performance.now() < deadline) {
      await sleep(1_000);
      continue;
    }
    onJudged('diagnosis and evidence');
    if (codes.length > 0) findings.push(`gift diagnose finds ${codes.join(', ')}`);
    if (code !== 0) findings.push(`gift audit verify: ${out}${err}`);
    return findings;
  }
}
