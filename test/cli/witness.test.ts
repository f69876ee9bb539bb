import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { cosignatureVerifier, formatAddCheckpoint, parseCheckpoint } from '../../src/ops/evidence/format/checkpoint.js';
import { noteVerifier, openNote, parseNote } from '../../src/ops/evidence/format/signedNote.js';
import type { SignedCheckpoint } from '../../src/ops/evidence/witness/witnessClient.js';
import { LOG_VKEY, ORIGIN } from '../support/evidence/bundles.js';
import { checkpointAt } from '../support/evidence/growingLog.js';
import { until } from '../support/assertions/until.js';
import { startWitness } from '../support/evidence/witness.js';
import { gift } from '../support/service/cli.js';
import { GIFT } from '../support/service/programs.js';

const test = suite<{ dir: string }>('gift witness');
const NAME = 'accountant.example/witness';

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'witness-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

async function add(
  url: string,
  checkpoint: SignedCheckpoint,
  oldSize: number,
  signal?: AbortSignal,
): Promise<Response> {
  const consistency = await checkpoint.consistency(oldSize);
  const body = formatAddCheckpoint({ oldSize, consistency, checkpoint: checkpoint.note });
  return fetch(`${url}/add-checkpoint`, { method: 'POST', body, ...(signal === undefined ? {} : { signal }) });
}

const latestAddress = (url: string): string => `${url}/${hash('sha256', ORIGIN)}/checkpoint`;

const kept = (dir: string): string => readFileSync(join(dir, 'witness.key'), 'utf8');

test('makes its key once, and writes how it is checked', async ({ dir }) => {
  const made = await gift({}, ['witness', '--dir', dir, '--name', NAME, '--print-key']);
  assert.equal(made.code, 0);
  assert.doesNotThrow(() => cosignatureVerifier(made.out.trim()));
  // In base64 it may hold a plus itself.
  const [, secret = ''] = /^PRIVATE\+KEY\+[^+]+\+[0-9a-f]{8}\+(.+)$/m.exec(kept(dir)) ?? [];
  assert.ok(secret.length >= 44);
  assert.equal(made.out.includes(secret), false);
  assert.equal(statSync(join(dir, 'witness.key')).mode & 0o777, 0o600);
  for (const args of [[], ['--name', NAME]])
    assert.equal((await gift({}, ['witness', '--dir', dir, '--print-key', ...args])).out, made.out);
});

test('cosigns checkpoints, and shows the latest with both signatures, also after a restart', async ({ dir }) => {
  const first = await startWitness(dir, '--name', NAME);
  assert.equal((await fetch(latestAddress(first.url))).status, 404);
  const seven = checkpointAt(7);
  const answer = await add(first.url, seven, 0);
  assert.equal(answer.status, 200);
  const verifier = cosignatureVerifier(first.vkey);
  const note = `${parseNote(seven.note).body}\n${await answer.text()}`;
  assert.equal(parseCheckpoint(openNote(note, [verifier]).body).size, 7);
  assert.equal((await first.stop()).code, 0);

  const second = await startWitness(dir);
  assert.equal(second.vkey, first.vkey);
  const latest = await fetch(latestAddress(second.url));
  assert.equal(latest.headers.get('content-type'), 'text/plain; charset=utf-8');
  const opened = openNote(await latest.text(), [noteVerifier(LOG_VKEY), verifier]);
  assert.deepEqual([parseCheckpoint(opened.body).size, opened.signatures.length], [7, 2]);
  const conflict = await add(second.url, checkpointAt(9), 0);
  assert.deepEqual(
    [conflict.status, conflict.headers.get('content-type'), await conflict.text()],
    [409, 'text/x.tlog.size', '7\n'],
  );
  assert.equal((await add(second.url, checkpointAt(9, { fork: 3 }), 7)).status, 422);
  assert.equal((await add(second.url, checkpointAt(9), 7)).status, 200);
  assert.equal(readFileSync(join(dir, 'witness.jsonl'), 'utf8').split('\n').length, 2);
  await second.stop();
});

test('answers what is no request without harm', async ({ dir }) => {
  const { url, stop } = await startWitness(dir, '--name', NAME);
  const post = async (body: string | Uint8Array): Promise<number> =>
    (await fetch(`${url}/add-checkpoint`, { method: 'POST', body })).status;
  assert.equal(await post('nonsense'), 400);
  assert.equal(await post(Buffer.from([0xff, 0x0a, 0x0a])), 400);
  assert.equal(await post('x'.repeat(2_000_000)), 413);
  assert.equal((await fetch(`${url}/add-checkpoint`)).status, 405);
  assert.equal((await fetch(latestAddress(url), { method: 'POST' })).status, 405);
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404);
  assert.equal((await add(url, checkpointAt(1), 0)).status, 200);
  await stop();
});

