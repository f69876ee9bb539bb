import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import {
  cosignatureVerifier,
  cosignedAt,
  cosigner,
  formatCheckpoint,
  parseCheckpoint,
} from '../../../../src/ops/evidence/format/checkpoint.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../../../../src/ops/evidence/format/parsing.js';
import { hashLeaf } from '../../../../src/ops/evidence/format/merkleTree.js';
import {
  COSIGNATURE_V1,
  ED25519_NOTE,
  formatSignerKey,
  formatVerifierKey,
  parseSignerKey,
} from '../../../../src/ops/evidence/format/noteKeys.js';
import {
  noteSigner,
  noteVerifier,
  openNote,
  parseNote,
  signNote,
} from '../../../../src/ops/evidence/format/signedNote.js';

const test = suite('checkpoint');

// Of golang.org/x/mod/sumdb/tlog (BSD-3-Clause, The Go Authors).
const GO = 'go.sum database tree\n123456789012\nTszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=\n';

test('is written and read as others do', () => {
  const head = { origin: 'go.sum database tree', size: 123_456_789_012, root: hashLeaf(Buffer.from('hello world')) };
  assert.equal(formatCheckpoint(head), GO);
  assert.deepEqual(parseCheckpoint(GO), head);
});

test('of the Go checksum database opens with its key', () => {
  // Of the tests of filippo.io/torchwood (ISC).
  const note =
    'go.sum database tree\n35225469\nvt5T6GaLCXvyHFl9VUvvItR43XZxfLgftEcTyO3eJCQ=\n\n— sum.golang.org Az3grpukl5AXaVfYkLiDGORx/DN2nlcS5kZHR5uYOBV2KA2HgXpD+gu9HHONebHLAyaKbbTM75QTtPydhKCExixSfwQ=\n';
  const key = 'sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8';
  assert.equal(parseCheckpoint(openNote(note, [noteVerifier(key)]).body).size, 35_225_469);
});

test('may have extension lines of others', () => {
  assert.deepEqual(parseCheckpoint(`${GO}a line\nanother\n`), parseCheckpoint(GO));
});

test('is refused in any other form', () => {
  const root = 'TszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=';
  for (const text of [
    '',
    '\n',
    'Head\n9944\n',
    `\n123\n${root}\n`,
    `log\n123\n${root}`,
    `log\n0xabc\n${root}\n`,
    `log\nbananas\n${root}\n`,
    `log\n-34\n${root}\n`,
    `log\n+34\n${root}\n`,
    `log\n034\n${root}\n`,
    `log\n00\n${root}\n`,
    `log\n3.0\n${root}\n`,
    `log\n1e3\n${root}\n`,
    `log\n 34\n${root}\n`,
    `log\n\n${root}\n`,
    `log\n9007199254740992\n${root}\n`,
    `log\n3438945738945739845734895735\n${root}\n`,
    `log\n123\nYmFuYW5hcw==\n`,
    `log\n123\n${root.slice(0, -1)}\n`,
    `log\n123\n${root.replace('0=', '1=')}\n`,
    `log\n123\n${root} \n`,
    `log\n123\n${root.replaceAll('+', '-')}\n`,
    `log\n123\n${root}\n\n`,
    `log\n123\n${root}\n\nmore\n`,
    `log\n123\n${root}\nmore`,
  ])
    assert.throws(() => parseCheckpoint(text), MalformedEvidenceError, JSON.stringify(text));
  for (const origin of ['', 'two\nlines', 'log\n1'])
    assert.throws(() => formatCheckpoint({ origin, size: 1, root: Buffer.alloc(32) }), MalformedEvidenceError);
  for (const size of [-1, 0.5, 2 ** 53, Number.NaN])
    assert.throws(() => formatCheckpoint({ origin: 'log', size, root: Buffer.alloc(32) }), MalformedEvidenceError);
  assert.throws(() => formatCheckpoint({ origin: 'log', size: 1, root: Buffer.alloc(31) }), MalformedEvidenceError);
});

const witnessKey = formatSignerKey('witness.example/w1', COSIGNATURE_V1, randomBytes(32));
const witness = cosignatureVerifier(formatVerifierKey(parseSignerKey(witnessKey).key));
const log = noteSigner(formatSignerKey('log', ED25519_NOTE, randomBytes(32)));
const cosign = (time: number): string => signNote(GO, [log, cosigner(witnessKey, () => time)]);

test('is cosigned with a time, which the signature covers', () => {
  const note = cosign(1_679_315_147);
  const opened = openNote(note, [witness]);
  assert.equal(opened.body, GO);
  assert.deepEqual(opened.signatures.map(cosignedAt), [1_679_315_147]);
  const line = note.split('\n').at(-2) as string;
  const bytes = Buffer.from(line.split(' ')[2] as string, 'base64');
  assert.equal(bytes.length, 4 + 8 + 64);
  for (let at = 4; at < bytes.length; at++) {
    const other = Buffer.from(bytes);
    other[at] = (other[at] as number) ^ 1;
    const changed = note.replace(bytes.toString('base64'), other.toString('base64'));
    assert.throws(() => openNote(changed, [witness]), UntrustedNoteError, String(at));
  }
  assert.throws(() => openNote(note.replace('123456789012', '123456789013'), [witness]), UntrustedNoteError);
});

test('with a cosignature without a time, or of no time there is, is refused', () => {
  for (const time of [0, 253_402_300_800, Number.MAX_SAFE_INTEGER])
    assert.throws(() => openNote(cosign(time), [witness]), UntrustedNoteError, String(time));
  assert.doesNotThrow(() => openNote(cosign(253_402_300_799), [witness]));
});

test('has cosignatures over its extension lines too', () => {
  const body = `${GO}an extension\n`;
  const note = signNote(body, [cosigner(witnessKey, () => 1)]);
  assert.equal(openNote(note, [witness]).body, body);
  assert.throws(() => openNote(note.replace('an ext', 'no ext'), [witness]), UntrustedNoteError);
});

test('is not cosigned by a key for notes', () => {
  const seed = randomBytes(32);
  const key = formatSignerKey('witness.example/w1', ED25519_NOTE, seed);
  assert.throws(() => cosigner(key, () => 1), MalformedEvidenceError);
  assert.throws(() => cosignatureVerifier(formatVerifierKey(parseSignerKey(key).key)), MalformedEvidenceError);
  // The same seed has another id for each type, so one kind never counts as the other.
  const note = signNote(GO, [noteSigner(key)]);
  const asWitness = formatVerifierKey(parseSignerKey(formatSignerKey('witness.example/w1', COSIGNATURE_V1, seed)).key);
  assert.throws(() => openNote(note, [cosignatureVerifier(asWitness)]), UntrustedNoteError);
  assert.equal(parseNote(note).signatures.length, 1);
});

test.run();
