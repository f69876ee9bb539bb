/** A log of a gift's events with its tree, signed and cosigned. */
import { randomBytes } from 'node:crypto';
import { cosigner, formatCheckpoint } from '../../../src/ops/evidence/format/checkpoint.js';
import { leafOf, type LeafRules, showEvent, type StoredEvent } from '../../../src/ops/evidence/format/eventLeaf.js';
import { encodeLeaf } from '../../../src/ops/evidence/format/leaf.js';
import { hashLeaf, proveInclusion } from '../../../src/ops/evidence/format/merkleTree.js';
import {
  COSIGNATURE_V1,
  ED25519_NOTE,
  formatSignerKey,
  formatVerifierKey,
  parseSignerKey,
} from '../../../src/ops/evidence/format/noteKeys.js';
import type { ProofBundle } from '../../../src/ops/evidence/format/proofBundle.js';
import { noteSigner, signNote } from '../../../src/ops/evidence/format/signedNote.js';
import { tileHashReader, tilePath, TreeBuilder } from '../../../src/ops/evidence/format/tiles.js';

export const ORIGIN = 'gifts.example/log/1';

const RULES: LeafRules = { saltKey: randomBytes(32).toString('base64'), apart: new Set(['sender_id', 'receiver']) };
const verifierOf = (key: string): string => formatVerifierKey(parseSignerKey(key).key);

export const LOG_KEY = formatSignerKey(ORIGIN, ED25519_NOTE, randomBytes(32));
export const LOG_VKEY = verifierOf(LOG_KEY);
export const WITNESS_KEY = formatSignerKey('witness.example/w1', COSIGNATURE_V1, randomBytes(32));
export const WITNESS_VKEY = verifierOf(WITNESS_KEY);
export const otherKey = (name: string, type: typeof ED25519_NOTE | typeof COSIGNATURE_V1 = ED25519_NOTE): string =>
  verifierOf(formatSignerKey(name, type, randomBytes(32)));

/** Of a gift, among others of the log. */
export function eventsOf(count: number): StoredEvent[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
    stream: at % 2 === 0 ? 'gift-0123456789abcdef' : `gift-${at}`,
    revision: at % 2 === 0 ? at / 2 : 0,
    type: 'GiftRedeemed',
    at: new Date(Date.UTC(2026, 4, 4) + at * 1_000).toISOString(),
    data: {
      redemption_id: `r${at}`,
      location_id: 'bean-soho',
      value: 500,
      sender_id: 'ann',
      receiver: { user_id: 'bob' },
    },
    metadata: { commandId: `c${at}`, correlationId: `c${at}`, by: { user: 'till-coffee' } },
  }));
}

/** The gift's events among those of a log of `count`: the buyer, and most metadata, are not shown. */
export async function bundleOf(count: number): Promise<ProofBundle> {
  const events = eventsOf(count);
  const tiles = new Map<string, Buffer>();
  const tree = new TreeBuilder((tile, hashes) => void tiles.set(tilePath(tile), hashes));
  for (const event of events) tree.append(hashLeaf(encodeLeaf(leafOf(event, RULES))));
  for (const { tile, hashes } of tree.partialTiles()) tiles.set(tilePath(tile), hashes);
  const read = tileHashReader(async (tile) => tiles.get(tilePath(tile)) as Buffer, count);
  const checkpoint = signNote(formatCheckpoint({ origin: ORIGIN, size: count, root: tree.root() }), [
    noteSigner(LOG_KEY),
    cosigner(WITNESS_KEY, () => 1_777_887_000),
  ]);
  const shown = [...events.entries()].filter(([, { stream }]) => stream === 'gift-0123456789abcdef');
  return {
    checkpoint,
    events: await Promise.all(
      shown.map(async ([index, event]) => {
        const { id, stream, revision, type, at } = event;
        const fields = showEvent(event, RULES, { field: (name) => name !== 'sender_id', metadata: index === 2 });
        return {
          index,
          id,
          stream,
          revision,
          type,
          at,
          ...fields,
          inclusion: await proveInclusion(read, index, count),
        };
      }),
    ),
  };
}
