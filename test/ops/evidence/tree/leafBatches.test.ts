import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { findLeafRules, leavesOf } from '../../../../src/ops/evidence/tree/leaves.js';
import {
  leafBatches,
  type LeafThread,
  NO_LEAF,
  openLeafThread,
} from '../../../../src/ops/evidence/tree/leafBatches.js';
import type { LeafRules } from '../../../../src/ops/evidence/format/eventLeaf.js';
import { type StoredLog, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog; rules: LeafRules; thread: LeafThread }>('a thread that hashes leaves');

test.before.each(async (context) => {
  context.log = await storedLog();
  await context.log.fill(300);
  await context.log.keepUntilSigned();
  await context.log.tamper((database) => {
    database.exec(`UPDATE events SET data = '{"n":' WHERE position = 77`);
    database.exec(`UPDATE events SET data = '{ "n": 1 }' WHERE position = 78`);
  });
  context.rules = (await findLeafRules(context.log.events))!;
  context.thread = openLeafThread(context.rules);
});
test.after.each(async ({ log, thread }) => {
  await thread.close();
  await log.close();
});

async function hashesOf(
  { events }: StoredLog,
  rules: LeafRules,
  thread: LeafThread | undefined,
  batchSize: number,
): Promise<string[]> {
  const hashes: string[] = [];
  for await (const batch of leafBatches({ stored: events, leaves: leavesOf(rules), thread }, undefined, { batchSize }))
    for (const [index, { position }] of batch.events.entries())
      hashes.push(`${Number(position)} ${batch.hash(index).toString('hex')}`);
  return hashes;
}

test('gives the leaves that are hashed without it, in the order of the log', async ({ log, rules, thread }) => {
  const alone = await hashesOf(log, rules, undefined, 1_000);
  assert.equal(alone.length, Number(await log.events.end()));
  assert.equal(alone[76], `77 ${NO_LEAF.toString('hex')}`);
  for (const batchSize of [1, 7, 50, 1_000]) assert.deepEqual(await hashesOf(log, rules, thread, batchSize), alone);
});

test('finds what is found without it', async ({ log, thread }) => {
  const found = await log.verify({ thread });
  assert.deepEqual([found.difference?.change, found.difference?.number], ['altered', 77]);
  assert.deepEqual(found, await log.verify());
});

test('of another release than its process hashes nothing', async ({ log, rules }) => {
  const thread = openLeafThread(rules, '0.0.0');
  await assert.rejects(hashesOf(log, rules, thread, 10), /its process is of release 0\.0\.0: restart the service/);
  await thread.close();
});

test('that ends ends the reading, and leaves no reader waiting', async ({ log, rules, thread }) => {
  await thread.close();
  await assert.rejects(hashesOf(log, rules, thread, 10), /the thread that hashes leaves ended/);
});

test('may be left by its reader', async ({ log, rules, thread }) => {
  for await (const { events } of leafBatches({ stored: log.events, leaves: leavesOf(rules), thread }, undefined, {
    batchSize: 5,
  })) {
    assert.equal(events.length, 5);
    break;
  }
});

test.run();
