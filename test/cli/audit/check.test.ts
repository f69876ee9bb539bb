import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { bundleJson } from '../../../src/ops/evidence/format/proofBundle.js';
import { parseTlogProof } from '../../support/evidence/readers.js';
import { bundleOf, LOG_VKEY, ORIGIN, otherKey, WITNESS_VKEY } from '../../support/evidence/bundles.js';
import { gift, type Said } from '../../support/service/cli.js';
import { giftOnFullDisk } from '../../support/service/programs.js';

const test = suite<{ dir: string; file: string }>('gift audit check');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'audit-check-'));
  context.file = join(context.dir, 'proof.json');
  writeFileSync(context.file, JSON.stringify(bundleJson(await bundleOf(9)), null, 2));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

/** The script that stands alone. */
function script(...args: readonly string[]): Said {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/check-proof.mjs', ...args], {
    encoding: 'utf8',
  });
  return { code: status ?? -1, out: stdout, err: stderr };
}

const check = (...args: readonly string[]): Promise<Said> => gift({}, ['audit', 'check', ...args]);

test('shows what was proven, without a data folder', async ({ file }) => {
  const { code, out, err } = await check(file, '--key', LOG_VKEY, '--witness', WITNESS_VKEY);
  assert.deepEqual([code, err], [0, '']);
  assert.ok(out.startsWith(`log ${ORIGIN}, 9 events, root `));
  assert.match(out, /cosigned by witness\.example\/w1 at 2026-05-04T09:30:00\.000Z/);
  assert.match(out, /"location_id":"bean-soho"/);
  assert.match(out, /5 events are in the log as they are shown/);
  assert.doesNotMatch(out, /ann|no witness/);
  const json = JSON.parse((await check(file, '--key', LOG_VKEY, '--json')).out) as {
    readonly events: readonly { readonly not_shown: readonly string[]; readonly data: object }[];
  };
  assert.equal(json.events.length, 5);
  assert.deepEqual(json.events[0], {
    ...json.events[0],
    not_shown: ['sender_id'],
    metadata: null,
    data: { redemption_id: 'r0', location_id: 'bean-soho', value: 500, receiver: { user_id: 'bob' } },
  });
});

test('says that no witness was asked for, and which earlier events are not in the file', async ({ file }) => {
  const bundle = JSON.parse(readFileSync(file, 'utf8')) as { events: object[] };
  bundle.events = bundle.events.slice(3);
  writeFileSync(file, JSON.stringify(bundle));
  const { code, out } = await check(file, '--key', LOG_VKEY);
  assert.equal(code, 0);
  assert.match(
    out,
    /2 events are in the log as they are shown\nnot in this file: 3 earlier events of gift-0123456789abcdef/,
  );
  assert.match(out, /no witness was asked for/);
});

