import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { treeHeadStream } from '../../../../src/domain/treeHeads.js';
import { headKeys, lastSignedHead } from '../../../../src/ops/evidence/heads/signedHeads.js';
import {
  cosignatureVerifier,
  formatCheckpoint,
  parseCheckpoint,
} from '../../../../src/ops/evidence/format/checkpoint.js';
import { evidenceView, headStatus } from '../../../../src/ops/evidence/index.js';
import { openNote, signNote } from '../../../../src/ops/evidence/format/signedNote.js';
import { type WitnessClient, witnessClient } from '../../../../src/ops/evidence/witness/witnessClient.js';
import { tileFolder } from '../../../../src/ops/evidence/tree/tileFolder.js';
import { type RunningWitness, startWitness } from '../../../support/evidence/witness.js';
import { type StoredLog, KEYS, storedLog } from '../../../support/fixtures/storedTree.js';
import { gift } from '../../../support/service/cli.js';

const test = suite<{ log: StoredLog; dir: string; running: RunningWitness; client: WitnessClient }>('a witnessed log');

test.before.each(async (context) => {
  context.log = await storedLog();
  context.dir = mkdtempSync(join(tmpdir(), 'witness-of-log-'));
  const { logId } = context.log.events;
  const [vkey = ''] = headKeys(KEYS, `test/log/${logId}`).verifierKeys;
  context.running = await startWitness(context.dir, '--name', 'accountant.example/w', '--log', vkey);
  context.client = witnessClient({ url: context.running.url, key: context.running.vkey });
});
test.after.each(async ({ log, dir, running }) => {
  await running.stop();
  await log.close();
  rmSync(dir, { recursive: true });
});

/** Of the published head, where the witness has cosigned it. */
async function cosigned({ folder }: StoredLog, running: RunningWitness): Promise<number> {
  try {
    return parseCheckpoint(openNote((await folder.head()) ?? '', [cosignatureVerifier(running.vkey)]).body).size;
  } catch {
    return 0;
  }
}

test('publishes each head with its cosignature, also after a restart', async ({ log, running, client }) => {
  for (const count of [3, 600, 70]) {
    await log.fill(count);
    const end = Number(await log.events.end());
    await log.keep(async () => (await cosigned(log, running)) >= end, { witnesses: [client] });
    assert.equal(await cosigned(log, running), (await lastSignedHead(log.events))?.size);
  }
  assert.equal((await log.verify()).agrees, true);
});

test('tells which witness has not cosigned its head, and since when events have none', async ({
  log,
  running,
  client,
}) => {
  const status = async (): ReturnType<typeof headStatus> => headStatus(log.events, log.folder, [running.vkey]);
  const { name } = cosignatureVerifier(running.vkey);
  await log.fill(3);
  const [first] = await log.events.read('log-tree');
  assert.deepEqual([(await status()).last, first], [undefined, undefined]);
  assert.ok((await status()).uncoveredSince);
  await log.keepUntilSigned({ witnesses: [witnessClient({ url: 'http://127.0.0.1:1', key: running.vkey })] });
  assert.deepEqual([(await status()).uncosigned, (await status()).uncoveredSince], [[name], undefined]);
  await log.fill(3);
  assert.ok((await status()).uncoveredSince);
  const end = Number(await log.events.end());
  await log.keep(async () => (await cosigned(log, running)) >= end, { witnesses: [client] });
  const { uncosigned, last } = await status();
  assert.deepEqual([uncosigned, last?.size], [[], (await lastSignedHead(log.events))?.size]);
});

test('shows its latest heads, and who has cosigned the published one', async ({ log, running, client }) => {
  const view = async (): ReturnType<typeof evidenceView> => evidenceView(log.events, log.folder, [running.vkey]);
  const { name } = cosignatureVerifier(running.vkey);
  await log.fill(3);
  const { uncovered_since, ...none } = await view();
  assert.deepEqual(none, { origin: null, heads: [], not_cosigned_by: [], last_verified: null });
  assert.match(uncovered_since ?? '', /Z$/);
  await log.keepUntilSigned({ witnesses: [witnessClient({ url: 'http://127.0.0.1:1', key: running.vkey })] });
  const alone = await view();
  assert.deepEqual([alone.not_cosigned_by, alone.uncovered_since, alone.heads[0]?.cosigned_by], [[name], null, []]);
  await log.fill(3);
  const end = Number(await log.events.end());
  await log.keep(async () => (await cosigned(log, running)) >= end, { witnesses: [client] });
  const { origin, heads, not_cosigned_by } = await view();
  const last = await lastSignedHead(log.events);
  assert.deepEqual([origin, not_cosigned_by], [`test/log/${log.events.logId}`, []]);
  assert.deepEqual(
    heads.map(({ size, published, cosigned_by }) => [size, published, cosigned_by.map(({ witness }) => witness)]),
    [
      [last?.size, true, [name]],
      [alone.heads[0]?.size, false, []],
    ],
  );
  const [head] = heads;
  assert.deepEqual([head?.root, head?.at], [last?.root.toString('base64'), new Date(last?.at ?? 0).toISOString()]);
  assert.ok(Math.abs(Date.parse(head?.cosigned_by[0]?.at ?? '') - (last?.at ?? 0)) < 60_000);
});

