/**
 * The Merkle tree over a log: hashing leaves, keeping the tree of a log that has none, and `gift audit verify` of all of
 * it. `--events=N` makes a log of so many events (default 1,000,000), `--dir=FOLDER` keeps it there: one that stands
 * there already is used as it is.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedEventStore } from '../src/adapters/embedded/eventStore/eventStore.js';
import { treeAppender } from '../src/ops/history/treeAppender.js';
import { lastSignedHead, signHead, verifiersOf } from '../src/ops/evidence/heads/signedHeads.js';
import { leafRulesOf, leavesOf } from '../src/ops/evidence/tree/leaves.js';
import { openLeafThread } from '../src/ops/evidence/tree/leafBatches.js';
import { verifyEvents } from '../src/ops/evidence/verify/verifyEvents.js';
import { hashLeaf } from '../src/ops/evidence/format/merkleTree.js';
import { TreeBuilder } from '../src/ops/evidence/format/tiles.js';
import { openLogTree } from '../src/ops/evidence/tree/logTree.js';
import { tileFolder } from '../src/ops/evidence/tree/tileFolder.js';
import { bytesOf } from './support/data.js';
import { onLargeLog } from './support/largeLog.js';
import { table, verdict } from './support/report.js';

/** The same each time: a folder that is used again was signed with it. */
const KEYS = ['no secret: of the bench alone'.repeat(2)];
/** Of a leaf of a usual event. */
const LEAF_BYTES = 190;
const DIFFERENT_LEAVES = 1_000;

await onLargeLog('tree', async (dir, events) => {
  const hashing = hashed(events);
  const before = process.resourceUsage().maxRSS;
  const stored = await openEmbeddedEventStore({ dir });
  const folder = tileFolder(join(dir, 'bench-tree'));
  await folder.clear();
  const append = treeAppender(stored);
  const rules = await leafRulesOf(stored, append);
  const leaves = leavesOf(rules);
  const { signal } = new AbortController();

  const start = performance.now();
  const tree = await openLogTree({ stored, folder, leaves }, [], signal);
  await tree.readOn(
    signal,
    () => undefined,
    () => undefined,
  );
  const kept = tree.size / seconds(start);
  const head = { size: tree.size, root: tree.root(), position: tree.position ?? '' };
  const signed = await signHead(stored, { keys: KEYS, host: 'bench', append }, head, await lastSignedHead(stored));
  await folder.publish(signed.note, tree.partialTiles());
  const bytes = bytesOf(join(dir, 'bench-tree')) / tree.size;

  const verifying = performance.now();
  const thread = openLeafThread(rules);
  const found = await verifyEvents({
    stored,
    leaves,
    thread,
    folder,
    verifiersOf: verifiersOf(KEYS),
    kept: [],
  });
  const took = seconds(verifying);
  if (!found.agrees) throw new Error(`the log does not verify: ${JSON.stringify(found)}`);
  await thread.close();
  await stored.close();
  rmSync(join(dir, 'bench-tree'), { recursive: true });

  table([
    { what: 'hashing leaves into a tree', '/s': hashing },
    { what: 'keeping the tree of the log', '/s': kept },
    { what: 'verifying the log', '/s': found.events / took },
  ]);
  verdict('leaves hashed', hashing, { atLeast: 300_000 }, '/s');
  verdict('tiles on disk', bytes, { atMost: 70 }, ' bytes an event');
  verdict(`verifying ${found.events.toLocaleString('en')} events`, took, { atMost: 20 * (found.events / 1e6) }, ' s');
  const grown = ((process.resourceUsage().maxRSS - before) * 1024) / 1e6;
  console.log(`resident memory: at most ${Math.round(grown)} MB more than before the log was read`);
});

/** Leaves a second. */
function hashed(events: number): number {
  const leaves = Array.from({ length: DIFFERENT_LEAVES }, () => randomBytes(LEAF_BYTES));
  const tree = new TreeBuilder(() => undefined);
  const start = performance.now();
  for (let n = 0; n < events; n++) tree.append(hashLeaf(leaves[n % DIFFERENT_LEAVES] as Buffer));
  tree.root();
  return events / seconds(start);
}

function seconds(start: number): number {
  return (performance.now() - start) / 1e3;
}
