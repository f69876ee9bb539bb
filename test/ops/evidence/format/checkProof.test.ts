import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { checkBundle, type TrustedKeys } from '../../../../src/ops/evidence/format/checkProof.js';
import { cosignatureVerifier } from '../../../../src/ops/evidence/format/checkpoint.js';
import {
  MalformedEvidenceError,
  UnprovenEventError,
  UntrustedNoteError,
} from '../../../../src/ops/evidence/format/parsing.js';
import { COSIGNATURE_V1 } from '../../../../src/ops/evidence/format/noteKeys.js';
import { bundleJson, parseBundle, type ProofBundle } from '../../../../src/ops/evidence/format/proofBundle.js';
import { noteVerifier } from '../../../../src/ops/evidence/format/signedNote.js';
import { bundleOf, LOG_VKEY, ORIGIN, otherKey, WITNESS_VKEY } from '../../../support/evidence/bundles.js';

const test = suite('proof bundle');

const KEYS: TrustedKeys = { log: [noteVerifier(LOG_VKEY)], witnesses: [cosignatureVerifier(WITNESS_VKEY)] };
const textOf = (bundle: ProofBundle): string => JSON.stringify(bundleJson(bundle));

/** A parsed file, to be changed in place. */
// oxlint-disable-next-line typescript/no-explicit-any
type Loose = any;

test('proves the events of its checkpoint', async () => {
  for (const count of [1, 2, 9, 300]) {
    const bundle = await bundleOf(count);
    const checked = checkBundle(parseBundle(textOf(bundle)), KEYS);
    assert.equal(checked.checkpoint.size, count);
    assert.equal(checked.signedBy, ORIGIN);
    assert.deepEqual(checked.cosigned, [{ name: 'witness.example/w1', at: '2026-05-04T09:30:00.000Z' }]);
    assert.deepEqual(checked.events, bundle.events);
    assert.equal(
      textOf(checked.events === bundle.events ? bundle : { ...bundle, events: checked.events }),
      textOf(bundle),
    );
  }
});

test('is refused where anything in it was changed', async () => {
  const text = textOf(await bundleOf(9));
  const changes: Readonly<Record<string, (file: Loose) => void>> = {
    index: (file) => (file.events[1].index += 1),
    id: (file) => (file.events[1].id = file.events[0].id),
    stream: (file) => (file.events[1].stream = 'gift-1'),
    revision: (file) => (file.events[1].revision += 1),
    type: (file) => (file.events[1].type = 'GiftUnredeemed'),
    time: (file) => (file.events[1].at = '2026-05-04T00:00:02.001Z'),
    'value of a field': (file) => (file.events[1].data.value.location_id = 'elsewhere'),
    'type of a value': (file) => (file.events[1].data.value.value = '500'),
    'order of fields': (file) =>
      (file.events[1].data.value = Object.fromEntries(Object.entries(file.events[1].data.value).reverse())),
    'a field less': (file) => delete file.events[1].data.value.location_id,
    'a field more': (file) => (file.events[1].data.value.more = 1),
    'salt of data': (file) => (file.events[1].data.salt = '0'.repeat(32)),
    'hash of a field that is not shown': (file) => (file.events[1].data.value.sender_id = '0'.repeat(64)),
    'value of a field apart': (file) => (file.events[1].data.shown[0].value.user_id = 'ann'),
    'salt of a field apart': (file) => (file.events[1].data.shown[0].salt = '0'.repeat(32)),
    'a field apart shown as another': (file) => (file.events[1].data.shown[0].name = 'sender_id'),
    'fewer fields apart': (file) => file.events[1].data.apart.shift(),
    'other order of fields apart': (file) => file.events[1].data.apart.reverse(),
    'hash of all data': (file) => (file.events[1].data = { hash: '0'.repeat(64) }),
    'shown metadata': (file) => (file.events[1].metadata.value.by.user = 'ann'),
    'salt of metadata': (file) => (file.events[1].metadata.salt = '0'.repeat(32)),
    'hash of metadata': (file) => (file.events[2].metadata.hash = '0'.repeat(64)),
    'data of another event': (file) => (file.events[1].data = file.events[0].data),
    'proof of another event': (file) => (file.events[1].inclusion = file.events[0].inclusion),
    'a hash of the proof less': (file) => file.events[1].inclusion.pop(),
    'a hash of the proof more': (file) => file.events[1].inclusion.push(file.events[1].inclusion[0]),
  };
  for (const [what, change] of Object.entries(changes)) {
    const file = JSON.parse(text) as Loose;
    change(file);
    assert.throws(() => checkBundle(parseBundle(JSON.stringify(file)), KEYS), UnprovenEventError, what);
  }
});

