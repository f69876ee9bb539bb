import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { headKeys } from '../../../src/ops/evidence/heads/signedHeads.js';
import { parseCheckpoint, type ParsedCheckpoint } from '../../../src/ops/evidence/format/checkpoint.js';
import { parseLeaf } from '../../support/evidence/readers.js';
import { hashLeaf, rootAt } from '../../../src/ops/evidence/format/merkleTree.js';
import { openNote } from '../../../src/ops/evidence/format/signedNote.js';
import { tileHashReader, tilePath } from '../../../src/ops/evidence/format/tiles.js';
import { unharmed } from '../../support/service/answers.js';
import { buy, redeem } from '../../support/service/giftFlow.js';
import { type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const KEY = 'the key of the tests has thirty-two bytes at least';
const TREE = mkdtempSync(join(tmpdir(), 'public-tree-'));
const ENV = { SEAL_EVERY_MS: '100', SEAL_KEY: KEY, PUBLIC_URL: 'https://gifts.example/', SEAL_DIR: TREE };

const test = suite('evidence over HTTP');
let service: Service;
let auditor = '';

test.before(async () => {
  service = await startService({ env: ENV });
  auditor = await service.userToken('aud');
  const gifts = await buy(service, 'latte', Array(260).fill({}));
  assert.equal((await redeem(service, gifts[0] ?? '')).status, 201);
});
test.after(async () => {
  await unharmed(service);
  await service.close();
  rmSync(TREE, { recursive: true });
});

const bytesOf = async (path: string, token?: string): Promise<Buffer> => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(service.url + path, { headers });
  assert.equal(answer.status, 200, path);
  assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
  return Buffer.from(await answer.arrayBuffer());
};

async function signed(): Promise<ParsedCheckpoint | undefined> {
  const { status, text, headers } = await service.ask('GET', '/checkpoint', { token: auditor });
  if (status === 404) return undefined;
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; charset=utf-8']);
  const origin = `gifts.example/log/${service.events.logId}`;
  const head = parseCheckpoint(openNote(text, headKeys([KEY], origin).verifiers).body);
  assert.equal(head.origin, origin);
  return head;
}

test('a signed head covers what was done, and its tiles lead to its root', async () => {
  const head = await eventually(async () => {
    const found = await signed();
    return found !== undefined && found.size > 256 && found;
  });
  const read = tileHashReader(async (tile) => bytesOf(`/${tilePath(tile)}`, auditor), head.size);
  assert.deepEqual(await rootAt(read, head.size), head.root);
});

test('the leaves of a tile hash to what the tile holds', async () => {
  const [tile, bundle] = [await bytesOf('/tile/0/000', auditor), await bytesOf('/tile/entries/000', auditor)];
  let at = 0;
  const types = new Set<string>();
  for (let index = 0; index < 256; index++) {
    const length = bundle.readUInt16BE(at);
    const entry = bundle.subarray(at + 2, at + 2 + length);
    at += 2 + length;
    types.add(parseLeaf(entry).type);
    assert.deepEqual(hashLeaf(entry), tile.subarray(index * 32, (index + 1) * 32));
  }
  assert.equal(at, bundle.length);
  assert.ok(types.has('GiftsPurchased'));
  assert.ok((await bytesOf('/tile/entries/000.p/3', auditor)).equals(bundle.subarray(0, 0 + lengthOf(bundle, 3))));
});

function lengthOf(bundle: Buffer, entries: number): number {
  let at = 0;
  for (let n = 0; n < entries; n++) at += 2 + bundle.readUInt16BE(at);
  return at;
}

test('is for auditors alone', async () => {
  for (const path of [
    '/checkpoint',
    '/tile/0/000',
    '/tile/entries/000',
    '/tile/0/x001/000',
    '/tile/entries/x001/000.p/3',
  ]) {
    assert.equal((await service.ask('GET', path)).status, 401, path);
    for (const user of ['ann', 'sue'])
      assert.equal((await service.ask('GET', path, { token: await service.userToken(user) })).status, 403, path);
  }
  const { headers } = await service.ask('GET', '/tile/0/000', { token: auditor });
  assert.equal(headers.get('cache-control'), 'no-store');
});

test('answers 404 for what is no tile, or none yet', async () => {
  for (const path of [
    '/tile/0/001',
    '/tile/0/999',
    '/tile/0/0',
    '/tile/0/000.p',
    '/tile/0/000.p/0',
    '/tile/0/000.p/256',
    '/tile/0/000.p/01',
    '/tile/64/000',
    '/tile/00/000',
    '/tile/0/x000/001',
    '/tile/0/001/000',
    '/tile/0/x999/x999/x999/999',
    '/tile/entries/999',
    '/tile/entries/..%2f..',
    '/tile/..%2f/000',
    '/tile/0',
  ]) {
    const { status, json } = await service.ask('GET', path, { token: auditor });
    assert.deepEqual([status, json], [404, { error: 'Not found.' }], path);
  }
});

test('that leaves were shown is recorded, and that hashes were not', async () => {
  await service.ask('GET', '/tile/entries/000.p/5', { token: auditor });
  const day = new Date().toISOString().slice(0, 10);
  const records = (await service.events.read(`access-${day}`)).map(({ data }) => data as Record<string, unknown>);
  const tiles = records.filter(({ what }) => String(what).includes('/tile/'));
  assert.ok(tiles.length > 0 && tiles.every(({ what }) => String(what).startsWith('GET /tile/entries/')));
  assert.equal(tiles.at(-1)?.['count'], 5);
});

test('heads and hashes are for anybody where SEAL_PUBLIC says so, and leaves are not', async () => {
  const open = await startService({ env: { ...ENV, SEAL_PUBLIC: '1' }, split: false });
  try {
    await eventually(async () => (await open.ask('GET', '/checkpoint')).status === 200);
    const { size } = parseCheckpoint((await open.ask('GET', '/checkpoint')).text.replace(/\n\n[^]*$/, '\n'));
    const tile = await open.ask('GET', `/tile/0/000.p/${size}`);
    assert.deepEqual([tile.status, tile.headers.get('cache-control')], [200, 'public, max-age=31536000, immutable']);
    const entries = await open.ask('GET', '/tile/entries/000.p/1');
    assert.equal(entries.status, 401);
    assert.match((await open.ask('GET', '/checkpoint')).headers.get('cache-control') ?? '', /max-age=5/);
  } finally {
    await open.close();
  }
});

test.run();
