import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { copyLog } from '../../../../src/ops/backup/copyLog.js';
import { treeHeadStream, type TreeHeadSigned } from '../../../../src/domain/treeHeads.js';
import { continuedHeads } from '../../../../src/ops/evidence/heads/otherLogs.js';
import { headKeys, lastSignedHead, verifiersOf } from '../../../../src/ops/evidence/heads/signedHeads.js';
import type { Verification } from '../../../../src/ops/evidence/verify/verification.js';
import { noteVerifier } from '../../../../src/ops/evidence/format/signedNote.js';
import { gift } from '../../../support/service/cli.js';
import { type StoredLog, KEYS, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite<{ old: StoredLog; copy: StoredLog }>('a log that was copied');
const NEW_KEY = 'the key of the copy has thirty-two bytes at least';

test.before.each(async (context) => {
  context.old = await storedLog();
  await context.old.fill(300);
  await context.old.keepUntilSigned();
  await context.old.fill(20);
  await context.old.keepUntilSigned();
  await context.old.fill(3);
  context.copy = await copied(context.old);
});
test.after.each(async ({ old, copy }) => {
  await copy.close();
  await old.close();
});

async function copied(source: StoredLog): Promise<StoredLog> {
  const target = await storedLog();
  await copyLog({ source: source.events, target: target.events }, { seal: true });
  return target;
}

async function firstHeadOf({ events }: StoredLog): Promise<TreeHeadSigned['data']> {
  const [first] = await events.read(treeHeadStream(events.logId));
  assert.ok(first);
  return first.data as TreeHeadSigned['data'];
}

const linkOf = async (log: StoredLog): Promise<TreeHeadSigned['data']['continues']> =>
  (await firstHeadOf(log)).continues;

/** As `gift audit verify` does. */
async function verified(log: StoredLog, known = verifiersOf([NEW_KEY])): Promise<Verification> {
  return log.verify({ verifiersOf: known, witnessed: await continuedHeads(log.events, known) });
}

/** In the log's file, where no later head covers it. */
async function relinked(log: StoredLog, member: string, value: string | number): Promise<void> {
  await log.tamper((database) => {
    const { changes } = database
      .prepare(
        `UPDATE events SET data = json_set(data, '$.continues.${member}', ?) WHERE json_extract(data, '$.continues') IS NOT NULL`,
      )
      .run(value);
    assert.equal(changes, 1);
  });
}

test('names the last head of the old one in its first head, and in no other', async ({ old, copy }) => {
  for (let heads = 0; heads < 2; heads++) {
    await copy.fill(1);
    await copy.keepUntilSigned({ keys: [NEW_KEY] });
  }
  const last = (await lastSignedHead(old.events))!;
  const { logId } = old.events;
  assert.deepEqual(await linkOf(copy), {
    log_id: logId,
    size: last.size,
    root: last.root.toString('base64'),
    note: last.note,
  });
  const others = (await copy.events.read(treeHeadStream(copy.events.logId))).slice(1);
  assert.deepEqual(
    others.map(({ data }) => 'continues' in (data as object)),
    [false],
  );
  const known = verifiersOf([NEW_KEY], headKeys(KEYS, last.origin).verifierKeys.map(noteVerifier));
  assert.deepEqual(
    (await continuedHeads(copy.events, known)).map(({ size, verified, fault }) => [size, verified, fault]),
    [[last.size, true, undefined]],
  );
  const { agrees, heads } = await verified(copy, known);
  assert.deepEqual([agrees, heads], [true, 2 + 2 + 1 + 1]);
});

test('is linked through a copy of the copy', async ({ old, copy }) => {
  await copy.keepUntilSigned({ keys: [NEW_KEY] });
  const third = await copied(copy);
  await third.keepUntilSigned({ keys: [NEW_KEY] });
  assert.equal((await linkOf(third))?.log_id, copy.events.logId);
  const heads = await continuedHeads(third.events, verifiersOf([NEW_KEY]));
  assert.deepEqual(
    heads.map(({ from, verified }) => [from, verified]),
    [
      [`the last head of log ${copy.events.logId}, which this one continues`, true],
      [`the last head of log ${old.events.logId}, which this one continues`, false],
    ],
  );
  assert.equal((await verified(third)).agrees, true);
  await third.close();
});

test('links to nothing where the old log had no head', async () => {
  const bare = await storedLog();
  await bare.fill(3);
  const target = await copied(bare);
  await target.keepUntilSigned();
  assert.equal(await linkOf(target), undefined);
  assert.deepEqual(await continuedHeads(target.events, verifiersOf(KEYS)), []);
  await target.close();
  await bare.close();
});

for (const [what, member, value, why] of [
  ['another size', 'size', 7, /names another size, root or log/],
  ['another log', 'log_id', 'other', /names another size, root or log/],
  ['a text that is no head', 'note', 'none', /./],
] as const)
  test(`is found to be linked to ${what}`, async ({ copy }) => {
    await copy.keepUntilSigned({ keys: [NEW_KEY] });
    await relinked(copy, member, value);
    const { agrees, wrong_heads } = await verified(copy);
    assert.deepEqual([agrees, wrong_heads.found], [false, 1]);
    assert.match(wrong_heads.first[0]?.why ?? '', why);
    assert.match(wrong_heads.first[0]?.from ?? '', /^the last head of log .*, which this one continues$/);
  });

test('is found to be linked to a head that was not the last, or that nobody signed', async ({ old, copy }) => {
  await copy.keepUntilSigned({ keys: [NEW_KEY] });
  const { note } = await firstHeadOf(old);
  await relinked(copy, 'note', note);
  await relinked(copy, 'size', 301);
  await relinked(copy, 'root', note.split('\n')[2] ?? '');
  const earlier = await verified(copy);
  assert.deepEqual(
    earlier.wrong_heads.first.map(({ why }) => why),
    ['it is not the last head of that log'],
  );
  const forged = note.replace(/.{9}\n$/, 'AAAAAAAA\n');
  await relinked(copy, 'note', forged);
  const { origin } = (await lastSignedHead(old.events))!;
  const known = verifiersOf([NEW_KEY], headKeys(KEYS, origin).verifierKeys.map(noteVerifier));
  const [head] = await continuedHeads(copy.events, known);
  assert.ok(head?.fault);
});

test('is held against the link by gift audit verify', async ({ old, copy }) => {
  await copy.keepUntilSigned({ keys: [NEW_KEY] });
  const [key = ''] = headKeys(KEYS, (await lastSignedHead(old.events))!.origin).verifierKeys;
  const env = { DATA_DIR: copy.dir, SEAL_KEY: NEW_KEY };
  const whole = await gift(env, ['audit', 'verify', '--key', key]);
  assert.equal(whole.code, 0, whole.out);
  await relinked(copy, 'size', 7);
  const { code, out } = await gift(env, ['audit', 'verify', '--key', key]);
  assert.equal(code, 1);
  assert.match(
    out,
    /\nthe last head of log \S+, which this one continues, of 7 events: the first head of the log names/,
  );
});

test.run();