test('shows a head whose text was altered as none', async ({ log, running }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  const events = {
    ...log.events,
    read: async (...args: Parameters<typeof log.events.read>) =>
      (await log.events.read(...args)).map((event) => ({ ...event, data: { ...event.data, note: 'altered' } })),
  };
  const { origin, heads } = await evidenceView(events, log.folder, [running.vkey]);
  assert.deepEqual([origin, heads[0]?.size, heads[0]?.root, heads[0]?.published], [null, null, null, false]);
});

test('shows its heads, and that no witness vouches, where the published head was altered', async ({ log, running }) => {
  await log.fill(3);
  await log.keepUntilSigned();
  const { name } = cosignatureVerifier(running.vkey);
  for (const text of ['altered', 'not\na\nhead\n\n\u2014 somebody AAAAAAA=\n']) {
    writeFileSync(join(log.folder.path, 'checkpoint'), text);
    const { heads, not_cosigned_by } = await evidenceView(log.events, log.folder, [running.vkey]);
    assert.deepEqual([heads.length, heads[0]?.published, not_cosigned_by], [1, false, [name]], text);
    const { last, uncosigned } = await headStatus(log.events, log.folder, [running.vkey]);
    assert.deepEqual([last?.size, uncosigned], [heads[0]?.size, [name]], text);
  }
});

test('signs on where its witness does not answer, and asks it for the next head', async ({ log, running, client }) => {
  const silent = witnessClient({ url: 'http://127.0.0.1:1', key: running.vkey });
  await log.fill(3);
  await log.keepUntilSigned({ witnesses: [silent] });
  assert.equal(await cosigned(log, running), 0);
  await log.fill(3);
  await log.keep(async () => (await cosigned(log, running)) > 0, { witnesses: [client] });
});

test('publishes no head before its witnesses were asked', async ({ log, running, client }) => {
  const published: string[] = [];
  const { folder } = log;
  const watched = {
    ...folder,
    async publish(note: string, partial: Parameters<typeof folder.publish>[1]) {
      published.push(note);
      await folder.publish(note, partial);
    },
  };
  await log.fill(300);
  await log.keep(async () => published.length > 0, { folder: watched, witnesses: [client] });
  assert.equal(published.length, 1);
  assert.equal(await cosigned(log, running), (await lastSignedHead(log.events))?.size);
});

/** All that it keeps, as it is now; the answer puts the log back to it. */
async function kept(log: StoredLog): Promise<() => Promise<void>> {
  const copy = mkdtempSync(join(tmpdir(), 'whole-copy-'));
  await log.tamper(() => cpSync(log.dir, copy, { recursive: true }));
  return async () => {
    await log.tamper(() => {
      rmSync(log.folder.path, { recursive: true });
      cpSync(copy, log.dir, { recursive: true });
    });
    rmSync(copy, { recursive: true });
  };
}

/** By `gift audit verify`, with no witness. @param shown what SEAL_DIR keeps of one */
async function isVerifiedAgainst({ dir, events }: StoredLog, shown: string): Promise<void> {
  const sealDir = join(dir, 'sealed');
  await tileFolder(join(sealDir, events.logId)).keepWitnessed(shown);
  const env = { DATA_DIR: dir, SEAL_DIR: sealDir, SEAL_KEY: KEYS[0] ?? '' };
  const { code, out } = await gift(env, ['audit', 'verify']);
  assert.equal(code, 1);
  assert.match(
    out,
    /\nthe head that a witness has shown, and SEAL_DIR keeps, of 35\d events: it is of other events than /,
  );
}

const refused = {
  name: 'LogAlteredError',
  message: /a.* is of \d+ events, and signed by this log, too, which has \d+/,
};

test('put back with all that it keeps, it signs nothing more, and its witness tells why', async ({
  log,
  running,
  client,
}) => {
  const witnesses = [client];
  await log.fill(300);
  await log.keep(async () => (await cosigned(log, running)) >= 300, { witnesses });
  const putBack = await kept(log);
  await log.fill(50);
  await log.keep(async () => (await cosigned(log, running)) >= 350, { witnesses });
  const putForward = await kept(log);
  await putBack();
  assert.equal((await log.verify()).agrees, true, 'nothing here can tell');
  const never = async (): Promise<boolean> => false;
  await assert.rejects(log.keep(never, { witnesses }), { ...refused, message: /accountant\.example\/w is of 35\d/ });
  const size = (await lastSignedHead(log.events))?.size;
  await log.fill(5);
  const silent = witnessClient({ url: 'http://127.0.0.1:1', key: running.vkey });
  await assert.rejects(log.keep(never, { witnesses: [silent] }), refused, 'also where the witness is gone');
  await log.fill(100);
  await assert.rejects(log.keep(never, { witnesses }), refused, 'also where it has grown past that head');
  assert.equal((await lastSignedHead(log.events))?.size, size);
  const shown = await log.folder.witnessed();
  await isVerifiedAgainst(log, shown ?? '');
  await putForward();
  await log.folder.keepWitnessed(shown);
  await log.fill(5);
  await log.keepUntilSigned();
  assert.equal(await log.folder.witnessed(), undefined);
});

