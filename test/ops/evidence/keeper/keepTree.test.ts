import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { treeHeadStream, TREE_STREAM } from '../../../../src/domain/treeHeads.js';
import { headKeys, headOf, lastSignedHead, type SignedHead } from '../../../../src/ops/evidence/heads/signedHeads.js';
import type { EventStore } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { formatCheckpoint } from '../../../../src/ops/evidence/format/checkpoint.js';
import { openNote, parseNote, signNote } from '../../../../src/ops/evidence/format/signedNote.js';
import { proveEvents } from '../../../../src/ops/evidence/tree/proofs.js';
import { tileFolder } from '../../../../src/ops/evidence/tree/tileFolder.js';
import { verifyLog } from '../../../../src/ops/evidence/verify/verifyLog.js';
import { EVERY_MS, filling, type StoredLog, KEYS, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog }>('keeps the tree over the log');

test.before.each(async (context) => {
  context.log = await storedLog();
});
test.after.each(({ log }) => log.close());

const headsOf = async ({ events }: StoredLog): Promise<SignedHead[]> =>
  (await events.read(treeHeadStream(events.logId))).map(headOf);

test('signs a head of all events, claims it in the log, then publishes it', async ({ log }) => {
  await log.fill(300);
  await log.keepUntilSigned();
  const [head, ...others] = await headsOf(log);
  assert.deepEqual(others, []);
  assert.equal(head?.origin, `test/log/${log.events.logId}`);
  assert.equal(head.size, 301, 'the events, and the key of the salts');
  assert.equal(openNote(head.note, headKeys(KEYS, head.origin).verifiers).signatures.length, 1);
  assert.equal(await log.folder.head(), head.note);
  assert.deepEqual(log.files(), [
    'checkpoint',
    'format',
    'positions',
    'tile/0/000',
    'tile/0/001.p/45',
    'tile/1/000.p/1',
  ]);
});

test('signs nothing more over a log that nobody appends to', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  let looks = 0;
  await log.keep(async () => {
    await sleep(EVERY_MS);
    return ++looks > 10;
  });
  await log.keep(async () => ++looks > 20);
  assert.equal((await headsOf(log)).length, 1);
});

test('is found as it was signed where its tree is started during the verification', async ({ log }) => {
  await log.fill(10);
  let started = false;
  const read: EventStore['read'] = async (stream, options) => {
    const found = await log.events.read(stream, options);
    if (stream !== TREE_STREAM || started) return found;
    started = true;
    await log.keepUntilSigned();
    return found;
  };
  const { report } = await verifyLog({ stored: { ...log.events, read }, folder: log.folder, keys: KEYS });
  assert.deepEqual([report.agrees, report.difference, report.wrong_heads.found], [true, null, 0]);
});

test('appends nothing to an empty log', async ({ log }) => {
  let looks = 0;
  await log.keep(async () => {
    await sleep(EVERY_MS);
    return ++looks > 5;
  });
  assert.equal(await log.events.end(), undefined);
});

test('signs at most once in the time that is set', async ({ log }) => {
  const began = performance.now();
  const filling = (async () => {
    for (let n = 0; n < 40; n++) {
      await log.fill(1);
      await sleep(10);
    }
  })();
  await log.keep(async () => (await headsOf(log)).length >= 3, { everyMs: 100 });
  assert.ok(performance.now() - began >= 300);
  await filling;
});

test('goes on from its tiles after a restart, and from nothing where they are gone', async ({ log }) => {
  for (const loss of [undefined, 'tile', 'positions', '.']) {
    await log.fill(300);
    await log.keepUntilSigned();
    if (loss !== undefined) rmSync(join(log.folder.path, loss), { recursive: true });
    await log.fill(10);
    await log.keepUntilSigned();
    const found = await log.verify();
    assert.equal(found.agrees, true, JSON.stringify(found));
  }
});

test('keeps at most 70 bytes an event', async ({ log }) => {
  await log.fill(2_600);
  await log.keepUntilSigned();
  const bytes = log.files().reduce((sum, file) => sum + statSync(join(log.folder.path, file)).size, 0);
  assert.ok(bytes / 2_600 < 70, `${bytes / 2_600}`);
});

test('makes spoilt tiles anew where the log is what was signed', async ({ log }) => {
  await log.fill(600);
  await log.keepUntilSigned();
  writeFileSync(join(log.folder.path, 'tile', '0', '001'), Buffer.alloc(8_192));
  writeFileSync(join(log.folder.path, 'tile', '0', '000'), 'cut short');
  await log.fill(1);
  await log.keepUntilSigned();
  const found = await log.verify();
  assert.deepEqual([found.agrees, found.spoilt_tiles], [true, false]);
});

