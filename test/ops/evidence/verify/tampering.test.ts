import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { suite } from 'uvu';
import { describeDifference, firstFault } from '../../../../src/ops/evidence/verify/describe.js';
import { StreamRevisions } from '../../../../src/ops/evidence/verify/streamRevisions.js';
import { TILE_WIDTH } from '../../../../src/ops/evidence/format/tiles.js';
import { UpperTiles } from '../../../../src/ops/evidence/verify/upperTiles.js';
import { lastSignedHead } from '../../../../src/ops/evidence/heads/signedHeads.js';
import { type StoredLog, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog }>('a log that was tampered with');

/** Two full tiles and a part of one, signed twice. */
test.before.each(async (context) => {
  context.log = await storedLog();
  await context.log.fill(300);
  await context.log.keepUntilSigned();
  await context.log.fill(300);
  await context.log.keepUntilSigned();
});
test.after.each(({ log }) => log.close());

const column = (name: string, value: string, position: number) => (database: Database.Database) =>
  database.prepare(`UPDATE events SET ${name} = ? WHERE position = ?`).run(value, position);
const sql = (text: string) => (database: Database.Database) => void database.exec(text);
const DATA = JSON.stringify({ n: 99, location_id: 'bean-leeds', code: 'C99' });
/** Swaps the positions of two events. */
const exchange = (one: number, other: number) =>
  sql(`UPDATE events SET position = -1 WHERE position = ${one};
       UPDATE events SET position = ${one} WHERE position = ${other};
       UPDATE events SET position = ${other} WHERE position = -1`);
/** Moves all from there on, as an insertion would, or a removal that leaves no gap. */
const shift = (from: number, by: number) => (database: Database.Database) => {
  database.exec(`UPDATE events SET position = -(position + ${by}) WHERE position >= ${from};
                 UPDATE events SET position = -position WHERE position < 0`);
};

test('that nobody has tampered with agrees with all that was signed', async ({ log }) => {
  const found = await log.verify();
  assert.deepEqual(
    [found.agrees, found.difference, found.wrong_heads.found, found.gaps.found, found.spoilt_tiles],
    [true, null, 0, 0, false],
  );
  assert.equal(found.heads, 3);
  assert.ok(found.agreed_size >= 600 && found.events === found.agreed_size + 1);
});

for (const [what, position, change] of [
  ['data', 100, column('data', DATA, 100)],
  ['data, so that they are no JSON', 101, column('data', '{"n":0', 101)],
  ['metadata, so that they are no JSON', 102, column('metadata', '', 102)],
  ['data behind the last full tile', 590, column('data', DATA, 590)],
  ['metadata', 5, column('metadata', '{"commandId":"x","correlationId":"y","by":{"user":"somebody"}}', 5)],
  ['the stream', 1, column('stream', 'gift-other', 1)],
  ['the type', 256, column('type', 'GiftUnredeemed', 256)],
  ['the time', 257, column('at', '2020-01-01T00:00:00.000Z', 257)],
  ['the id', 400, column('id', '00000000-0000-4000-8000-000000000000', 400)],
  ['the revision', 300, column('revision', '7777', 300)],
] as const)
  test(`names the event of which ${what} was altered`, async ({ log }) => {
    await log.tamper(change);
    const found = await log.verify();
    assert.equal(found.agrees, false);
    const { change: how, number, count, signed, event } = found.difference!;
    assert.deepEqual([how, number, count, signed], ['altered', position, 1, true]);
    assert.equal(Number(event?.position), position);
  });

test('names where one in the middle was removed, and its gap', async ({ log }) => {
  await log.tamper(sql('DELETE FROM events WHERE position = 200'));
  const { agrees, difference, gaps } = await log.verify();
  assert.deepEqual([agrees, difference?.change, difference?.number, difference?.count], [false, 'removed', 200, 1]);
  assert.deepEqual([gaps.found, Number(gaps.first[0]?.after), Number(gaps.first[0]?.event.position)], [1, 199, 201]);
});

