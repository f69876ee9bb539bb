import assert from 'node:assert/strict';
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { formatCheckpoint } from '../../../../src/ops/evidence/format/checkpoint.js';
import { ED25519_NOTE, formatSignerKey } from '../../../../src/ops/evidence/format/noteKeys.js';
import { noteSigner, signNote } from '../../../../src/ops/evidence/format/signedNote.js';
import { type TileFolder, tileFolder, type TileHashes } from '../../../../src/ops/evidence/tree/tileFolder.js';
import { testWhere } from '../../../support/assertions/testWhere.js';

const test = suite<{ folder: TileFolder }>('the folder of tiles');
test.before.each((context) => {
  context.folder = tileFolder(join(mkdtempSync(join(tmpdir(), 'tiles-')), 'new'));
});
test.after.each(({ folder }) => rmSync(join(folder.path, '..'), { recursive: true }));

const SIGNER = noteSigner(formatSignerKey('x/log/1', ED25519_NOTE, Buffer.alloc(32, 1)));
const tileOf = (level: number, index: number, width = 256): TileHashes => ({
  tile: { level, index, width },
  hashes: Buffer.alloc(width * 32, level + index + 1),
});
const positionAt = (index: number): string => String((index + 1) * 256).padStart(16, '0');
const headAt = (size: number): string =>
  signNote(formatCheckpoint({ origin: 'x/log/1', size, root: Buffer.alloc(32) }), [SIGNER]);

test('is empty before anything was kept', async ({ folder }) => {
  assert.deepEqual(await folder.end(), { size: 0, position: undefined });
  assert.equal(await folder.head(), undefined);
  assert.equal(await folder.read({ level: 0, index: 0, width: 1 }), undefined);
  assert.equal(await folder.lastPosition(0), undefined);
});

test('gives back full tiles, their beginnings and where they end', async ({ folder }) => {
  await folder.keep([tileOf(0, 0), tileOf(0, 1)], [positionAt(0), positionAt(1)]);
  await folder.keep([tileOf(0, 2)], [positionAt(2)]);
  assert.deepEqual(await folder.end(), { size: 768, position: positionAt(2) });
  assert.equal(await folder.lastPosition(1), positionAt(1));
  assert.deepEqual(await folder.lastPositions(1, 5), [positionAt(1), positionAt(2)]);
  assert.deepEqual(await folder.lastPositions(3, 5), []);
  assert.equal(await folder.lastPosition(3), undefined);
  assert.deepEqual(await folder.read({ level: 0, index: 1, width: 256 }), tileOf(0, 1).hashes);
  assert.deepEqual(await folder.read({ level: 0, index: 1, width: 3 }), tileOf(0, 1).hashes.subarray(0, 96));
});

test('keeps the same tile again, and refuses another in its place', async ({ folder }) => {
  await folder.keep([tileOf(0, 0)], [positionAt(0)]);
  await folder.keep([tileOf(0, 0)], []);
  await assert.rejects(folder.keep([{ ...tileOf(0, 5), tile: tileOf(0, 0).tile }], []), {
    name: 'OtherTileError',
  });
});

test('leaves out a position that was cut short, and writes over it', async ({ folder }) => {
  await folder.keep([tileOf(0, 0)], [positionAt(0)]);
  appendFileSync(join(folder.path, 'positions'), '00000');
  assert.deepEqual(await folder.end(), { size: 256, position: positionAt(0) });
  await folder.keep([tileOf(0, 1)], [positionAt(1)]);
  assert.deepEqual(await folder.end(), { size: 512, position: positionAt(1) });
});

test('holds the partial tiles of the last head alone', async ({ folder }) => {
  await folder.publish(headAt(300), [tileOf(0, 1, 44), tileOf(1, 0, 1)]);
  await folder.publish(headAt(310), [tileOf(0, 1, 54), tileOf(1, 0, 1)]);
  assert.equal(existsSync(join(folder.path, 'tile', '0', '001.p', '44')), false);
  assert.equal((await folder.read({ level: 0, index: 1, width: 44 }))?.length, 44 * 32);
  assert.equal(await folder.read({ level: 0, index: 1, width: 55 }), undefined);
  await folder.keep([tileOf(0, 1)], [positionAt(1)]);
  await folder.publish(headAt(513), [tileOf(0, 2, 1), tileOf(1, 0, 2)]);
  assert.equal(existsSync(join(folder.path, 'tile', '0', '001.p')), false);
  assert.equal(await folder.head(), headAt(513));
});

test('gives back a tile while wider ones, and the full one, take its place', async ({ folder }) => {
  await folder.publish(headAt(1), [tileOf(0, 0, 1)]);
  let [missed, reads, grown] = [0, 0, false];
  const reading = Array.from({ length: 4 }, async () => {
    for (; !grown; reads++) if ((await folder.read({ level: 0, index: 0, width: 1 })) === undefined) missed += 1;
  });
  for (let size = 2; size < 256; size++) await folder.publish(headAt(size), [tileOf(0, 0, size)]);
  await folder.keep([tileOf(0, 0)], [positionAt(0)]);
  await folder.publish(headAt(256), [tileOf(1, 0, 1)]);
  grown = true;
  await Promise.all(reading);
  assert.ok(reads > 100, String(reads));
  assert.equal(missed, 0);
});

test('cleared, it has no tiles and still its head', async ({ folder }) => {
  await folder.keep([tileOf(0, 0)], [positionAt(0)]);
  await folder.publish(headAt(300), []);
  await folder.clear();
  assert.deepEqual(await folder.end(), { size: 0, position: undefined });
  assert.equal(await folder.head(), headAt(300));
});

testWhere(
  test,
  process.geteuid?.() === 0,
  'only root gives files away',
  'belongs to whom the folder belongs',
  async ({ folder }) => {
    const owner = 12_345;
    chownSync(join(folder.path, '..'), owner, owner);
    await folder.keep([tileOf(0, 0)], [positionAt(0)]);
    await folder.publish(headAt(300), [tileOf(0, 1, 44)]);
    const found = readdirSync(folder.path, { recursive: true }).map((name) => join(folder.path, String(name)));
    assert.ok(found.length > 6);
    for (const path of [folder.path, ...found]) assert.equal(statSync(path).uid, owner, path);
  },
);

test.run();
