/**
 * Merkle trees of RFC 9162, section 2.1, with SHA-256: hashes of leaves and nodes, and whether proofs hold. Sizes and
 * indexes go up to 2^53-1.
 */
import { hash as digest } from 'node:crypto';
import { HASH_BYTES } from './strictText.js';

/** A tree's size, and its root at that size. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Root of the tree without leaves. */
export const EMPTY_ROOT: Uint8Array = sha256(Buffer.alloc(0));

/** The hash as bytes. Converted from a string, since Node takes three times the hash's time to make a buffer itself. */
export function sha256(bytes: Uint8Array | string): Buffer {
  return Buffer.from(digest('sha256', bytes, 'binary'), 'latin1');
}

export function hashLeaf(data: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(1 + data.length);
  bytes[0] = 0;
  bytes.set(data, 1);
  return sha256(bytes);
}

/** A reused buffer with a node's prefix byte and its children's hashes: nothing is allocated for each node. */
const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

export function hashChildren(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return sha256(node);
}

/** Root of a perfect subtree. @param hashes those of its lowest nodes: a power of two of them, one after the other */
export function hashPerfect(hashes: Uint8Array): Buffer {
  let level = Buffer.from(hashes);
  while (level.length > HASH_BYTES) {
    for (let at = 0; at < level.length; at += 2 * HASH_BYTES) {
      level.copy(node, 1, at, at + 2 * HASH_BYTES);
      level.write(digest('sha256', node, 'binary'), at / 2, 'latin1');
    }
    level = level.subarray(0, level.length / 2);
  }
  return level;
}

/** Verifies an inclusion proof (section 2.1.3.2). A malformed proof is false, not an error. */
export function verifyInclusion(
  proof: readonly Uint8Array[],
  leaf: { readonly index: number; readonly hash: Uint8Array },
  head: TreeHead,
): boolean {
  const { index, hash } = leaf;
  const { size, root } = head;
  if (!isCount(index) || !isCount(size) || index >= size || !areHashes([...proof, hash, root])) return false;
  let place = index;
  let last = size - 1;
  let above = hash;
  for (const beside of proof) {
    if (last === 0) return false;
    if (isOdd(place) || place === last) {
      above = hashChildren(beside, above);
      while (!isOdd(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      above = hashChildren(above, beside);
    }
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && isSame(above, root);
}

/**
 * Verifies a consistency proof (section 2.1.4.2): whether the tree `to` begins with the tree `from`. Between equal
 * sizes, and from size 0, the proof is empty. A malformed proof is false, not an error.
 */
export function verifyConsistency(proof: readonly Uint8Array[], from: TreeHead, to: TreeHead): boolean {
  if (!isCount(from.size) || !isCount(to.size) || from.size > to.size) return false;
  if (!areHashes([...proof, from.root, to.root])) return false;
  if (from.size === to.size) return proof.length === 0 && isSame(from.root, to.root);
  if (from.size === 0) return proof.length === 0 && isSame(from.root, EMPTY_ROOT);
  let place = from.size - 1;
  let last = to.size - 1;
  while (isOdd(place)) [place, last] = [half(place), half(last)];
  // A perfect `from` tree is a node of the `to` tree: the proof leaves its root out.
  const [first, ...others] = place === 0 ? [from.root, ...proof] : proof;
  if (first === undefined) return false;
  let [was, is] = [first, first];
  for (const beside of others) {
    if (last === 0) return false;
    if (isOdd(place) || place === last) {
      was = hashChildren(beside, was);
      is = hashChildren(beside, is);
      while (!isOdd(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      is = hashChildren(is, beside);
    }
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && isSame(was, from.root) && isSame(is, to.root);
}

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
const areHashes = (all: readonly Uint8Array[]): boolean => all.every(({ length }) => length === HASH_BYTES);
const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

// Bit operators are not used, since they work on 32 bits only.
const isOdd = (value: number): boolean => value % 2 === 1;
const half = (value: number): number => Math.floor(value / 2);