test('ends with 1 for a file that was changed, and 2 for keys that are none', async ({ file, dir }) => {
  const changed = join(dir, 'changed.json');
  writeFileSync(changed, readFileSync(file, 'utf8').replace('bean-soho', 'bean-bath'));
  const { code, out, err } = await check(changed, '--key', LOG_VKEY);
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /proves nothing: event 0 \(GiftRedeemed, revision 0 of gift-0123456789abcdef\) is not in the log/);
  for (const [args, status, words] of [
    [[file], 2, /--key is missing/],
    [[file, '--key', 'nonsense'], 2, /--key: a verifier's key is/],
    [[file, '--key', WITNESS_VKEY], 2, /--key: the key of witness/],
    [[file, '--key', LOG_VKEY, '--witness', LOG_VKEY], 2, /--witness: the key of gifts/],
    [[file, '--key', otherKey(ORIGIN)], 1, /no known key has signed/],
    [[join(dir, 'none.json'), '--key', LOG_VKEY], 1, /can't be read \(ENOENT\)/],
  ] as const) {
    const said = await check(...args);
    assert.equal(said.code, status, said.err);
    assert.match(said.err, words);
  }
});

test('writes each proof in the format of other checkers', async ({ file, dir }) => {
  const folder = join(dir, 'proofs');
  assert.equal((await check(file, '--key', LOG_VKEY, '--tlog-proofs', folder)).code, 0);
  assert.deepEqual(
    readdirSync(folder).sort(),
    ['0', '2', '4', '6', '8'].map((index) => `${index}.tlog-proof`),
  );
  const bundle = await import('node:fs/promises').then(({ readFile }) => readFile(file, 'utf8'));
  const { checkpoint } = JSON.parse(bundle) as { readonly checkpoint: string };
  const proof = parseTlogProof(readFileSync(join(folder, '4.tlog-proof'), 'utf8'));
  assert.deepEqual([proof.index, proof.checkpoint, proof.inclusion.length], [4, checkpoint, 4]);
});

test('names the folder that it can not write proofs into', async ({ file, dir }) => {
  const folder = join(dir, 'proofs');
  const full = giftOnFullDisk(0, ['audit', 'check', file, '--key', LOG_VKEY, '--tlog-proofs', folder]);
  assert.equal(full.status, 1);
  assert.equal(full.stderr, `gift: ${folder} can't be written (EFBIG): name another folder\n`);
  const { code, err } = await check(file, '--key', LOG_VKEY, '--tlog-proofs', file);
  assert.equal(code, 1);
  assert.match(err, /^gift: .*proof\.json can't be written \([A-Z]+\): name another folder\n$/);
});

test('refuses, as the script does, events twice, out of order, or with a revision of another kind', async ({
  file,
  dir,
}) => {
  interface Bundle {
    events: { revision: unknown }[];
  }
  const changed = join(dir, 'changed.json');
  for (const change of [
    (bundle: Bundle) => bundle.events.push(bundle.events.at(-1) as Bundle['events'][0]),
    (bundle: Bundle) => bundle.events.reverse(),
    (bundle: Bundle) => (bundle.events[0]!.revision = '0x0'),
  ]) {
    const bundle = JSON.parse(readFileSync(file, 'utf8')) as Bundle;
    change(bundle);
    writeFileSync(changed, JSON.stringify(bundle));
    assert.equal((await check(changed, '--key', LOG_VKEY)).code, 1);
    assert.equal(script(changed, LOG_VKEY).code, 1);
  }
});

test('refuses, as the script does, a file without events, cut short, or with a member missing or twice', async ({
  file,
  dir,
}) => {
  const text = readFileSync(file, 'utf8');
  const changed = join(dir, 'changed.json');
  const files: readonly (readonly [text: string, message: RegExp])[] = [
    [JSON.stringify({ ...(JSON.parse(text) as object), events: [] }), /has no events/],
    [text.slice(0, -100), /is no JSON/],
    [text.replace('"value": 500', '"value": 1,\n"value": 500'), /twice/],
    [text.replace('"events": [', '"events": [], "\\u0065vents": ['), /twice/],
    [text.replace('"location_id": "bean-soho"', '"location_id": "bean-bath", "location_id" : "bean-soho"'), /twice/],
    [text.replace('"type": "GiftRedeemed",', ''), /index.* id.* stream/],
    [text.replace('"type": "GiftRedeemed",', '"type": "GiftRedeemed", "more": 1,'), /index.* id.* stream/],
    [text.replace(/"inclusion": \[[^\]]*\]/, '"more": 1'), /index.* id.* stream/],
    [text.replace('"name": "receiver",', ''), /name.* value.* salt/],
  ];
  for (const [one, message] of files) {
    writeFileSync(changed, one);
    for (const said of [await check(changed, '--key', LOG_VKEY), script(changed, LOG_VKEY)]) {
      assert.equal(said.code, 1, one);
      assert.match(said.err, message);
      assert.doesNotMatch(said.err, / at .*:\d+/);
    }
  }
});

test('with --gift takes only every event of that gift up to the latest one, and so does the script', async ({
  file,
  dir,
}) => {
  const id = '0123456789abcdef';
  const changed = join(dir, 'changed.json');
  const { events, ...bundle } = JSON.parse(readFileSync(file, 'utf8')) as { readonly events: readonly object[] };
  const rows: readonly (readonly [kept: readonly object[], gift: string, missing: number | undefined])[] = [
    [events, id, undefined],
    [events.slice(0, 3), id, undefined],
    [events.slice(1), id, 0],
    [events.toSpliced(2, 1), id, 2],
    [events, 'fedcba9876543210', 0],
  ];
  for (const [kept, requested, missing] of rows) {
    writeFileSync(changed, JSON.stringify({ ...bundle, events: kept }));
    const checked = await check(changed, '--key', LOG_VKEY, '--gift', requested);
    for (const said of [checked, script('--gift', requested, changed, LOG_VKEY)]) {
      assert.equal(said.code, missing === undefined ? 0 : 1, said.err);
      if (missing !== undefined)
        assert.ok(said.err.includes(`revision ${missing} of gift-${requested} is not in`), said.err);
    }
    if (missing === undefined) assert.match(checked.out, /every event of the gift 0123456789abcdef is there up to/);
  }
  assert.equal(script('--other', changed, LOG_VKEY).code, 2);
});

test('agrees with the script that stands alone', async ({ file, dir }) => {
  const good = script(file, LOG_VKEY, WITNESS_VKEY);
  assert.deepEqual([good.code, good.err], [0, '']);
  assert.match(good.out, /location_id = "bean-soho"/);
  assert.match(good.out, /5 events are in the log as they are shown/);
  const text = readFileSync(file, 'utf8');
  const changed = join(dir, 'changed.json');
  const replacements: readonly (readonly [from: string | RegExp, to: string])[] = [
    ['bean-soho', 'bean-bath'],
    ['"value": 500', '"value": 501'],
    ['"revision": 1', '"revision": 2'],
    ['"index": 2', '"index": 3'],
    ['"type": "GiftRedeemed"', '"type": "GiftClaimed"'],
    ['00:00:02.000Z', '00:00:02.001Z'],
    [/"salt": "(.)/, '"salt": "0$1'],
    [/"hash": "..../, '"hash": "0000'],
    [/"sender_id": "..../, '"sender_id": "0000'],
    ['"user_id": "bob"', '"user_id": "ann"'],
    [/"apart": \[[^\]]*\]/, '"apart": []'],
    [String.raw`\n9\n`, String.raw`\n8\n`],
    [`"checkpoint": "${ORIGIN}`, `"checkpoint": "${ORIGIN}0`],
    ['gift-evidence/v1', 'gift-evidence/v2'],
  ];
  for (const [from, to] of replacements) {
    writeFileSync(changed, text.replace(from, to));
    assert.notEqual(readFileSync(changed, 'utf8'), text);
    assert.deepEqual([script(changed, LOG_VKEY).code, (await check(changed, '--key', LOG_VKEY)).code], [1, 1], to);
  }
  for (const args of [
    [otherKey(ORIGIN)],
    [otherKey('gifts.example/log/2')],
    [WITNESS_VKEY],
    ['nonsense'],
    [LOG_VKEY, otherKey('witness.example/w1')],
    [LOG_VKEY, otherKey('witness.example/w1', 4)],
  ])
    assert.equal(script(file, ...args).code, 1, String(args));
  assert.equal(script(file).code, 2);
});

test.run();
