/**
 * The Merkle tree over a log: hashing leaves, keeping the tree of a log that has none, and `gift audit verify` of all of
 * it. `--events=N` makes a log of so many events (default 1,000,000), `--dir=FOLDER` keeps it there: one that stands
 * there already is used as it is.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openEmbeddedEventStore } from '../src/adapters/embedded/eventStore/eventStore.js';
import { eventLogFile } from '../src/adapters/embedded/eventStore/log.js';
import { currentTime } from '../src/lib/clock.js';
import { headKeys } from '../src/ops/evidence/headKeys.js';
import { leafRulesOf } from '../src/ops/evidence/leafRules.js';
import { leavesOf } from '../src/ops/evidence/leaves.js';
import { lastSignedHead, signHead } from '../src/ops/evidence/signedHeads.js';
import { verifyLog } from '../src/ops/evidence/verifyLog.js';
import { hashLeaf } from '../src/runtime/evidence/merkleTree.js';
import { TreeBuilder } from '../src/runtime/evidence/treeBuilder.js';
import { openLogTree } from '../src/runtime/tree/logTree.js';
import { tileFolder } from '../src/runtime/tree/tileFolder.js';
import { generateHistory } from './support/history.js';
import { table, verdict } from './support/report.js';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '1000000' },
    dir: { type: 'string' },
    generate: { type: 'boolean', default: false },
  },
});
const EVENTS = Number(values.events);
/** The same each time: a folder that is used again was signed with it. */
const KEYS = ['no secret: of the bench alone'.repeat(2)];
/** Of a leaf of a usual event. */
const LEAF_BYTES = 190;
const DIFFERENT_LEAVES = 1_000;
const dir = values.dir ?? mkdtempSync(join(tmpdir(), 'tree-'));

if (values.generate) {
  generateHistory({ dir, events: EVENTS });
} else {
  try {
    await measure();
  } finally {
    if (values.dir === undefined) rmSync(dir, { recursive: true });
  }
}

async function measure(): Promise<void> {
  // In a process of its own: its memory is not what is measured here.
  if (!existsSync(eventLogFile(dir)))
    execFileSync(
      process.execPath,
      [fileURLToPath(import.meta.url), '--generate', '--dir', dir, '--events', values.events],
      {
        stdio: 'inherit',
      },
    );
  const hashing = hashed();
  const before = process.resourceUsage().maxRSS;
  const stored = await openEmbeddedEventStore({ dir });
  const folder = tileFolder(join(dir, 'bench-tree'));
  await folder.clear();
  const leaves = leavesOf(await leafRulesOf(stored, currentTime));
  const { signal } = new AbortController();

  const start = performance.now();
  const tree = await openLogTree({ stored, folder, leafHash: leaves.hash }, [], signal);
  await tree.readOn(
    signal,
    () => undefined,
    () => undefined,
  );
  const kept = tree.size / seconds(start);
  const head = { size: tree.size, root: tree.root(), position: tree.position ?? '' };
  const signed = await signHead(
    stored,
    { keys: KEYS, host: 'bench', now: currentTime },
    head,
    await lastSignedHead(stored),
  );
  await folder.publish(signed.note, tree.partialTiles());
  const bytes = sizeOf(join(dir, 'bench-tree')) / tree.size;

  const verifying = performance.now();
  const found = await verifyLog({
    stored,
    leaves,
    folder,
    verifiersOf: (origin) => headKeys(KEYS, origin).verifiers,
    kept: [],
  });
  const took = seconds(verifying);
  if (!found.agrees) throw new Error(`the log does not verify: ${JSON.stringify(found)}`);
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
}

/** Leaves a second. */
function hashed(): number {
  const leaves = Array.from({ length: DIFFERENT_LEAVES }, () => randomBytes(LEAF_BYTES));
  const tree = new TreeBuilder(() => undefined);
  const start = performance.now();
  for (let n = 0; n < EVENTS; n++) tree.append(hashLeaf(leaves[n % DIFFERENT_LEAVES] as Buffer));
  tree.root();
  return EVENTS / seconds(start);
}

function seconds(start: number): number {
  return (performance.now() - start) / 1e3;
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size;
  return bytes;
}
