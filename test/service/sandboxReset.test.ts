/** Who may reset a sandbox: the only process that uses its data folder (docs/api/sandbox.md#starting-again). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { loadConfig } from '../../src/service/config.js';
import { sandboxFolder } from '../../src/service/sandboxReset.js';
import type { ClaimsData } from '../support/service/sandboxClaims.js';

interface Context {
  dir: string;
}

const test = suite<Context>("the folder of a sandbox's processes");

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-sandbox-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

test('is claimed by the only process that shares it, and shared again after that', ({ dir }) => {
  const [one, other] = [1, 2].map(() => sandboxFolder(loadConfig({ DATA_DIR: dir, SANDBOX: '1' })));
  one?.share();
  one?.claim();
  one?.claim();
  assert.throws(() => other?.share(), /another process resets the sandbox/);
  one?.share();
  other?.share();
  assert.throws(() => one?.claim(), /another process uses the data folder/);
  assert.throws(() => other?.claim(), /another process uses the data folder/);
});

test('is claimed by neither of two processes that try at once', async ({ dir }) => {
  const counts = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
  const script = new URL('../support/service/sandboxClaims.js', import.meta.url);
  const workerData: ClaimsData = { dir, rounds: 500, counts };
  const threads = [1, 2].map(() => new Worker(script, { workerData }));
  await Promise.all(threads.map(async (thread) => once(thread, 'message')));
  assert.equal(counts[2], 0, `a claim in round ${counts[1]! / 2}`);
});

test.run();
