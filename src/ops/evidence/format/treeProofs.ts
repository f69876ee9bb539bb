/** Proofs of RFC 9162, sections 2.1.3.1 and 2.1.4.1, from the hashes of a tree's perfect subtrees. */
import { hashChildren } from './merkleTree.js';

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
  const beside: Range[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + leftSize(end - start);
    if (index < middle) {
      beside.push({ start: middle, end });
      end = middle;
    } else {
      beside.push({ start, end: middle });
      start = middle;
    }
  }
  return hashesOf(read, beside.reverse());
}

/** The proof that the tree of size `to` begins with that of size `from`; empty from 0 and between equal sizes. */
export async function proveConsistency(read: HashReader, from: number, to: number): Promise<Buffer[]> {
  check(from, 0, to);
  if (from === 0 || from === to) return [];
  const beside: Range[] = [];
  let [start, end] = [0, to];
  while (end !== from) {
    const middle = start + leftSize(end - start);
    if (from <= middle) {
      beside.push({ start: middle, end });
      end = middle;
    } else {
      beside.push({ start, end: middle });
      start = middle;
    }
  }
  if (start > 0) beside.push({ start, end });
  return hashesOf(read, beside.reverse());
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
    throw new RangeError(`${value} is no whole number from ${least} to ${most}`);
}
