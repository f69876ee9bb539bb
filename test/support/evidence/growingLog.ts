/** A signed log, without a service, which grows and may continue in two ways. */
import { formatCheckpoint } from '../../../src/ops/evidence/format/checkpoint.js';
import { hashLeaf, proveConsistency } from '../../../src/ops/evidence/format/merkleTree.js';
import { noteSigner, signNote } from '../../../src/ops/evidence/format/signedNote.js';
import { tileHashReader, tilePath, TreeBuilder } from '../../../src/ops/evidence/format/tiles.js';
import type { SignedCheckpoint } from '../../../src/ops/evidence/witness/witnessClient.js';
import { LOG_KEY, ORIGIN } from './bundles.js';

/** Its checkpoint at a size; leaves from `fork` on are those of `branch`. */
export function checkpointAt(size: number, { fork = Infinity, branch = 'b' } = {}): SignedCheckpoint {
  const tiles = new Map<string, Buffer>();
  const tree = new TreeBuilder((tile, hashes) => void tiles.set(tilePath(tile), hashes));
  for (let at = 0; at < size; at++) tree.append(hashLeaf(Buffer.from(at < fork ? `leaf ${at}` : `${branch} ${at}`)));
  for (const { tile, hashes } of tree.partialTiles()) tiles.set(tilePath(tile), hashes);
  const read = tileHashReader(async (tile) => tiles.get(tilePath(tile)) as Buffer, size);
  const head = { origin: ORIGIN, size, root: tree.root() };
  return {
    ...head,
    note: signNote(formatCheckpoint(head), [noteSigner(LOG_KEY)]),
    consistency: (from) => proveConsistency(read, from, size),
  };
}