const provenEvent = async ({ events, folder }: StoredLog, from: number): ReturnType<typeof proveEvents> =>
  proveEvents({ stored: events, folder }, await events.read('gift-1', { from, limit: 1 }), () => ({
    field: () => true,
    metadata: true,
  }));

test('refuses no proof while tiles are missing, which are made anew, but asks to wait', async ({ log }) => {
  await log.fill(600, 'gift-1');
  await log.keepUntilSigned();
  await log.folder.clear();
  await assert.rejects(provenEvent(log, 5), { name: 'UnavailableError', message: /tiles .* are made again/ });
});

const LOSSES: Readonly<Record<string, (tiles: string) => void>> = {
  'all tiles are lost': (tiles) => rmSync(tiles, { recursive: true }),
  'a partial tile is lost': (tiles) => rmSync(join(tiles, '0', '002.p'), { recursive: true }),
  'a partial tile is torn': (tiles) => writeFileSync(join(tiles, '0', '002.p', '89'), 'cut short'),
  'a partial tile is altered': (tiles) => writeFileSync(join(tiles, '0', '002.p', '89'), Buffer.alloc(89 * 32)),
  'a full tile is torn': (tiles) => writeFileSync(join(tiles, '0', '001'), 'cut short'),
};

for (const [what, lose] of Object.entries(LOSSES))
  test(`proves events by its published head though ${what} and nothing is appended since`, async ({ log }) => {
    await log.fill(600, 'gift-1');
    await log.keepUntilSigned();
    const published = await log.folder.head();
    lose(join(log.folder.path, 'tile'));
    const proven = async (): ReturnType<typeof provenEvent> => provenEvent(log, 599).catch(() => undefined);
    await log.keep(async () => (await proven()) !== undefined);
    assert.equal((await provenEvent(log, 599))?.events.length, 1);
    assert.equal((await log.verify()).agrees, true);
    assert.deepEqual([await log.folder.head(), (await headsOf(log)).length], [published, 1]);
  });

test('makes a tile anew that a power cut has torn before a head covered it', async ({ log }) => {
  await log.fill(189);
  await log.keepUntilSigned();
  await log.fill(111);
  writeFileSync(join(log.folder.path, 'tile', '0', '000'), Buffer.alloc(8_192));
  await assert.rejects(
    log.keep(async () => false),
    { name: 'OtherTileError' },
  );
  await log.keepUntilSigned();
  const found = await log.verify();
  assert.deepEqual([found.agrees, found.spoilt_tiles], [true, false]);
});

/** Where a process may die: before a step, or right behind it. */
class Died extends Error {}
const STEPS: Readonly<Record<string, (log: StoredLog, die: () => void) => Parameters<StoredLog['keep']>[1]>> = {
  'before it claims a head': ({ events }, die) => ({ events: dyingAt(events, die, 'before') }),
  'after it has claimed a head': ({ events }, die) => ({ events: dyingAt(events, die, 'after') }),
  'before it keeps a tile': ({ folder }, die) => ({
    folder: { ...folder, keep: async () => die() },
  }),
  'after it has kept a tile, and not where it ends': ({ folder }, die) => ({
    folder: {
      ...folder,
      async keep(full) {
        await folder.keep(full, []);
        die();
      },
    },
  }),
  'before it publishes a head': ({ folder }, die) => ({
    folder: { ...folder, publish: async () => die() },
  }),
  'while it publishes partial tiles': ({ folder }, die) => ({
    folder: {
      ...folder,
      async publish(_note, partial) {
        mkPartial(folder.path, partial);
        die();
      },
    },
  }),
};

function dyingAt(events: EventStore, die: () => void, when: 'before' | 'after'): EventStore {
  return {
    ...events,
    async append(stream, ...rest) {
      if (stream === TREE_STREAM) return events.append(stream, ...rest);
      if (when === 'before') die();
      const appended = await events.append(stream, ...rest);
      die();
      return appended;
    },
  };
}

function mkPartial(path: string, partial: readonly { tile: { level: number; index: number }; hashes: Buffer }[]): void {
  const first = partial[0]!;
  writeFileSync(join(path, `partial-${first.tile.level}-${first.tile.index}`), first.hashes);
}

