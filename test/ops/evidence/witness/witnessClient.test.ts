import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { cosignatureVerifier } from '../../../../src/ops/evidence/format/checkpoint.js';
import { openNote, withSignatures } from '../../../../src/ops/evidence/format/signedNote.js';
import { witnessClient } from '../../../../src/ops/evidence/witness/witnessClient.js';
import { LOG_VKEY, ORIGIN, WITNESS_VKEY } from '../../../support/evidence/bundles.js';
import { checkpointAt } from '../../../support/evidence/growingLog.js';
import { type RunningWitness, startWitness } from '../../../support/evidence/witness.js';

const test = suite<{ dir: string; running: RunningWitness }>('witness client');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'witness-client-'));
  context.running = await startWitness(context.dir, '--name', 'witness.example/w1');
});
test.after.each(async ({ dir, running }) => {
  await running.stop();
  rmSync(dir, { recursive: true });
});

const PATIENCE = { timeoutMs: 5_000 };

test('gets cosignatures, one checkpoint after the other', async ({ running }) => {
  const client = witnessClient({ url: `${running.url}/`, key: running.vkey });
  assert.deepEqual(await client.latest(ORIGIN, PATIENCE), { outcome: 'nothing' });
  for (const size of [0, 3, 3, 300]) {
    const checkpoint = checkpointAt(size);
    const done = await client.cosign(checkpoint, PATIENCE);
    assert.ok(done.outcome === 'cosigned', JSON.stringify(done));
    assert.equal(done.witness, 'witness.example/w1');
    openNote(withSignatures(checkpoint.note, [done.signature]), [cosignatureVerifier(running.vkey)]);
    const latest = await client.latest(ORIGIN, PATIENCE);
    assert.equal(latest.outcome === 'cosigned' && latest.checkpoint.size, size);
  }
});

test('proves from what the witness has cosigned, also for another process', async ({ running }) => {
  const [one, two] = [0, 1].map(() => witnessClient({ url: running.url, key: running.vkey }));
  assert.ok(one !== undefined && two !== undefined);
  for (const [client, size] of [
    [one, 3],
    [two, 7],
    [one, 9],
    [two, 9],
  ] as const)
    assert.equal((await client.cosign(checkpointAt(size), PATIENCE)).outcome, 'cosigned', String(size));
});

test('says that the witness is ahead, or has seen another log', async ({ running }) => {
  const client = witnessClient({ url: running.url, key: running.vkey });
  await client.cosign(checkpointAt(9), PATIENCE);
  const fresh = witnessClient({ url: running.url, key: running.vkey });
  for (const one of [client, fresh])
    assert.deepEqual(await one.cosign(checkpointAt(7), PATIENCE), {
      witness: 'witness.example/w1',
      outcome: 'ahead',
      size: 9,
    });
  for (const size of [9, 12]) {
    const done = await fresh.cosign(checkpointAt(size, { fork: 5 }), PATIENCE);
    assert.ok(done.outcome === 'inconsistent');
    assert.equal(done.size, 9);
  }
  assert.equal((await client.cosign(checkpointAt(12), PATIENCE)).outcome, 'cosigned');
});

