/** `npm run chaos -- [--minutes 2] [--seed N]`: real processes under faults, and what was found. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chaos } from './chaos.js';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '2' }, seed: { type: 'string' } },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
  console.error('--minutes must be a number above 0, and --seed an integer');
  process.exit(2);
}
const began = performance.now();
const log = (line: string): void => console.log(`${((performance.now() - began) / 1_000).toFixed(1)} s: ${line}`);
console.log(`seed ${seed}, ${minutes} minutes`);
const { findings, history, unknown, faults } = await chaos({ ms: minutes * 60_000, seed, log });
for (const [name, times] of Object.entries(faults)) console.log(`${times} × ${name}`);
console.log(`${history.length} requests, ${unknown} of unknown outcome, ${findings.length} findings`);
for (const finding of findings) console.log(`\n${finding}`);
if (findings.length > 0) {
  const file = join(mkdtempSync(join(tmpdir(), 'chaos-')), `${seed}.json`);
  writeFileSync(file, JSON.stringify(history));
  console.log(`\nThe whole history: ${file}`);
}
process.exitCode = findings.length === 0 ? 0 : 1;