test('says what is missing or wrong before it listens', async ({ dir }) => {
  const said = (...args: readonly string[]): Promise<{ code: number; err: string }> =>
    gift({}, ['witness', '--dir', dir, ...args]);
  const rows: readonly (readonly [args: readonly string[], code: number, words: RegExp])[] = [
    [[], 2, /give the name of a new key with --name/],
    [['--name', 'two words'], 1, /a key's name/],
    [['--name', NAME], 2, /--log is missing/],
    [['--name', 'another'], 1, /the key in .* is that of accountant/],
    [['--log', 'nonsense'], 2, /--log: a verifier's key is/],
    [['--log', LOG_VKEY, '--port', '99999'], 2, /--port is a number/],
  ];
  for (const [args, code, words] of rows) {
    const one = await said(...args);
    assert.equal(one.code, code, one.err);
    assert.match(one.err, words);
  }
  const running = await startWitness(dir);
  assert.match((await said('--log', LOG_VKEY, '--port', '0')).err, /another witness runs on/);
  await add(running.url, checkpointAt(3), 0);
  await running.stop();
  const book = join(dir, 'witness.jsonl');
  copyFileSync(book, `${book}.whole`);
  for (const text of [readFileSync(book, 'utf8').slice(0, -9), 'nonsense\n', readFileSync(book, 'utf8').repeat(2)]) {
    writeFileSync(book, text);
    assert.match((await said('--log', LOG_VKEY, '--port', '0')).err, /it was left as it is, and nothing is cosigned/);
  }
  copyFileSync(`${book}.whole`, book);
  writeFileSync(join(dir, 'witness.key'), 'nonsense');
  assert.match((await said('--log', LOG_VKEY)).err, /witness\.key: a signer's key is/);
});

const ROUNDS = 5;

test('never cosigns two roots of one size, however often it is killed', async ({ dir }) => {
  await gift({}, ['witness', '--dir', dir, '--name', NAME, '--print-key']);
  const verifier = cosignatureVerifier((await gift({}, ['witness', '--dir', dir, '--print-key'])).out.trim());
  const roots = new Map<number, Set<string>>();
  let cosigned = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const witness = spawn(process.execPath, [GIFT, 'witness', '--dir', dir, '--log', LOG_VKEY, '--port', '0'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let out = '';
    for await (const chunk of witness.stdout) {
      out += String(chunk);
      if (out.includes('cosigning at')) break;
    }
    const url = /cosigning at (\S+)/.exec(out)?.[1] as string;
    const dead = once(witness, 'exit');
    // Two continuations race, one size after the other, until it dies.
    const branches = ['a', 'b'].map(async (branch) => {
      for (let size = 1; witness.exitCode === null && witness.signalCode === null;) {
        const checkpoint = checkpointAt(size, { fork: 0, branch });
        let old = size - 1;
        try {
          let answer = await add(url, checkpoint, old);
          if (answer.status === 409) {
            old = Number(await answer.text());
            size = Math.max(size, old + (branch === 'a' ? 1 : 0));
            if (old > checkpoint.size) continue;
            answer = await add(url, checkpoint, old);
          }
          if (answer.status === 200) {
            const { body } = openNote(`${parseNote(checkpoint.note).body}\n${await answer.text()}`, [verifier]);
            const head = parseCheckpoint(body);
            roots.set(head.size, (roots.get(head.size) ?? new Set()).add(head.root.toString('hex')));
            cosigned += 1;
            size += 1;
          } else {
            await sleep(1);
          }
        } catch {
          // It died; what it had not answered was not cosigned as far as anybody knows.
          await sleep(1);
        }
      }
    });
    const enough = cosigned + 1 + Math.floor(Math.random() * 10);
    await until(() => cosigned >= enough, 'some cosignatures');
    await sleep(Math.random() * 20);
    witness.kill('SIGKILL');
    await dead;
    await Promise.all(branches);
  }
  assert.ok(cosigned >= ROUNDS, String(cosigned));
  for (const [size, found] of roots) assert.equal(found.size, 1, `size ${size}`);
});

test.run();
