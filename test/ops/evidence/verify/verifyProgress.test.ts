import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { progressFile } from '../../../../src/cli/audit/verify.js';
import { verifiersOf } from '../../../../src/ops/evidence/heads/signedHeads.js';
import type { StoredHead } from '../../../../src/ops/evidence/heads/headsToCheck.js';
import type { Verification } from '../../../../src/ops/evidence/verify/verification.js';
import { verifyEvents } from '../../../../src/ops/evidence/verify/verifyEvents.js';
import type { VerifyProgress } from '../../../../src/ops/evidence/verify/verifyProgress.js';
import { tileFolder } from '../../../../src/ops/evidence/tree/tileFolder.js';
import { KEYS, type StoredLog, storedLog, readableLeaves } from '../../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog; young: string }>('a verification that was interrupted');

/** Signed at 300 events and at the end. */
test.before.each(async (context) => {
  context.log = await storedLog();
  await context.log.fill(300);
  await context.log.keepUntilSigned();
  context.young = (await context.log.folder.head()) ?? '';
  await context.log.fill(2_500);
  await context.log.keepUntilSigned();
});
test.after.each(({ log }) => log.close());

interface Trial {
  readonly kept?: VerifyProgress | undefined;
  readonly heads?: readonly StoredHead[];
  /** Default: the log's. */
  readonly folder?: StoredLog['folder'];
  /** Interrupted at the first batch. */
  readonly interrupt?: boolean;
}

async function verified(
  log: StoredLog,
  { kept, heads = [], folder = log.folder, interrupt = false }: Trial,
): Promise<{ found?: Verification; saved?: VerifyProgress; unusable?: string; read: number[] }> {
  const ending = new AbortController();
  const read: number[] = [];
  let saved: VerifyProgress | undefined;
  let unusable: string | undefined;
  const deps = {
    stored: log.events,
    leaves: await readableLeaves(log.events),
    folder,
    verifiersOf: verifiersOf(KEYS),
    kept: heads,
  };
  const found = await verifyEvents(deps, {
    signal: ending.signal,
    onProgress(events) {
      read.push(events);
      if (interrupt) ending.abort();
    },
    progress: {
      kept,
      at: undefined,
      save: (progress) => (saved = JSON.parse(JSON.stringify(progress)) as VerifyProgress),
      unusable: (why) => (unusable = why),
    },
  }).catch((error: unknown) => {
    if (!ending.signal.aborted) throw error;
  });
  return {
    read,
    ...(found === undefined ? {} : { found }),
    ...(saved === undefined ? {} : { saved }),
    ...(unusable === undefined ? {} : { unusable }),
  };
}

test('goes on where it stood, and finds what one that reads all finds', async ({ log, young }) => {
  const heads = [{ from: 'my safe', note: young }];
  const { saved } = await verified(log, { heads, interrupt: true });
  assert.equal(saved?.size, 1_000);
  const whole = await verified(log, { heads });
  const { found, read } = await verified(log, { kept: saved, heads });
  assert.ok(read[0]! > 1_000 && whole.read[0] === 1_000);
  assert.deepEqual(found, { ...whole.found, continued_from: 1_000 });
  assert.equal(found?.agrees, true);
});

test('goes on with a log that has grown and was signed since', async ({ log }) => {
  const { saved } = await verified(log, { interrupt: true });
  await log.fill(100);
  await log.keepUntilSigned();
  const { found } = await verified(log, { kept: saved });
  assert.deepEqual([found?.agrees, found?.continued_from], [true, 1_000]);
});

test('finds what was altered behind the place where it goes on', async ({ log }) => {
  const { saved } = await verified(log, { interrupt: true });
  await log.tamper((database) => database.exec(`UPDATE events SET data = '{}' WHERE position = 1500`));
  const { found } = await verified(log, { kept: saved });
  assert.deepEqual([found?.difference?.change, found?.difference?.number], ['altered', 1_500]);
});

test('is nothing that a progress with another tree makes agree', async ({ log }) => {
  const { saved } = await verified(log, { interrupt: true });
  const tiles = saved!.tiles.map((tile) => ({ ...tile, hashes: tile.hashes.replace(/^.{4}/, 'AAAA') }));
  const { found } = await verified(log, { kept: { ...saved!, tiles } });
  assert.equal(found?.agrees, false);
});

test('keeps nothing once something was found, so that it is found again', async ({ log }) => {
  await log.tamper((database) => database.exec(`UPDATE events SET data = '{}' WHERE position = 15`));
  assert.equal((await verified(log, { interrupt: true })).saved, undefined);
});

test('finds also in a second call that the log ends right before the event of its published head', async (context) => {
  await context.log.close();
  const log = (context.log = await storedLog());
  await log.fill(300);
  await log.keepUntilSigned();
  const size = Number((await log.folder.head())?.split('\n')[1]);
  const earlier = `${log.folder.path}-earlier`;
  cpSync(log.folder.path, earlier, { recursive: true });
  const folder = tileFolder(earlier);
  await log.fill(50);
  await log.keepUntilSigned();
  const witnessed = { from: 'a witness', note: (await log.folder.head()) ?? '' };
  await log.tamper((database) => database.prepare('DELETE FROM events WHERE position > ?').run(size));
  const whole = await verified(log, { folder });
  const { saved } = await verified(log, { folder, heads: [witnessed], interrupt: true });
  // The witness is away now.
  const { found } = await verified(log, { folder, kept: saved });
  for (const { agrees, wrong_heads } of [whole.found!, found!]) {
    assert.equal(agrees, false);
    assert.match(wrong_heads.first[0]?.why ?? '', /the log was cut off there$/);
  }
});

test('reads all again where a head is given that it has not judged, or its last event is gone', async ({
  log,
  young,
}) => {
  const { saved } = await verified(log, { interrupt: true });
  const other = await verified(log, { kept: saved, heads: [{ from: 'my safe', note: young }] });
  assert.match(other.unusable ?? '', /^my safe, of \d+ events, was not there then$/);
  assert.equal(other.found?.continued_from, 0);
  await log.tamper((database) => database.exec(`DELETE FROM events WHERE position >= 1000`));
  const cut = await verified(log, { kept: saved });
  assert.match(cut.unusable ?? '', /^the last event that was read, at position 0+1000, is not there any more$/);
  assert.equal(cut.found?.difference?.change, 'cut off');
});

test('keeps its progress in a file that only those with the keys can write, for one log', async ({ log }) => {
  const dir = mkdtempSync(join(tmpdir(), 'progress-'));
  const path = join(dir, 'progress');
  const { saved } = await verified(log, { interrupt: true });
  const { logId } = log.events;
  const at = '2026-05-04T09:30:00.000Z';
  const open = (id = logId, keys = KEYS): ReturnType<typeof progressFile> => progressFile(path, id, keys);
  assert.deepEqual([open().kept, open().unusable], [undefined, undefined]);
  open().save(saved!, at);
  assert.deepEqual([open().kept, open().at], [saved, at]);
  assert.match(open('another').unusable ?? '', /^it is of another log/);
  assert.match(open(logId, ['other']).unusable ?? '', /^it was altered, or is of other keys$/);
  writeFileSync(path, readFileSync(path, 'utf8').replace('"size":1000', '"size":1001'));
  assert.match(open().unusable ?? '', /^it was altered/);
  assert.equal(open().kept, undefined);
  open().remove();
  assert.equal(open().unusable, undefined);
  writeFileSync(path, 'my letters');
  assert.throws(() => open(), /it is a file of another kind/);
  assert.equal(readFileSync(path, 'utf8'), 'my letters');
  rmSync(dir, { recursive: true });
});

test.run();
