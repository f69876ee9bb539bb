import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { MalformedEvidenceError } from '../../../../src/ops/evidence/format/parsing.js';
import { hashLeaf, proveConsistency, proveInclusion } from '../../../../src/ops/evidence/format/merkleTree.js';
import {
  parseTilePath,
  type Tile,
  tileHashReader,
  tilePath,
  tileWidthAt,
  TreeBuilder,
  type TreeEdge,
} from '../../../../src/ops/evidence/format/tiles.js';
import { bundlesOfGrowth, tilesOfGrowth } from '../../../support/evidence/readers.js';
import { leafHashes, tiledTree } from './trees.js';

const test = suite('tiles');

const PATHS: readonly (readonly [path: string, tile: Tile])[] = [
  ['tile/0/000', { level: 0, index: 0, width: 256 }],
  ['tile/0/x001/x234/067', { level: 0, index: 1_234_067, width: 256 }],
  ['tile/0/x001/x234/067.p/8', { level: 0, index: 1_234_067, width: 8 }],
  ['tile/63/999.p/255', { level: 63, index: 999, width: 255 }],
  ['tile/1/x001/000.p/1', { level: 1, index: 1_000, width: 1 }],
  ['tile/entries/x007/023.p/9', { level: 'entries', index: 7_023, width: 9 }],
];

test('have the paths of the specification', () => {
  for (const [path, tile] of PATHS) {
    assert.equal(tilePath(tile), path);
    assert.deepEqual(parseTilePath(path), tile);
  }
});

test('have one path each', () => {
  for (const path of [
    '',
    'tile',
    '/tile/0/000',
    'tile/0/000/',
    'tile/00/000',
    'tile/64/000',
    'tile/-1/000',
    'tile/8/0/001',
    'tile/0/0',
    'tile/0/0000',
    'tile/0/x000/001',
    'tile/0/001/002',
    'tile/0/x001',
    'tile/0/x001/x002',
    'tile/0/X001/002',
    'tile/0/x999/x999/x999/x999/x999/999',
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/01',
    'tile/0/000.p/',
    'tile/0/000.p',
    'tile/0/000.p/8/',
    'tile/data/000',
    'tile/entries',
    'tile/0/٠٠٠',
    'tile/0/000\n',
    'tile/0/../000',
  ])
    assert.throws(() => parseTilePath(path), MalformedEvidenceError, path);
});

test('of a tree of 70,000 leaves are those of the specification', () => {
  const tiles = [...tilesOfGrowth(0, 70_000)];
  const of = (level: number): number[] => tiles.filter((tile) => tile.level === level).map(({ width }) => width);
  assert.deepEqual(of(0), [...Array<number>(273).fill(256), 112]);
  assert.deepEqual(of(1), [256, 17]);
  assert.deepEqual(of(2), [1]);
  assert.deepEqual(of(3), []);
  assert.deepEqual([...tilesOfGrowth(0, 256)].map(tilePath), ['tile/0/000', 'tile/1/000.p/1']);
});

test('that a growth writes are those whose width has changed', () => {
  for (const [from, to] of [
    [0, 0],
    [7, 7],
    [0, 1],
    [255, 256],
    [256, 257],
    [255, 513],
    [65_535, 65_537],
    [65_536, 65_536],
    [65_280, 66_000],
  ] as const) {
    const wanted: string[] = [];
    for (let level = 0; level < 3; level++)
      for (let index = 0; tileWidthAt(to, level, index) > 0; index++) {
        const width = tileWidthAt(to, level, index);
        if (width !== tileWidthAt(from, level, index)) wanted.push(tilePath({ level, index, width }));
      }
    assert.deepEqual([...tilesOfGrowth(from, to)].map(tilePath), wanted, `${from} to ${to}`);
    const bundles = wanted.filter((path) => path.startsWith('tile/0/')).map((path) => path.replace('0', 'entries'));
    assert.deepEqual([...bundlesOfGrowth(from, to)].map(tilePath), bundles, `${from} to ${to}`);
  }
});

test('of a builder are those of the growth, with the same bytes wherever it was continued', () => {
  const leaves = leafHashes(600);
  const { tiles } = tiledTree(leaves);
  for (const cut of [0, 1, 255, 256, 257, 511, 512, 599]) {
    const made = new Map<string, Buffer>();
    const before = new TreeBuilder((tile, hashes) => void made.set(tilePath(tile), hashes));
    for (const leaf of leaves.slice(0, cut)) before.append(leaf);
    const edge: TreeEdge = { size: cut, tiles: before.partialTiles() };
    const tree = new TreeBuilder((tile, hashes) => void made.set(tilePath(tile), hashes), edge);
    for (const leaf of leaves.slice(cut)) tree.append(leaf);
    for (const { tile, hashes } of tree.partialTiles()) made.set(tilePath(tile), hashes);
    const wanted = [...tilesOfGrowth(0, 600)].map(tilePath).sort();
    assert.deepEqual([...made.keys()].sort(), wanted, String(cut));
    for (const [path, hashes] of made) assert.ok(hashes.equals(tiles.get(path) as Buffer), path);
  }
});

test('that do not fit the size continue no tree', () => {
  const tree = new TreeBuilder();
  for (const leaf of leafHashes(300)) tree.append(leaf);
  const tiles = tree.partialTiles();
  for (const edge of [
    { size: 301, tiles },
    { size: 300, tiles: tiles.slice(1) },
    { size: 300, tiles: tiles.map(({ tile, hashes }) => ({ tile, hashes: hashes.subarray(32) })) },
  ])
    assert.throws(() => new TreeBuilder(undefined, edge), RangeError);
});

test('are read once a proof, and refused with another length', async () => {
  const { tiles } = tiledTree(leafHashes(600));
  const requested: string[] = [];
  const read = tileHashReader(async (tile) => {
    requested.push(tilePath(tile));
    return tiles.get(tilePath(tile)) as Buffer;
  }, 600);
  await proveInclusion(read, 5, 600);
  assert.deepEqual(requested.sort(), ['tile/0/000', 'tile/0/002.p/88', 'tile/1/000.p/2']);
  const short = tileHashReader(async (tile) => (tiles.get(tilePath(tile)) as Buffer).subarray(32), 600);
  await assert.rejects(proveInclusion(short, 5, 600), MalformedEvidenceError);
  await assert.rejects(read([{ height: 0, index: 600 }]), RangeError);
  await assert.rejects(read([{ height: 3, index: 75 }]), RangeError);
  await assert.rejects(proveInclusion(read, 600, 600), RangeError);
  await assert.rejects(proveInclusion(read, -1, 600), RangeError);
  await assert.rejects(proveConsistency(read, 601, 600), RangeError);
});

test('are the same for 100,000 leaves at once, with three levels', () => {
  const full: string[] = [];
  const tree = new TreeBuilder((tile) => void full.push(tilePath(tile)));
  const leaf = hashLeaf(Buffer.from('the same'));
  for (let at = 0; at < 100_000; at++) tree.append(leaf);
  const partial = tree.partialTiles().map(({ tile }) => tilePath(tile));
  assert.deepEqual([...full, ...partial].sort(), [...tilesOfGrowth(0, 100_000)].map(tilePath).sort());
});

test.run();
