/** Go's own checker of transparency logs takes our notes, tiles and proofs, and refuses changed ones. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { suite } from 'uvu';
import { cosigner, formatCheckpoint } from '../../../../src/ops/evidence/format/checkpoint.js';
import { hashLeaf, proveConsistency, proveInclusion, rootAt } from '../../../../src/ops/evidence/format/merkleTree.js';
import { noteSigner, signNote } from '../../../../src/ops/evidence/format/signedNote.js';
import { type HashTile, tileHashReader, tilePath, TreeBuilder } from '../../../../src/ops/evidence/format/tiles.js';
import { skipSuite } from '../../../support/assertions/testWhere.js';
import { LOG_KEY, LOG_VKEY, ORIGIN, WITNESS_KEY } from '../../../support/evidence/bundles.js';

/** Where Debian's golang-golang-x-mod-dev has its sources. */
const GOPATH = '/usr/share/gocode';

const isThere =
  existsSync(join(GOPATH, 'src/golang.org/x/mod/sumdb/tlog')) && spawnSync('go', ['version']).status === 0;
if (isThere) checked();
else skipSuite('Go’s checker of logs', 'golang-go and golang-golang-x-mod-dev are not installed');

function checked(): void {
  const test = suite<{ dir: string; checker: string }>('Go’s checker of logs');

  test.before((context) => {
    context.dir = mkdtempSync(join(tmpdir(), 'go-checker-'));
    context.checker = join(context.dir, 'checker');
    const { status, stderr } = spawnSync(
      'go',
      ['build', '-o', context.checker, 'test/ops/evidence/format/goChecker/main.go'],
      { encoding: 'utf8', env: { ...process.env, GO111MODULE: 'off', GOPATH, GOFLAGS: '' } },
    );
    assert.equal(status, 0, stderr);
  });
  test.after(({ dir }) => rmSync(dir, { recursive: true }));

  test('takes trees of many sizes with all their proofs', async ({ dir, checker }) => {
    for (const size of [1, 2, 3, 255, 256, 257, 700]) {
      const folder = join(dir, String(size));
      await writeLog(folder, size);
      const { status, stdout, stderr } = spawnSync(checker, [folder], { encoding: 'utf8' });
      assert.deepEqual([status, stdout, stderr], [0, `${size} leaves, ${size} growths\n`, '']);
    }
  });

  test('refuses them with a changed byte', async ({ dir, checker }) => {
    const folder = join(dir, 'changed');
    await writeLog(folder, 300);
    for (const name of ['checkpoint', 'tile/0/000', 'tile/0/001.p/44', 'tile/1/000.p/1', 'leaves', 'growths', 'vkey']) {
      const file = join(folder, name);
      const whole = readFileSync(file);
      const changed = Buffer.from(whole);
      const place = name === 'leaves' || name === 'growths' ? 60 : 20;
      changed[place] = (changed[place] as number) ^ 1;
      writeFileSync(file, changed);
      assert.equal(spawnSync(checker, [folder]).status, 1, name);
      writeFileSync(file, whole);
    }
    assert.equal(spawnSync(checker, [folder]).status, 0);
  });

  test.run();
}

async function writeLog(folder: string, size: number): Promise<void> {
  const tiles = new Map<string, Buffer>();
  const put = (tile: HashTile, hashes: Buffer): void => {
    const file = join(folder, tilePath(tile));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, hashes);
    tiles.set(tilePath(tile), hashes);
  };
  const leaves = Array.from({ length: size }, (_, at) => Buffer.from(`leaf ${at} of ${size}, long enough for a line`));
  const tree = new TreeBuilder(put);
  for (const leaf of leaves) tree.append(hashLeaf(leaf));
  for (const { tile, hashes } of tree.partialTiles()) put(tile, hashes);
  const signers = [noteSigner(LOG_KEY), cosigner(WITNESS_KEY, () => 1_777_887_000)];
  writeFileSync(
    join(folder, 'checkpoint'),
    signNote(formatCheckpoint({ origin: ORIGIN, size, root: tree.root() }), signers),
  );
  writeFileSync(join(folder, 'vkey'), LOG_VKEY);
  const read = tileHashReader(async (tile) => tiles.get(tilePath(tile)) as Buffer, size);
  const line = (parts: readonly (Uint8Array | number)[]): string =>
    parts.map((part) => (typeof part === 'number' ? part : Buffer.from(part).toString('base64'))).join(' ');
  const ofLeaves = leaves.map(async (leaf, index) => line([leaf, ...(await proveInclusion(read, index, size))]));
  writeFileSync(join(folder, 'leaves'), (await Promise.all(ofLeaves)).join('\n'));
  const growths = leaves.map(async (_, at) =>
    line([at + 1, await rootAt(read, at + 1), ...(await proveConsistency(read, at + 1, size))]),
  );
  writeFileSync(join(folder, 'growths'), (await Promise.all(growths)).join('\n'));
}