test('put back to before its first event, it makes no other start', async ({ log, running, client }) => {
  await log.fill(3);
  const { logId } = log.events;
  await log.keep(async () => (await cosigned(log, running)) > 0, { witnesses: [client] });
  rmSync(log.folder.path, { recursive: true });
  await log.tamper((database) => database.prepare('DELETE FROM events').run());
  assert.equal(log.events.logId, logId);
  await assert.rejects(
    log.keep(async () => false, { witnesses: [client] }),
    refused,
  );
  assert.equal(await log.events.end(), undefined);
});

for (const [where, fill] of [
  ['the next head', async (log: StoredLog) => log.fill(1)],
  // As the standard has it, its witness answers 409 then, too.
  ['a head of the same size', async (log: StoredLog, size: number) => log.fill(size - Number(await log.events.end()))],
] as const)
  test(`put back while it is kept, it is found at ${where}`, async ({ log, running, client }) => {
    await log.fill(3);
    await log.keep(async () => (await cosigned(log, running)) > 0, { witnesses: [client] });
    const putBack = await kept(log);
    await log.fill(50);
    await log.keep(async () => (await cosigned(log, running)) > 50, { witnesses: [client] });
    const size = await cosigned(log, running);
    await putBack();
    let requested = 0;
    // Its word is not to be had when the keeper starts.
    const late: WitnessClient = {
      ...client,
      latest: async (...args) =>
        requested++ === 0 ? { outcome: 'failed', reason: 'it is away' } : client.latest(...args),
    };
    const published = await log.folder.head();
    await fill(log, size);
    await assert.rejects(
      log.keep(async () => false, { witnesses: [late] }),
      refused,
    );
    assert.equal(await log.folder.head(), published, 'a head that it refutes is not published');
  });

for (const [what, latest, name] of [
  ['shows nothing', { outcome: 'nothing' }, 'WitnessDisagreesError'],
  ['shows what the log has not signed', undefined, 'WitnessRefusesError'],
] as const)
  test(`signs on where a witness that is said to be ahead ${what}, and says so`, async ({ log, client }) => {
    await log.fill(3);
    await log.keepUntilSigned();
    await log.fill(3);
    const { origin } = (await lastSignedHead(log.events))!;
    const made = { origin, size: 9, root: Buffer.alloc(32, 1) };
    const note = signNote(
      formatCheckpoint(made),
      headKeys(['another key, of thirty-two bytes at least'], origin).signers,
    );
    const liar: WitnessClient = {
      name: client.name,
      cosign: async () => ({ witness: client.name, outcome: 'ahead', size: 9 }),
      latest: async () => latest ?? { outcome: 'cosigned', checkpoint: made, note },
    };
    const troubles: (Error | undefined)[] = [];
    await log.keep(async () => troubles.length > 0 && (await lastSignedHead(log.events))!.size > 6, {
      witnesses: [liar],
      onTrouble: (error) => troubles.push(error),
    });
    assert.equal(troubles[0]?.name, name);
    assert.match(troubles[0].message, /accountant\.example\/w has cosigned 9 events, /);
    assert.equal(await log.folder.witnessed(), undefined);
  });

test('is well again once a witness that has refused its head cosigns it, though nothing is appended', async ({
  log,
  running,
  client,
}) => {
  await log.fill(3);
  let requested = 0;
  const late: WitnessClient = {
    ...client,
    cosign: async (...args) =>
      requested++ === 0 ? { witness: client.name, outcome: 'ahead', size: 9 } : client.cosign(...args),
  };
  const said: (string | undefined)[] = [];
  await log.keep(async () => said.includes('WitnessDisagreesError') && said.at(-1) === undefined, {
    witnesses: [late],
    onTrouble: (error) => said.push(error?.name),
    well: () => said.push(undefined),
  });
  assert.ok((await cosigned(log, running)) > 0);
  assert.equal((await log.events.read(treeHeadStream(log.events.logId))).length, 1);
});

for (const [what, spoilt] of Object.entries({ 'cut short': 'cut short', 'of others': Buffer.alloc(8_192) }))
  test(`makes its tiles anew where one from which it proves is ${what}`, async ({ log, running, client }) => {
    await log.fill(100);
    await log.keep(async () => (await cosigned(log, running)) > 0, { witnesses: [client] });
    await log.fill(500);
    await log.keepUntilSigned();
    await log.fill(1);
    const spoiling: WitnessClient = {
      ...client,
      async cosign(...args) {
        writeFileSync(join(log.folder.path, 'tile', '0', '000'), spoilt);
        return client.cosign(...args);
      },
    };
    await assert.rejects(
      log.keep(async () => false, { witnesses: [spoiling] }),
      { name: 'SpoiltTilesError' },
    );
    await log.keep(async () => (await cosigned(log, running)) > 600, { witnesses: [client] });
    assert.equal((await log.verify()).agrees, true);
  });

test.run();