test('is refused with a checkpoint of another log, size, root or key', async () => {
  const bundle = await bundleOf(9);
  const larger = await bundleOf(10);
  assert.throws(() => checkBundle({ ...bundle, checkpoint: larger.checkpoint }, KEYS), UnprovenEventError);
  const changed = { ...bundle, checkpoint: bundle.checkpoint.replace('\n9\n', '\n8\n') };
  assert.throws(() => checkBundle(changed, KEYS), UntrustedNoteError);
  const log = (key: string): TrustedKeys => ({ ...KEYS, log: [noteVerifier(key)] });
  assert.throws(() => checkBundle(bundle, log(otherKey(ORIGIN))), UntrustedNoteError);
  assert.throws(() => checkBundle(bundle, log(otherKey('gifts.example/log/2'))), UntrustedNoteError);
  assert.throws(() => checkBundle(bundle, { ...KEYS, log: [] }), UntrustedNoteError);
  assert.doesNotThrow(() => checkBundle(bundle, { ...KEYS, log: [noteVerifier(otherKey(ORIGIN)), ...KEYS.log] }));
});

test('is refused without the cosignature of each witness that is asked for', async () => {
  const bundle = await bundleOf(9);
  const stranger = cosignatureVerifier(otherKey('witness.example/w2', COSIGNATURE_V1));
  const sameName = cosignatureVerifier(otherKey('witness.example/w1', COSIGNATURE_V1));
  for (const witnesses of [[stranger], [sameName], [...KEYS.witnesses, stranger]])
    assert.throws(() => checkBundle(bundle, { ...KEYS, witnesses }), UntrustedNoteError);
  const without = { ...bundle, checkpoint: bundle.checkpoint.split('\n').toSpliced(-2, 1).join('\n') };
  assert.throws(() => checkBundle(without, KEYS), UntrustedNoteError);
  assert.deepEqual(checkBundle(without, { ...KEYS, witnesses: [] }).cosigned, []);
});

test('has each event once, in the order of the log', async () => {
  const bundle = await bundleOf(9);
  const [first, ...others] = bundle.events;
  assert.ok(first !== undefined);
  for (const events of [
    [first, first, ...others],
    [...others, first],
  ])
    assert.throws(() => checkBundle({ ...bundle, events }, KEYS), MalformedEvidenceError);
});

test('is refused in any other form', async () => {
  const text = textOf(await bundleOf(3));
  const changes: readonly ((file: Loose) => void)[] = [
    (file) => (file.format = 'gift-evidence/v2'),
    (file) => delete file.format,
    (file) => (file.more = 1),
    (file) => delete file.checkpoint,
    (file) => (file.checkpoint = 7),
    (file) => (file.checkpoint = 'half \ud83c'),
    (file) => (file.events = {}),
    (file) => (file.events = []),
    (file) => (file.events = [null]),
    (file) => delete file.events[0].at,
    (file) => (file.events[0].position = '1'),
    (file) => (file.events[0].index = -1),
    (file) => (file.events[0].index = '0'),
    (file) => (file.events[0].revision = 0.5),
    (file) => (file.events[0].id = null),
    (file) => (file.events[0].at = '2026-05-04'),
    (file) => (file.events[0].data = { value: 500 }),
    (file) => (file.events[0].data = []),
    (file) => (file.events[0].data = { hash: `${'0'.repeat(63)}g` }),
    (file) => (file.events[0].data = { hash: '0'.repeat(63) }),
    (file) => (file.events[0].data.hash = '0'.repeat(64)),
    (file) => (file.events[0].data.salt = `A${file.events[0].data.salt.slice(1)}`),
    (file) => (file.events[0].data.salt += '0'),
    (file) => (file.events[0].data.salt = file.events[0].data.salt.slice(1)),
    (file) => (file.events[0].data.value = ['a']),
    (file) => (file.events[0].data.value.sender_id = 'ann'),
    (file) => file.events[0].data.apart.push('sender_id'),
    (file) => file.events[0].data.apart.push('nothing'),
    (file) => file.events[0].data.apart.push('constructor'),
    (file) => (file.events[0].data.apart = ['sender_id']),
    (file) => file.events[0].data.shown.push(file.events[0].data.shown[0]),
    (file) => (file.events[0].data.shown[0].hash = '0'.repeat(64)),
    (file) => (file.events[0].data.shown = {}),
    (file) => (file.events[0].metadata = [file.events[0].metadata]),
    (file) => (file.events[0].metadata = { value: [], salt: '0'.repeat(32) }),
    (file) => (file.events[0].metadata = { value: {}, salt: '0'.repeat(31) }),
    (file) => (file.events[0].metadata.hash = '0'.repeat(65)),
    (file) => delete file.events[0].metadata,
    (file) => (file.events[0].inclusion = ['AAAA']),
    (file) => (file.events[0].inclusion = [7]),
    (file) => (file.events[0].inclusion[0] = `${file.events[0].inclusion[0]} `),
  ];
  for (const change of changes) {
    const file = JSON.parse(text) as Loose;
    change(file);
    const changed = JSON.stringify(file);
    assert.throws(
      () => checkBundle(parseBundle(changed), KEYS),
      MalformedEvidenceError,
      `${change.toString()} ${changed}`,
    );
  }
  for (const other of ['', 'null', '[]', '7', text.slice(1)])
    assert.throws(() => parseBundle(other), MalformedEvidenceError);
});

test.run();