for (const [when, dying] of Object.entries(STEPS))
  test(`signs one head of a size though it dies ${when}`, async ({ log }) => {
    await log.fill(600);
    await log.keepUntilSigned();
    await log.fill(600);
    const die = (): never => {
      throw new Died();
    };
    await assert.rejects(
      log.keep(async () => false, dying(log, die)),
      Died,
    );
    await log.keepUntilSigned();
    const heads = await headsOf(log);
    assert.equal(new Set(heads.map(({ size }) => size)).size, heads.length);
    assert.equal(await log.folder.head(), heads.at(-1)?.note);
    assert.equal((await log.verify()).agrees, true);
  });

test('publishes what it claimed before it died, though nothing is appended since', async ({ log }) => {
  await log.fill(10);
  const die = (): never => {
    throw new Died();
  };
  await assert.rejects(
    log.keep(async () => false, STEPS['before it publishes a head']!(log, die)),
    Died,
  );
  const last = await lastSignedHead(log.events);
  assert.equal(await log.folder.head(), undefined);
  await log.keep(async () => (await log.folder.head()) !== undefined);
  assert.equal(await log.folder.head(), last?.note);
  assert.equal((await headsOf(log)).length, 1);
});

test('of two that keep it at once, one signs a size, and both tell the same', async ({ log }) => {
  const other = tileFolder(mkdtempSync(join(tmpdir(), 'other-tree-')));
  const filling = (async () => {
    for (let n = 0; n < 30; n++) {
      await log.fill(7);
      await sleep(5);
    }
  })();
  const done = async (): Promise<boolean> => (await headsOf(log)).length >= 4;
  const untilDone = async (folder: StoredLog['folder']): Promise<void> => {
    // The one that loses a race starts again.
    while (!(await done())) await log.keep(done, { folder }).catch((error: unknown) => conflict(error));
  };
  await Promise.all([untilDone(log.folder), untilDone(other)]);
  await filling;
  const sizes = (await headsOf(log)).map(({ size }) => size);
  assert.deepEqual(
    [...new Set(sizes)].sort((a, b) => a - b),
    sizes,
  );
  assert.equal((await log.verify()).agrees, true);
  rmSync(other.path, { recursive: true });
});

function conflict(error: unknown): void {
  if ((error as Error).name !== 'ConflictError') throw error;
}

test('repeats a claim whose outcome is unknown without a second head', async ({ log }) => {
  await log.fill(10);
  let failures = 0;
  const events: EventStore = {
    ...log.events,
    async append(...requested) {
      const appended = await log.events.append(...requested);
      if (requested[0] !== TREE_STREAM && failures++ === 0)
        throw new UnavailableError('lost', { outcomeUnknown: true });
      return appended;
    },
  };
  await log.keepUntilSigned({ events });
  assert.deepEqual([failures, (await headsOf(log)).length], [2, 1]);
});

test('signs nothing over a log that was altered before its last head, with tiles and without', async ({ log }) => {
  await log.fill(600);
  await log.keepUntilSigned();
  await log.tamper((database) => database.prepare(`UPDATE events SET data = '{"n":1}' WHERE position = 599`).run());
  await log.fill(1);
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError', message: /gift audit verify/ },
  );
  rmSync(log.folder.path, { recursive: true });
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError' },
  );
  assert.equal((await headsOf(log)).length, 1);
  assert.equal(existsSync(join(log.folder.path, 'tile')), false, 'no tile of a forged log');
});

test('signs nothing, and clears no tile, where the last head was overwritten by a forged one', async ({ log }) => {
  await log.fill(300);
  await log.keepUntilSigned();
  const tile = join(log.folder.path, 'tile', '0', '000');
  const [before, published] = [readFileSync(tile), await log.folder.head()];
  const head = (await lastSignedHead(log.events))!;
  const root = Buffer.alloc(32, 1);
  const forged = head.note.replace(head.root.toString('base64'), root.toString('base64'));
  const other = headKeys(['a key of thieves, of thirty-two bytes at least'], head.origin).signers;
  for (const note of [forged, signNote(parseNote(forged).body, other)]) {
    await log.tamper((database) =>
      database.prepare(`UPDATE events SET data = json_set(data, '$.note', ?) WHERE type = 'TreeHeadSigned'`).run(note),
    );
    await assert.rejects(
      log.keep(async () => false),
      { name: 'LogAlteredError', message: /no valid signature/ },
    );
  }
  assert.ok(readFileSync(tile).equals(before));
  assert.equal(await log.folder.head(), published);
});

