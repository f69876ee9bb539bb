import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { collectCosignatures, witnessClient } from '../../../../src/ops/evidence/witness/witnessClient.js';
import { cosignatureVerifier } from '../../../../src/ops/evidence/format/checkpoint.js';
import { noteVerifier, openNote } from '../../../../src/ops/evidence/format/signedNote.js';
import { LOG_VKEY, WITNESS_VKEY } from '../../../support/evidence/bundles.js';
import { checkpointAt } from '../../../support/evidence/growingLog.js';
import { type RunningWitness, startWitness } from '../../../support/evidence/witness.js';

const test = suite<{ dir: string; running: RunningWitness[] }>('cosignatures');

test.before(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cosignatures-'));
  context.running = [
    await startWitness(join(context.dir, 'a'), '--name', 'a.example/witness'),
    await startWitness(join(context.dir, 'b'), '--name', 'b.example/witness'),
  ];
});
test.after(async ({ dir, running }) => {
  for (const witness of running) await witness.stop();
  rmSync(dir, { recursive: true });
});

const PATIENCE = { timeoutMs: 5_000 };

test('of all witnesses that answer stand below the checkpoint, whatever the others do', async ({ running }) => {
  const [a, b] = running.map(({ url, vkey }) => witnessClient({ url, key: vkey }));
  assert.ok(a !== undefined && b !== undefined);
  const dead = witnessClient({ url: 'http://127.0.0.1:9', key: WITNESS_VKEY });
  const checkpoint = checkpointAt(5);
  const { note, outcomes } = await collectCosignatures([a, dead, b], checkpoint, PATIENCE);
  assert.deepEqual(
    outcomes.map(({ witness, outcome }) => [witness, outcome]),
    [
      ['a.example/witness', 'cosigned'],
      ['witness.example/w1', 'failed'],
      ['b.example/witness', 'cosigned'],
    ],
  );
  const verifiers = [noteVerifier(LOG_VKEY), ...running.map(({ vkey }) => cosignatureVerifier(vkey))];
  assert.equal(openNote(note, verifiers).signatures.length, 3);

  await a.cosign(checkpointAt(9), PATIENCE);
  const fork = await collectCosignatures([a, b], checkpointAt(8, { fork: 3 }), PATIENCE);
  assert.deepEqual(
    fork.outcomes.map(({ outcome }) => outcome),
    ['ahead', 'inconsistent'],
  );
  assert.equal(fork.note, checkpointAt(8, { fork: 3 }).note);
  assert.deepEqual(await collectCosignatures([], checkpoint, PATIENCE), { note: checkpoint.note, outcomes: [] });
});

test.run();