test('names where events were removed without a gap', async ({ log }) => {
  await log.tamper((database) => {
    database.exec('DELETE FROM events WHERE position IN (200, 201, 202)');
    shift(203, -3)(database);
  });
  const { difference, gaps } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number, difference?.count, gaps.found], ['removed', 200, 3, 0]);
  assert.equal(Number(difference?.before?.position), 199);
});

test('names the first event that was cut off at the end', async ({ log }) => {
  await log.tamper(sql('DELETE FROM events WHERE position > 580'));
  const { agrees, difference } = await log.verify();
  assert.deepEqual([agrees, difference?.change, difference?.number], [false, 'cut off', 581]);
  assert.ok(difference!.count >= 20);
  assert.equal(Number(difference?.before?.position), 580);
});

test('names the first event that was cut off also where no tiles are left, but a head', async ({ log }) => {
  const note = readFileSync(join(log.folder.path, 'checkpoint'), 'utf8');
  await log.tamper(sql('DELETE FROM events WHERE position > 580'));
  rmSync(log.folder.path, { recursive: true });
  assert.equal((await log.verify()).agrees, true, 'nothing in the log itself can tell');
  const { agrees, difference } = await log.verify({ kept: [{ from: 'my safe', note }] });
  assert.deepEqual([agrees, difference?.change, difference?.number], [false, 'cut off', 581]);
});

test('names the published head behind which the log was cut off, as the keeper of the tree does', async ({ log }) => {
  const { size } = (await lastSignedHead(log.events))!;
  await log.tamper(sql('DELETE FROM events WHERE position = (SELECT max(position) FROM events)'));
  assert.ok((await lastSignedHead(log.events))!.size < size, 'the head in its last event is gone');
  const found = await log.verify();
  assert.deepEqual([found.agrees, found.difference, found.events, found.wrong_heads.found], [false, null, size, 1]);
  const { what, message } = firstFault(found)!;
  assert.equal(what, 'wrong head');
  assert.match(
    message,
    new RegExp(`^the head that was published last, of ${size} events: .*the log was cut off there$`),
  );
  await assert.rejects(log.keepUntilSigned(), {
    name: 'LogAlteredError',
    message: new RegExp(`^the head of ${size} events was published, and the log has none of that size any more`),
  });
});

test('names an event that was inserted', async ({ log }) => {
  await log.tamper((database) => {
    shift(150, 1)(database);
    database.exec(
      `INSERT INTO events SELECT 150, 'gift-forged', 0, type, '11111111-1111-4111-8111-111111111111', at, data, metadata FROM events WHERE position = 149`,
    );
  });
  const { difference } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number, difference?.count], ['inserted', 150, 1]);
  assert.equal(difference?.event?.stream, 'gift-forged');
});

for (const position of ['0', '-5', '9007199254740993', '9223372036854775807'])
  test(`names an event that was inserted at the position ${position}, where no other reader finds it`, async ({
    log,
  }) => {
    const stream = `gift-${randomUUID()}`;
    await log.fill(1, stream);
    const [last, end] = [log.events.local?.lastOf(stream), await log.events.end()];
    await log.tamper(
      sql(
        `INSERT INTO events SELECT ${position}, '${stream}', 1, type, '11111111-1111-4111-8111-111111111111', at, data, metadata FROM events WHERE position = 1`,
      ),
    );
    assert.equal((await log.events.read(stream)).length, 1);
    assert.deepEqual([log.events.local?.lastOf(stream), log.events.local?.end()], [last, end]);
    const found = await log.verify();
    assert.deepEqual([found.agrees, found.difference, found.unsequenced.found], [false, null, 1]);
    assert.deepEqual(
      found.unsequenced.first.map(({ event }) => [event.position, event.stream]),
      [[position, stream]],
    );
    assert.match(firstFault(found)!.message, new RegExp(`inserted.*\\(position ${position}, id 11111111`));
  });

test('names two events that were exchanged', async ({ log }) => {
  await log.tamper(exchange(120, 140));
  const { difference } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number, difference?.count], ['exchanged', 120, 20]);
});

