/**
 * The Merkle tree over 1,000,000 events, in one thread: from the bytes of their leaves, and from the events as they are
 * stored. `--events=N` measures with another number of events.
 */
import { parseArgs } from 'node:util';
import { type LeafRules, leafOf, type StoredEvent } from '../src/runtime/evidence/eventLeaf.js';
import { encodeLeaf } from '../src/runtime/evidence/leaf.js';
import { hashLeaf } from '../src/runtime/evidence/merkleTree.js';
import { TreeBuilder } from '../src/runtime/evidence/treeBuilder.js';
import { median, table, verdict } from './support/report.js';

const { values } = parseArgs({
  options: { events: { type: 'string', default: '1000000' }, rounds: { type: 'string', default: '5' } },
});
const EVENTS = Number(values.events);
const RULES: LeafRules = { saltKey: Buffer.alloc(32, 7).toString('base64'), apart: new Set(['sender_id', 'receiver']) };

function eventAt(at: number): StoredEvent {
  const id = `3f0c7f52-8a1e-4f0f-9a51-${String(at).padStart(12, '0')}`;
  return {
    id,
    stream: `gift-${String(at).padStart(16, '0')}`,
    revision: 1,
    type: 'GiftRedeemed',
    at: '2026-05-04T09:30:00.000Z',
    data: {
      redemption_id: String(at).padStart(16, '0'),
      location_id: 'bean-soho',
      location_merchant_id: 'bean',
      merchant_id: 'bean',
      brand_id: 'bean',
      product_id: 'bean-5',
      value: 500,
    },
    metadata: {
      commandId: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
      bodyHash: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
      correlationId: id,
      requestId: id,
      by: { user: 'till-coffee', client: 'pos', roles: ['merchant'] },
    },
  };
}

interface Round {
  readonly perSecond: number;
  readonly heapMb: number;
}

/** How many leaves a second; and by how much the memory grew, tiles aside. */
function round(leafAt: (at: number) => Uint8Array): Round {
  const before = process.memoryUsage();
  const tree = new TreeBuilder();
  const started = performance.now();
  for (let at = 0; at < EVENTS; at++) tree.append(hashLeaf(leafAt(at)));
  tree.root();
  const seconds = (performance.now() - started) / 1_000;
  const after = process.memoryUsage();
  return { perSecond: EVENTS / seconds, heapMb: (after.rss - before.rss) / 1e6 };
}

const leaf = encodeLeaf(leafOf(eventAt(0), RULES));
const withNumber = (at: number): Uint8Array => {
  leaf.writeUInt32BE(at, leaf.length - 4);
  return leaf;
};
const ways: readonly (readonly [what: string, leafAt: (at: number) => Uint8Array])[] = [
  ['from leaves', withNumber],
  ['from events', (at) => encodeLeaf(leafOf(eventAt(at), RULES))],
];
const rows = ways.map(([what, leafAt]) => {
  const rounds = Array.from({ length: Number(values.rounds) }, () => round(leafAt));
  return {
    tree: what,
    'leaves/s': median(rounds.map(({ perSecond }) => perSecond)),
    'memory grew by MB': Math.max(...rounds.map(({ heapMb }) => heapMb)),
  };
});
table(rows);
verdict('leaves a second', rows[0]?.['leaves/s'] ?? 0, { atLeast: 300_000 });
