/**
 * `npm run chaos -- [--minutes 2] [--seed N]`: real processes under faults, and what was found.
 * `npm run chaos -- --history FILE`: judges once more what clients saw in a run that had findings.
 */
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { type History, type Observation, toldBy } from '../model/history.js';
import { chaos } from './chaos.js';
import { historyFindings, timed } from './judgement.js';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '2' }, seed: { type: 'string' }, history: { type: 'string' } },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('--minutes must be a number above 0, and --seed an integer');
  process.exit(2);
}
const began = performance.now();
const log = (line: string): void => console.log(`${((performance.now() - began) / 1_000).toFixed(1)} s: ${line}`);

/** A line for each observation: together they may be longer than a text can be. */
function store(history: History): string {
  const file = join(mkdtempSync(join(tmpdir(), 'chaos-')), `${seed}.jsonl`);
  const fd = openSync(file, 'w');
  for (const observation of history) writeSync(fd, `${JSON.stringify(observation)}\n`);
  closeSync(fd);
  return file;
}

async function stored(file: string): Promise<History> {
  const history: Observation[] = [];
  for await (const line of createInterface({ input: createReadStream(file) }))
    history.push(JSON.parse(line) as Observation);
  return history;
}

function report(history: History, findings: readonly string[]): void {
  const unknown = history.filter((observation) => toldBy(observation) === undefined).length;
  console.log(`${history.length} requests, ${unknown} of unknown outcome, ${findings.length} findings`);
  for (const finding of findings) console.log(`\n${finding}`);
  process.exitCode = findings.length === 0 ? 0 : 1;
}

if (values.history === undefined) {
  console.log(`seed ${seed}, ${minutes} minutes`);
  const { findings, history, faults } = await chaos({ ms: minutes * 60_000, seed, log });
  for (const [name, times] of Object.entries(faults)) console.log(`${times} × ${name}`);
  // Before it is judged: whatever ends the judgement, another one can be made.
  const file = store(history);
  console.log(`The whole history: ${file}`);
  const all = [...findings, ...historyFindings(history, timed(log))];
  report(history, all);
  if (all.length === 0) rmSync(dirname(file), { recursive: true });
} else {
  const history = await stored(values.history);
  report(history, historyFindings(history, timed(log)));
}
