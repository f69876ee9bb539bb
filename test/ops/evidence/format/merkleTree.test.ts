import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { suite } from 'uvu';
import {
  EMPTY_ROOT,
  hashChildren,
  hashLeaf,
  proveConsistency,
  proveInclusion,
  rootAt,
  type TreeHead,
  verifyConsistency,
  verifyInclusion,
} from '../../../../src/ops/evidence/format/merkleTree.js';
import { TreeBuilder } from '../../../../src/ops/evidence/format/tiles.js';
import { leafHashes, rememberedTree, simpleRoot, tiledTree } from './trees.js';

const test = suite('Merkle tree');

/** Of RFC 6962's reference implementation, certificate-transparency. */
const LEAVES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

interface Vector {
  readonly desc: string;
  readonly wantErr: boolean;
  readonly proof: readonly string[] | null;
}
type InclusionVector = Vector & { leafIdx: number; treeSize: number; root: string; leafHash: string };
type ConsistencyVector = Vector & { size1: number; size2: number; root1: string; root2: string };
const VECTORS = JSON.parse(readFileSync('test/ops/evidence/format/merkleVectors.json', 'utf8')) as {
  readonly inclusion: readonly InclusionVector[];
  readonly consistency: readonly ConsistencyVector[];
};

const bytes = (text: string): Buffer => Buffer.from(text, 'base64');
const proofOf = ({ proof }: Vector): Buffer[] => (proof ?? []).map(bytes);

test('makes the roots of the published trees', () => {
  const tree = new TreeBuilder();
  assert.equal(Buffer.from(EMPTY_ROOT).toString('hex'), ROOTS[0]);
  assert.equal(tree.root().toString('hex'), ROOTS[0]);
  for (const [at, leaf] of LEAVES.entries()) {
    tree.append(hashLeaf(Buffer.from(leaf, 'hex')));
    assert.equal(tree.size, at + 1);
    assert.equal(tree.root().toString('hex'), ROOTS[at + 1]);
  }
});

test('judges each published inclusion proof as its authors do', () => {
  assert.equal(VECTORS.inclusion.length, 98);
  for (const vector of VECTORS.inclusion) {
    const { leafIdx: index, leafHash, treeSize: size, root, wantErr, desc } = vector;
    const holds = verifyInclusion(proofOf(vector), { index, hash: bytes(leafHash) }, { size, root: bytes(root) });
    assert.equal(holds, !wantErr, desc);
  }
});

test('judges each published consistency proof as its authors do', () => {
  assert.equal(VECTORS.consistency.length, 98);
  for (const vector of VECTORS.consistency) {
    const { size1, root1, size2, root2, wantErr, desc } = vector;
    const from = { size: size1, root: bytes(root1) };
    const holds = verifyConsistency(proofOf(vector), from, { size: size2, root: bytes(root2) });
    // They do not look at the length of roots that are the same.
    const isNoHash = desc === 'additional/sizes-are-equal-one-and-proof-is-empty';
    assert.equal(holds, !wantErr && !isNoHash, desc);
  }
});

const SIZES = 300;

test('makes the same root as the definition for each size up to 300', () => {
  const leaves = leafHashes(SIZES);
  const tree = new TreeBuilder();
  for (const [at, leaf] of leaves.entries()) {
    tree.append(leaf);
    assert.ok(tree.root().equals(simpleRoot(leaves.slice(0, at + 1))), String(at + 1));
  }
});

test('proves every leaf of every tree up to 300 leaves, and no other leaf', async () => {
  const leaves = leafHashes(SIZES);
  const tree = rememberedTree(leaves);
  for (let size = 1; size <= SIZES; size++) {
    const read = tree.readAt(size);
    const root = await rootAt(read, size);
    assert.ok(root.equals(simpleRoot(leaves.slice(0, size))));
    for (let index = 0; index < size; index++) {
      const proof = await proveInclusion(read, index, size);
      const hash = leaves[index] as Buffer;
      assert.ok(verifyInclusion(proof, { index, hash }, { size, root }), `${index} of ${size}`);
      const other = leaves[(index + 1) % SIZES] as Buffer;
      refuted(verifyInclusion(proof, { index, hash: other }, { size, root }), `${index} of ${size}`);
    }
  }
});

