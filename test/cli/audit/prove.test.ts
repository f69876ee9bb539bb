import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { type ProofBundle, parseBundle } from '../../../src/ops/evidence/format/proofBundle.js';
import { EMBEDDED } from '../../support/engines/engines.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { type Said, gift } from '../../support/service/cli.js';
import { buy, redeem } from '../../support/service/giftFlow.js';
import { type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const SEAL_KEY = 'the key of the tests has thirty-two bytes at least';

const test = suite('gift audit prove');
const dir = mkdtempSync(join(tmpdir(), 'proven-'));
const data = join(dir, 'data');
const file = join(dir, 'gift.json');
let service: Service | undefined;
let gifts: string[] = [];
let vkey = '';

test.before(async () => {
  service = await startService({
    dataDir: data,
    engines: EMBEDDED,
    split: false,
    catalogue: CATALOGUE,
    env: { SEAL_EVERY_MS: '100', SEAL_KEY },
  });
  gifts = await buy(service, 'latte', [{ phone_number: '+447700900123' }, ...Array<object>(299).fill({})]);
  assert.equal((await redeem(service, gifts[7] ?? '')).status, 201);
  vkey = await eventually(async () => {
    const { code, out } = await gift({ DATA_DIR: data, SEAL_KEY }, ['audit', 'key']);
    return code === 0 && out.trim();
  });
});
test.after(async () => {
  await service?.close();
  rmSync(dir, { recursive: true });
});

const prove = async (...args: readonly string[]): Promise<Said> => gift(data, ['audit', 'prove', ...args]);

/** Once checkpoints cover everything. */
async function proven(id: string): Promise<ProofBundle> {
  const out = await eventually(async () => {
    const said = await prove(id);
    return said.code === 0 && said.err === '' && said.out;
  });
  writeFileSync(file, out);
  return parseBundle(out);
}

test('proves every event of a gift, which anybody checks without the service', async () => {
  const bundle = await proven(gifts[7] ?? '');
  const types = bundle.events.map(({ type }) => type);
  for (const type of ['GiftsPurchased', 'PaymentCharged', 'GiftIssued', 'GiftRedeemed'])
    assert.ok(types.includes(type), type);
  const { code, out } = await gift({}, ['audit', 'check', file, '--key', vkey]);
  assert.equal(code, 0);
  assert.match(out, /"location_id":"bean-soho"/);
  assert.doesNotMatch(out, /not in this file/);
  const script = spawnSync(process.execPath, ['scripts/check-proof.mjs', file, vkey], { encoding: 'utf8' });
  assert.deepEqual([script.status, script.stderr], [0, '']);
});

test('shows neither secret nor personal fields', async () => {
  const bundle = await proven(gifts[0] ?? '');
  const text = readFileSync(file, 'utf8');
  const seed = (
    await service!.events
      .readAll(undefined, { types: ['GiftsPurchased'] })
      [Symbol.asyncIterator]()
      .next()
  ).value as { readonly events: readonly { readonly data: { readonly seed: string } }[] };
  assert.equal(text.includes(seed.events[0]?.data.seed ?? ''), false);
  assert.doesNotMatch(text, /447700900123|salt_key/);
  for (const { type, data: shown } of bundle.events) {
    assert.ok('value' in shown, type);
    const names = shown.shown.map(({ name }) => name);
    if (type === 'GiftsPurchased') assert.deepEqual(names, []);
    // The receiver of a number has a secret id in it.
    if (type === 'GiftIssued') assert.deepEqual(names, ['sender_id']);
  }
});

test('is checked by the keys that are written, one for each that signs', async () => {
  const both = await gift({ DATA_DIR: data, SEAL_KEY: `${SEAL_KEY},another ${SEAL_KEY}` }, ['audit', 'key']);
  const [first, second, ...others] = both.out.trim().split('\n');
  assert.deepEqual([first, others], [vkey, []]);
  assert.equal(second?.startsWith(`localhost/log/${service!.events.logId}+`), true);
  const none = await gift(data, ['audit', 'key']);
  assert.deepEqual([none.code, none.out], [1, '']);
  assert.match(none.err, /the key that signs is not here/);
});

test('leaves a record of who saw what, and says what it does not know', async () => {
  const { out } = await gift(data, ['audit', 'access']);
  assert.match(out, /gift audit prove/);
  const unknown = await prove('nothing');
  assert.deepEqual([unknown.code, unknown.out], [1, '']);
  assert.match(unknown.err, /nothing is known of "nothing"/);
});

test('proves the same after an erasure, and so do the files from before', async () => {
  const before = await proven(gifts[0] ?? '');
  const old = join(dir, 'before.json');
  writeFileSync(old, readFileSync(file));
  const erased = await gift(data, ['people', 'erase', '--phone', '-', '--yes', '--reason', 'asked for it'], {
    stdin: Readable.from([Buffer.from('+447700900123\n')]),
  });
  assert.equal(erased.code, 0, erased.err);
  const after = await proven(gifts[0] ?? '');
  const issued = ({ events }: ProofBundle): unknown => events.find(({ type }) => type === 'GiftIssued')?.data;
  assert.deepEqual(issued(after), issued(before));
  for (const one of [old, file]) assert.equal((await gift({}, ['audit', 'check', one, '--key', vkey])).code, 0);
  const verified = await gift({ DATA_DIR: data, SEAL_KEY }, ['audit', 'verify']);
  assert.equal(verified.code, 0, verified.err);
});

test('writes nothing while no checkpoint covers the gift', async () => {
  await service!.close();
  // Nothing signs from now on.
  service = await startService({
    dataDir: data,
    engines: EMBEDDED,
    split: false,
    catalogue: CATALOGUE,
    env: { SEAL_EVERY_MS: '600000', SEAL_KEY },
  });
  const [late = ''] = await buy(service, 'latte', [{}]);
  const { code, out, err } = await prove(late);
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /no checkpoint covers the gift yet/);
});

test('hands out no proof of an event that was altered', async () => {
  await proven(gifts[7] ?? '');
  await service!.close();
  service = undefined;
  const database = new Database(join(data, 'events.db'));
  const sql = `UPDATE events SET data = replace(data, 'bean-soho', 'bean-bath') WHERE type = 'GiftRedeemed'`;
  const { changes } = database.prepare(sql).run();
  database.close();
  assert.equal(changes, 1);
  const { code, out, err } = await prove(gifts[7] ?? '');
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /is not as the tree has it: gift audit verify says what was altered/);
});

test.run();