for (const [what, change, found] of [
  ['one in the middle of its stream is missing', sql('DELETE FROM events WHERE position = 200'), [[201, 200]]],
  ['the first of its stream is missing', sql('DELETE FROM events WHERE position = 1'), [[2, 1]]],
  [
    'two of its stream were exchanged',
    exchange(120, 140),
    [
      [120, 139],
      [121, 120],
      [140, 119],
      [141, 140],
    ],
  ],
] as const)
  test(`names each event that is not the next one of its stream, where ${what}`, async ({ log }) => {
    await log.tamper(change);
    const { agrees, stream_gaps } = await log.verify();
    const first = stream_gaps.first.map(({ event }) => [Number(event.position), event.revision]);
    assert.deepEqual([agrees, stream_gaps.found, first], [false, found.length, found]);
  });

test('has no gap in streams whose last event is too long ago to be remembered', async ({ log }) => {
  const revisions = new StreamRevisions(log.events, 0);
  const [one, other] = ['gift-one', 'gift-other'];
  const from = await log.events.end();
  for (const stream of [one, other, one, other]) await log.fill(1, stream);
  let number = Number(from);
  for await (const { events } of log.events.readAll(from))
    for (const event of events) revisions.look(event, (number += 1));
  await revisions.settle();
  assert.equal(revisions.gaps.found, 0);
  const [first, second] = await log.events.read(one);
  revisions.look({ ...second!, stream: 'gift-none' }, 1);
  revisions.look({ ...second!, position: first!.position }, 2);
  await revisions.settle();
  assert.deepEqual(
    revisions.gaps.first.map(({ event }) => event.stream),
    ['gift-none', one],
  );
});

test('finds that the position of the last event was altered', async ({ log }) => {
  await log.tamper(sql('UPDATE events SET position = 5000 WHERE position = (SELECT max(position) FROM events)'));
  const { agrees, gaps } = await log.verify();
  assert.deepEqual([agrees, gaps.found], [false, 1]);
});

test('narrows a change down between two heads where no tiles are left', async ({ log }) => {
  await log.tamper(column('data', DATA, 400));
  rmSync(log.folder.path, { recursive: true });
  const { difference } = await log.verify();
  assert.equal(difference?.change, 'unknown');
  assert.ok(difference.number > 300 && difference.number <= 400 && difference.number + difference.count > 400);
});

test('finds a signed head that was altered', async ({ log }) => {
  await log.tamper((database) => {
    const heads = database.prepare<[], { position: number; data: string }>(
      `SELECT position, data FROM events WHERE type = 'TreeHeadSigned' ORDER BY position`,
    );
    const [first] = heads.all();
    column('data', first!.data.replace('test/log/', 'other/log/'), first!.position)(database);
  });
  const { agrees, unverified_heads, difference } = await log.verify();
  assert.deepEqual([agrees, unverified_heads], [false, 1]);
  assert.deepEqual([difference?.change, difference?.event?.type], ['altered', 'TreeHeadSigned']);
});

for (const [what, change] of [
  ['is no JSON any more', `data = '{'`],
  ['is bytes', `data = x'ff'`],
  ['is not an object', `data = 'null'`],
] as const) {
  test(`finds a signed head of which the data ${what}`, async ({ log }) => {
    await log.tamper(sql(`UPDATE events SET ${change} WHERE stream LIKE 'treeHeads%' AND revision = 0`));
    const { agrees, difference, wrong_heads } = await log.verify();
    assert.deepEqual([agrees, difference?.change, difference?.event?.type], [false, 'altered', 'TreeHeadSigned']);
    assert.match(wrong_heads.first[0]!.from, new RegExp(`position ${difference?.event?.position}`));
  });

  test(`names the event that the tree was started with, where its data ${what}`, async ({ log }) => {
    await log.tamper(sql(`UPDATE events SET ${change} WHERE stream = 'log-tree'`));
    const { agrees, difference } = await log.verify();
    assert.deepEqual([agrees, difference?.change, difference?.event?.type], [false, 'altered', 'TreeStarted']);
    await assert.rejects(
      log.keep(async () => false),
      { name: 'LogAlteredError' },
    );
  });
}