for (const [what, change] of Object.entries({
  'a time that it never writes': `UPDATE events SET at = 'yesterday' WHERE position = 2`,
  'a head that is none': `UPDATE events SET data = '{"note":"none"}' WHERE type = 'TreeHeadSigned'`,
  'a head without data': `UPDATE events SET data = 'null' WHERE type = 'TreeHeadSigned'`,
}))
  test(`says that the log was altered where it holds ${what}`, async ({ log }) => {
    await log.fill(3);
    await log.keepUntilSigned();
    await log.tamper((database) => assert.ok(database.prepare(change).run().changes > 0));
    await assert.rejects(
      log.keep(async () => false),
      { name: 'LogAlteredError', message: /gift audit verify/ },
    );
  });

for (const [change, why] of [
  ['type = CAST(type AS BLOB)', 'a column has a value of another type'],
  [`data = '{"n":'`, 'its data are no JSON object'],
] as const)
  test(`signs no unreadable event that no head covers (${change})`, async ({ log }) => {
    await log.fill(3);
    await log.keepUntilSigned();
    await log.fill(1);
    const last = '(SELECT max(position) FROM events)';
    await log.tamper((database) => database.prepare(`UPDATE events SET ${change} WHERE position = ${last}`).run());
    await assert.rejects(
      log.keep(async () => false),
      { name: 'LogAlteredError', message: new RegExp(`can't be read: ${why}`) },
    );
    assert.equal((await headsOf(log)).length, 1);
  });

test('signs nothing, and leaves the published head, where it is truly signed over another log', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  const head = (await lastSignedHead(log.events))!;
  const body = formatCheckpoint({ ...head, root: Buffer.alloc(32, 1) });
  const note = signNote(body, headKeys(KEYS, head.origin).signers);
  await log.folder.publish(note, []);
  await log.fill(3);
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError' },
  );
  assert.equal(await log.folder.head(), note);
});

test('publishes its head over one with a forged signature', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  const head = (await lastSignedHead(log.events))!;
  await log.folder.publish(head.note.replace(head.root.toString('base64'), Buffer.alloc(32, 1).toString('base64')), []);
  await log.keepUntilSigned();
});

test('signs nothing where the last head is one of another log, signed by its key', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  const head = (await lastSignedHead(log.events))!;
  const origin = 'test/log/another';
  const note = signNote(formatCheckpoint({ ...head, origin }), headKeys(KEYS, origin).signers);
  await log.tamper((database) =>
    database.prepare(`UPDATE events SET data = json_set(data, '$.note', ?) WHERE type = 'TreeHeadSigned'`).run(note),
  );
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError', message: /of another log/ },
  );
});

test('keeps the tiles that tell what was altered', async ({ log }) => {
  await log.fill(300);
  await log.keepUntilSigned();
  const tile = join(log.folder.path, 'tile', '0', '000');
  const before = readFileSync(tile);
  await log.tamper((database) => database.prepare(`UPDATE events SET data = '{"n":1}' WHERE position = 9`).run());
  rmSync(join(log.folder.path, 'positions'));
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError' },
  );
  assert.ok(readFileSync(tile).equals(before));
});

test('signs nothing without the key of the salts that its heads were made with', async ({ log }) => {
  await log.fill(10);
  await log.keepUntilSigned();
  await log.tamper((database) => database.prepare('DELETE FROM events WHERE stream = ?').run(TREE_STREAM));
  await assert.rejects(
    log.keep(async () => false),
    { name: 'LogAlteredError' },
  );
});

test('signs by all keys of a rotation', async ({ log }) => {
  await log.fill(3);
  const keys = [...KEYS, 'a newer key of the tests, of thirty-two bytes'];
  await log.keepUntilSigned({ keys });
  const head = await lastSignedHead(log.events);
  for (const key of keys)
    assert.equal(openNote(head!.note, headKeys([key], head!.origin).verifiers).signatures.length, 1);
});

test('goes on under the origin of its first head, though the host is another', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  await log.fill(3);
  await log.keepUntilSigned({ host: 'other' });
  assert.deepEqual(
    (await headsOf(log)).map(({ origin }) => origin),
    Array.from({ length: 2 }, () => `test/log/${log.events.logId}`),
  );
});

test('signs nothing over a sealed log, and goes on', async ({ log }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  await log.events.append(`gift-${randomUUID()}`, [filling(1)], 'none');
  await log.events.seal();
  let looks = 0;
  await log.keep(async () => {
    await sleep(EVERY_MS);
    return ++looks > 3;
  });
  assert.equal((await headsOf(log)).length, 1);
});

test.run();
