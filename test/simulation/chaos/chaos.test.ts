/** A short run of real processes under faults (docs/simulation.md#real-processes). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { chaos } from './chaos.js';
import { historyFindings } from './judgement.js';

const test = suite('chaos');

const SEED = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9));
const SECONDS = Number(process.env['TEST_CHAOS_SECONDS'] ?? 20);

test(`leaves nothing that the documents do not explain (seed ${SEED})`, async () => {
  const lines: string[] = [];
  const { findings, history } = await chaos({ ms: SECONDS * 1_000, seed: SEED, log: (line) => void lines.push(line) });
  const all = [...findings, ...historyFindings(history, (name) => void lines.push(name))];
  assert.equal(all.join('\n\n'), '', `TEST_SEED=${SEED}: ${lines.join('; ')}`);
  assert.ok(history.length > 0);
});

test.run();