for (const [name, value] of [
  ['id', `x'00'`],
  ['stream', 'CAST(stream AS BLOB)'],
  ['type', 'CAST(type AS BLOB)'],
  ['at', 'CAST(at AS BLOB)'],
  ['data', 'CAST(data AS BLOB)'],
  ['metadata', 'CAST(metadata AS BLOB)'],
  ['revision', 'CAST(revision AS BLOB)'],
  ['revision', '0.5'],
] as const)
  test(`names the event of which the ${name} was set to ${value}, and lets nobody else read it`, async ({ log }) => {
    await log.tamper(sql(`UPDATE events SET ${name} = ${value} WHERE position = 150`));
    const { agrees, difference } = await log.verify();
    assert.deepEqual([agrees, difference?.change, difference?.number, difference?.count], [false, 'altered', 150, 1]);
    await assert.rejects(
      (async () => {
        for await (const _ of log.events.readAll(undefined));
      })(),
      /position 0000000000000150/,
    );
  });

test('finds tiles that are not those that were signed, where the log is', async ({ log }) => {
  const tile = join(log.folder.path, 'tile', '0', '001');
  const hashes = readFileSync(tile);
  hashes[40] = (hashes[40] ?? 0) ^ 1;
  rmSync(tile);
  writeFileSync(tile, hashes);
  const { agrees, spoilt_tiles, difference } = await log.verify();
  assert.deepEqual([agrees, spoilt_tiles, difference], [false, true, null]);
});

for (const [what, file, spoil] of [
  ['a tile of a higher level', 'tile/1/000.p/2', (bytes: Buffer) => bytes.fill(0, 0, 1)],
  ['the position of an event', 'positions', (bytes: Buffer) => bytes.fill('0', 14, 16)],
] as const)
  test(`finds ${what} in SEAL_DIR that is not what was signed, where the log is, and makes it anew`, async ({
    log,
  }) => {
    const path = join(log.folder.path, file);
    const right = readFileSync(path);
    writeFileSync(path, spoil(Buffer.from(right)));
    const { agrees, spoilt_tiles, difference } = await log.verify();
    assert.deepEqual([agrees, spoilt_tiles, difference], [false, true, null]);
    await log.folder.clear();
    await log.fill(1);
    await log.keepUntilSigned();
    assert.deepEqual([(await log.verify()).agrees, readFileSync(path)], [true, right]);
  });

test('counts a full tile of a higher level as wrong only as far as the log is what was signed', async () => {
  const stored = Buffer.alloc(TILE_WIDTH * 32);
  const covered = TILE_WIDTH ** 2;
  for (const [hashes, agreed, spoilt] of [
    [stored, covered, false],
    [Buffer.alloc(TILE_WIDTH * 32, 1), covered, true],
    [Buffer.alloc(TILE_WIDTH * 32, 1), covered - 1, false],
  ] as const) {
    const upper = new UpperTiles({ read: async () => stored, lastPositions: async () => [] });
    upper.takeTile({ level: 0, index: 0, width: TILE_WIDTH }, Buffer.alloc(TILE_WIDTH * 32, 2));
    upper.takeTile({ level: 1, index: 0, width: TILE_WIDTH }, hashes);
    assert.equal(await upper.areSpoilt(agreed, undefined), spoilt);
  }
});