test('proves that every tree up to 300 leaves continues every smaller one, and no other', async () => {
  const leaves = leafHashes(SIZES);
  const tree = rememberedTree(leaves);
  const roots = Array.from({ length: SIZES + 1 }, (_, size) => simpleRoot(leaves.slice(0, size)));
  const head = (size: number): TreeHead => ({ size, root: roots[size] as Buffer });
  for (let to = 0; to <= SIZES; to++) {
    const read = tree.readAt(to);
    for (let from = 0; from <= to; from++) {
      const proof = await proveConsistency(read, from, to);
      assert.ok(verifyConsistency(proof, head(from), head(to)), `${from} to ${to}`);
      const other = { size: from, root: hashChildren(head(from).root, head(from).root) };
      refuted(verifyConsistency(proof, other, head(to)), `${from} to ${to}`);
    }
  }
});

test('refuses a proof of inclusion in which anything was changed', async () => {
  const leaves = leafHashes(SIZES);
  const tree = tiledTree(leaves);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: SIZES }), fc.nat(), fc.nat(), async (size, at, flip) => {
      const index = at % size;
      const read = tree.readAt(size);
      const [proof, root] = [await proveInclusion(read, index, size), await rootAt(read, size)];
      const leaf = { index, hash: leaves[index] as Buffer };
      const head = { size, root };
      for (const changed of changes(proof, flip)) refuted(verifyInclusion(changed, leaf, head));
      refuted(verifyInclusion(proof, { ...leaf, hash: flipped(leaf.hash, flip) }, head));
      refuted(verifyInclusion(proof, leaf, { size, root: flipped(root, flip) }));
      for (const wrong of [-1, index + size, index + 0.5, Number.NaN])
        refuted(verifyInclusion(proof, { ...leaf, index: wrong }, head));
      for (const wrong of [0, -size, size + 0.5, 2 ** 53]) refuted(verifyInclusion(proof, leaf, { size: wrong, root }));
    }),
  );
});

test('refuses a proof of consistency in which anything was changed', async () => {
  const tree = tiledTree(leafHashes(SIZES));
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: SIZES }), fc.nat(), fc.nat(), async (size, at, flip) => {
      const fromSize = 1 + (at % size);
      const [proof, root] = [
        await proveConsistency(tree.readAt(size), fromSize, size),
        await rootAt(tree.readAt(size), size),
      ];
      const from = { size: fromSize, root: await rootAt(tree.readAt(fromSize), fromSize) };
      const to = { size, root };
      assert.ok(verifyConsistency(proof, from, to));
      for (const changed of changes(proof, flip)) refuted(verifyConsistency(changed, from, to));
      refuted(verifyConsistency(proof, { ...from, root: flipped(from.root, flip) }, to));
      refuted(verifyConsistency(proof, from, { ...to, root: flipped(root, flip) }));
      refuted(verifyConsistency(proof, to, { ...from, size: fromSize - 1 }));
      refuted(verifyConsistency(proof, { ...from, size: fromSize + 0.5 }, to));
    }),
  );
});

const refuted = (holds: boolean, message?: string): void => assert.equal(holds, false, message);

function flipped(hash: Buffer, bit: number): Buffer {
  const other = Buffer.from(hash);
  other[bit % other.length] = (other[bit % other.length] as number) ^ (1 << (bit % 8));
  return other;
}

/** Each hash changed, left out, doubled and cut short; one more at either end. */
function* changes(proof: readonly Buffer[], bit: number): Generator<readonly Buffer[]> {
  for (const [at, hash] of proof.entries()) {
    yield proof.with(at, flipped(hash, bit));
    yield proof.with(at, hash.subarray(1));
    yield proof.toSpliced(at, 1);
    yield proof.toSpliced(at, 0, hash);
  }
  const more = hashLeaf(Buffer.from(String(bit)));
  yield [more, ...proof];
  yield [...proof, more];
}

test.run();