/** A server in a witness' place. */
async function inPlace<T>(answer: RequestListener, use: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('fails, and never throws, where the witness does not do what a witness does', async ({ running }) => {
  const signed = await witnessClient({ url: running.url, key: running.vkey }).cosign(checkpointAt(4), PATIENCE);
  assert.equal(signed.outcome, 'cosigned');
  const rows: readonly (readonly [status: number, body: string, reason: RegExp])[] = [
    [200, '', /lines of signatures/],
    [200, 'nonsense\n', /a signature is a line/],
    [200, '— another.example/w AAAAAAAA\n', /no lines? of signatures|no known key|lines of signatures/],
    [200, `— witness.example/w1 ${Buffer.alloc(76).toString('base64')}\n`, /lines of signatures|no known key/],
    [409, 'nonsense\n', /a witness' size/],
    [403, 'no trusted key\n', /it answered 403: no trusted key/],
    [404, '', /it answered 404/],
    [503, '', /it answered 503/],
    [200, 'x'.repeat(100_000), /more than 65536 bytes/],
  ];
  for (const [status, body, reason] of rows)
    await inPlace(
      (_, response) => response.writeHead(status).end(body),
      async (url) => {
        const client = witnessClient({ url, key: WITNESS_VKEY });
        const done = await client.cosign(checkpointAt(4), PATIENCE);
        assert.ok(done.outcome === 'failed', JSON.stringify(done));
        assert.match(done.reason, reason);
        const latest = await client.latest(ORIGIN, PATIENCE);
        assert.equal(latest.outcome, status === 404 ? 'nothing' : 'failed');
      },
    );
});

test('says that the witness has seen another tree of this size, whatever body its 409 has', async () => {
  for (const body of ['4\n', '', 'the roots differ\n']) {
    const requested: string[] = [];
    await inPlace(
      (request, response) => {
        request.setEncoding('utf8').once('data', (text: string) => {
          requested.push(text.split('\n')[0] ?? '');
          response.writeHead(409).end(requested.length === 1 ? '4\n' : body);
        });
      },
      async (url) => {
        const done = await witnessClient({ url, key: WITNESS_VKEY }).cosign(checkpointAt(4), PATIENCE);
        assert.ok(done.outcome === 'inconsistent', JSON.stringify(done));
        assert.equal(done.size, 4);
        assert.deepEqual(requested, ['old 0', 'old 4']);
      },
    );
  }
});

test('proves from a smaller size than it knew, where the witness says so', async ({ dir, running }) => {
  const client = witnessClient({ url: running.url, key: running.vkey });
  assert.equal((await client.cosign(checkpointAt(4), PATIENCE)).outcome, 'cosigned');
  const book = join(dir, 'witness.jsonl');
  const older = readFileSync(book);
  assert.equal((await client.cosign(checkpointAt(9), PATIENCE)).outcome, 'cosigned');
  await running.stop();
  writeFileSync(book, older);
  const { port } = new URL(running.url);
  const again = await startWitness(dir, '--port', port);
  try {
    for (const size of [9, 12])
      assert.equal((await client.cosign(checkpointAt(size), PATIENCE)).outcome, 'cosigned', String(size));
  } finally {
    await again.stop();
  }
});

test('tries again, within its time', async ({ running }) => {
  let requested = 0;
  await inPlace(
    (request, response) => {
      if (++requested <= 2) return void response.writeHead(503).end();
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        void fetch(`${running.url}${request.url}`, { method: 'POST', body: Buffer.concat(chunks) }).then(async (real) =>
          response.writeHead(real.status).end(await real.text()),
        );
      });
      return undefined;
    },
    async (url) => {
      const client = witnessClient({ url, key: running.vkey });
      assert.equal((await client.cosign(checkpointAt(4), PATIENCE)).outcome, 'cosigned');
      assert.equal(requested, 3);
    },
  );
  const silent = await inPlace(
    () => undefined,
    async (url) => {
      const done = await witnessClient({ url, key: running.vkey }).cosign(checkpointAt(4), { timeoutMs: 300 });
      return { url, done };
    },
  );
  assert.equal(silent.done.outcome === 'failed' && silent.done.reason, 'it has not answered in time');
  const refused = await witnessClient({ url: silent.url, key: running.vkey }).cosign(checkpointAt(4), {
    timeoutMs: 300,
  });
  assert.match(refused.outcome === 'failed' ? refused.reason : '', /can't be reached|in time/);
});

test('leaves the errors of the log to its caller', async ({ running }) => {
  const broken = { ...checkpointAt(4), consistency: () => Promise.reject(new Error('no tile')) };
  await assert.rejects(witnessClient({ url: running.url, key: running.vkey }).cosign(broken, PATIENCE), /no tile/);
  assert.throws(() => witnessClient({ url: running.url, key: LOG_VKEY }));
});

test.run();
