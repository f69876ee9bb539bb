/**
 * Merkle trees of RFC 9162, section 2.1, with SHA-256: hashes of leaves and nodes, proofs, and whether proofs hold.
 * Sizes and indexes go up to 2^53-1.
 */
import { hash as digest } from 'node:crypto';
import { HASH_BYTES } from './parsing.js';

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
  let at = index;
  let last = size - 1;
  let above = hash;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (isOdd(at) || at === last) {
      above = hashChildren(sibling, above);
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      above = hashChildren(above, sibling);
    }
    [at, last] = [half(at), half(last)];
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
  let at = from.size - 1;
  let last = to.size - 1;
  while (isOdd(at)) [at, last] = [half(at), half(last)];
  // A perfect `from` tree is a node of the `to` tree: the proof leaves its root out.
  const [first, ...others] = at === 0 ? [from.root, ...proof] : proof;
  if (first === undefined) return false;
  let [was, is] = [first, first];
  for (const sibling of others) {
    if (last === 0) return false;
    if (isOdd(at) || at === last) {
      was = hashChildren(sibling, was);
      is = hashChildren(sibling, is);
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      is = hashChildren(is, sibling);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && isSame(was, from.root) && isSame(is, to.root);
}

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
const areHashes = (all: readonly Uint8Array[]): boolean => all.every(({ length }) => length === HASH_BYTES);
const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

// Bit operators are not used, since they work on 32 bits only.
const isOdd = (value: number): boolean => value % 2 === 1;
const half = (value: number): number => Math.floor(value / 2);

/** The perfect subtree over the leaves from `index * 2^height` to `(index + 1) * 2^height - 1`. */
export interface TreeNode {
  readonly height: number;
  readonly index: number;
}

/** Reads the hashes of nodes, in the order of the nodes. */
export type HashReader = (nodes: readonly TreeNode[]) => Promise<readonly Uint8Array[]>;

/** Leaves from `start` up to, not including, `end`. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** An inclusion proof, from the leaf's sibling to the root's child. @throws RangeError for an index outside the tree */
export async function proveInclusion(read: HashReader, index: number, size: number): Promise<Buffer[]> {
  check(index, 0, size - 1);
  const siblings: Range[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + leftSize(end - start);
    if (index < middle) {
      siblings.push({ start: middle, end });
      end = middle;
    } else {
      siblings.push({ start, end: middle });
      start = middle;
    }
  }
  return hashesOf(read, siblings.reverse());
}

/** The proof that the tree of size `to` begins with that of size `from`; empty from 0 and between equal sizes. */
export async function proveConsistency(read: HashReader, from: number, to: number): Promise<Buffer[]> {
  check(from, 0, to);
  if (from === 0 || from === to) return [];
  const siblings: Range[] = [];
  let [start, end] = [0, to];
  while (end !== from) {
    const middle = start + leftSize(end - start);
    if (from <= middle) {
      siblings.push({ start: middle, end });
      end = middle;
    } else {
      siblings.push({ start, end: middle });
      start = middle;
    }
  }
  if (start > 0) siblings.push({ start, end });
  return hashesOf(read, siblings.reverse());
}

/** The root at a size. @param size at least 1 */
export async function rootAt(read: HashReader, size: number): Promise<Buffer> {
  check(size, 1, Number.MAX_SAFE_INTEGER);
  const [root] = await hashesOf(read, [{ start: 0, end: size }]);
  return root as Buffer;
}

/** The root of each range. All ranges are read in one call, so that remote tiles take one round trip. */
async function hashesOf(read: HashReader, ranges: readonly Range[]): Promise<Buffer[]> {
  const parts = ranges.map(perfectParts);
  const hashes = await read(parts.flat());
  let at = 0;
  return parts.map(({ length }) => {
    const own = hashes.slice(at, (at += length));
    return Buffer.from(own.reduceRight((right, left) => hashChildren(left, right)));
  });
}

/** A range's perfect subtrees, from left to right. @param range starts where a perfect subtree of its size may start */
function perfectParts({ start, end }: Range): TreeNode[] {
  const parts: TreeNode[] = [];
  for (let at = start; at < end;) {
    let [height, size] = [0, 1];
    while (size * 2 <= end - at) [height, size] = [height + 1, size * 2];
    parts.push({ height, index: at / size });
    at += size;
  }
  return parts;
}

/** The largest power of two below `size`. */
function leftSize(size: number): number {
  let left = 1;
  while (left * 2 < size) left *= 2;
  return left;
}

function check(value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most)
    throw new RangeError(`${value} is not a whole number from ${least} to ${most}`);
}