test('finds a log that was rewritten and signed again with the true key, by a head that was kept outside', async ({
  log,
}) => {
  const note = (await log.folder.head()) ?? '';
  await log.tamper((database) => {
    column('data', DATA, 9)(database);
    database.exec(`DELETE FROM events WHERE type = 'TreeHeadSigned'`);
    shift(303, -1)(database);
  });
  rmSync(log.folder.path, { recursive: true });
  await log.keepUntilSigned();
  assert.equal((await log.verify()).agrees, true, 'nothing in the log itself can tell');
  const { agrees, wrong_heads, difference } = await log.verify({ kept: [{ from: 'my safe', note }] });
  assert.deepEqual([agrees, wrong_heads.found, wrong_heads.first[0]?.from], [false, 1, 'my safe']);
  const { size } = wrong_heads.first[0]!;
  assert.deepEqual([difference?.change, difference?.number, difference?.count], ['unknown', 1, size]);
  await log.fill(50);
  await log.keepUntilSigned();
  const later = await log.verify({ kept: [{ from: 'my safe', note }] });
  assert.deepEqual(
    [later.difference?.number, later.difference?.count],
    [1, size],
    'the new heads are no evidence of it',
  );
  assert.match(later.wrong_heads.first[0]!.why, /a holder of the log's key has signed it twice$/);
});

test('takes the true tiles for evidence, where the log was rewritten and signed again with the true key', async ({
  log,
}) => {
  const heads = mkdtempSync(join(tmpdir(), 'true-tiles-'));
  cpSync(log.folder.path, heads, { recursive: true });
  await log.tamper((database) => {
    column('data', DATA, 9)(database);
    database.exec(`DELETE FROM events WHERE type = 'TreeHeadSigned'`);
    shift(303, -1)(database);
  });
  rmSync(log.folder.path, { recursive: true });
  await log.keepUntilSigned();
  await log.fill(50);
  await log.keepUntilSigned();
  rmSync(log.folder.path, { recursive: true });
  cpSync(heads, log.folder.path, { recursive: true });
  rmSync(heads, { recursive: true });
  const { agrees, difference, spoilt_tiles } = await log.verify();
  assert.deepEqual([agrees, difference?.change, difference?.number, spoilt_tiles], [false, 'altered', 9, false]);
});

test('accuses no event where a true head was put into the log once more', async ({ log }) => {
  await log.tamper(
    sql(
      `INSERT INTO events SELECT (SELECT max(position) + 1 FROM events), stream, (SELECT max(revision) + 1 FROM events other WHERE other.stream = events.stream), type, '11111111-1111-4111-8111-111111111111', at, data, metadata FROM events WHERE type = 'TreeHeadSigned' ORDER BY position LIMIT 1`,
    ),
  );
  const { agrees, difference, wrong_heads } = await log.verify();
  assert.deepEqual([agrees, difference, wrong_heads.found], [false, null, 1]);
  assert.equal(wrong_heads.first[0]?.why, 'it stands behind a larger one');
});

test('says that the event which the tree was started with is missing, where it was removed', async ({ log }) => {
  await log.tamper(sql(`DELETE FROM events WHERE type = 'TreeStarted'`));
  const { agrees, difference, gaps } = await log.verify();
  assert.deepEqual([agrees, difference?.change, difference?.number, gaps.found], [false, 'start missing', 0, 1]);
  assert.match(describeDifference(difference!), /TreeStarted, in the stream log-tree\) is missing/);
});

test('says from where on a young log was cut off, with the event that its tree was started with', async ({ log }) => {
  await log.tamper(sql('DELETE FROM events WHERE position > 250'));
  const { difference } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number], ['cut off', 251]);
});

test('that was put back to an old copy signs nothing more, and verify names what is missing', async ({ log }) => {
  const copy = mkdtempSync(join(tmpdir(), 'old-copy-'));
  await log.tamper(() => cpSync(join(log.dir, 'events.db'), join(copy, 'events.db')));
  await log.fill(50);
  await log.keepUntilSigned();
  await log.tamper(() => cpSync(join(copy, 'events.db'), join(log.dir, 'events.db')));
  rmSync(copy, { recursive: true });
  const before = (await log.events.end()) ?? '';
  await assert.rejects(log.keepUntilSigned(), { name: 'LogAlteredError' });
  assert.equal(await log.events.end(), before);
  const { difference } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number], ['cut off', Number(before) + 1]);
});

test.run();
