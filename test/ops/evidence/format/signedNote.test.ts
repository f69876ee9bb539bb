import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { suite } from 'uvu';
import { MalformedEvidenceError, UntrustedNoteError } from '../../../../src/ops/evidence/format/parsing.js';
import {
  COSIGNATURE_V1,
  ED25519_NOTE,
  formatSignerKey,
  formatVerifierKey,
  parseSignerKey,
  parseVerifierKey,
} from '../../../../src/ops/evidence/format/noteKeys.js';
import {
  type ParsedNote,
  formatSignature,
  noteSigner,
  noteVerifier,
  openNote,
  parseNote,
  signNote,
  withSignatures,
} from '../../../../src/ops/evidence/format/signedNote.js';

const test = suite('signed note');

// Keys and notes of golang.org/x/mod/sumdb/note (BSD-3-Clause, The Go Authors).
const PETER = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const PETER_PRIVATE = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
const ENOCH = 'EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop';
const TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETER_SIGNED =
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';
const ENOCH_SIGNED =
  '— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n';

const names = (found: readonly { name: string }[]): string[] => found.map(({ name }) => name);

test('opens the example of its specification', () => {
  const key = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
  const note =
    'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';
  assert.equal(openNote(note, [noteVerifier(key)]).body, 'This is an example message.\n');
});

test('is signed as others sign it', () => {
  assert.equal(signNote(TEXT, [noteSigner(PETER_PRIVATE)]), `${TEXT}\n${PETER_SIGNED}`);
});

test('counts the signatures of known keys, and ignores those of others', () => {
  const note = `${TEXT}\n${PETER_SIGNED}${ENOCH_SIGNED}`;
  const [peter, enoch] = [noteVerifier(PETER), noteVerifier(ENOCH)];
  const one = openNote(note, [peter]);
  assert.equal(one.body, TEXT);
  assert.deepEqual(names(one.signatures), ['PeterNeumann']);
  assert.deepEqual(names(openNote(Buffer.from(note), [enoch, peter]).signatures), ['PeterNeumann', 'EnochRoot']);
  assert.throws(() => openNote(note, []), UntrustedNoteError);
  assert.equal(one.signatures.map(formatSignature).join(''), PETER_SIGNED);
});

test('ignores a key that shares a name or an id with a known one, and no more', () => {
  const peter = noteVerifier(PETER);
  const sameName = `${TEXT}\n${PETER_SIGNED.replace('x08g', 'x08h')}`;
  const sameId = `${TEXT}\n${PETER_SIGNED.replace('PeterNeumann', 'CarmenSandiego')}`;
  for (const note of [sameName, sameId]) {
    assert.throws(() => openNote(note, [peter]), UntrustedNoteError);
    assert.deepEqual(names(openNote(note + PETER_SIGNED, [peter]).signatures), ['PeterNeumann']);
  }
});

test('ignores bits behind the last byte of a signature, as others do', () => {
  const note = `${TEXT}\n${PETER_SIGNED.replace('M=\n', 'N=\n')}`;
  assert.equal(openNote(note, [noteVerifier(PETER)]).signatures.length, 1);
});

test('counts a key once, and refuses a note with one invalid signature of it', () => {
  const peter = noteVerifier(PETER);
  const note = `${TEXT}\n${PETER_SIGNED.repeat(3)}`;
  assert.equal(openNote(note, [peter]).signatures.length, 1);
  const invalid = PETER_SIGNED.replace('ZJku', 'ZJkv');
  assert.throws(() => openNote(`${TEXT}\n${invalid}`, [peter]), UntrustedNoteError);
  assert.throws(() => openNote(`${note}${invalid}`, [peter]), UntrustedNoteError);
  assert.throws(
    () => openNote(`${TEXT}\n${PETER_SIGNED.slice(0, 60)}ABCD${PETER_SIGNED.slice(60)}`, [peter]),
    UntrustedNoteError,
  );
  assert.throws(() => openNote(`${TEXT}x\n\n${PETER_SIGNED}`, [peter]), UntrustedNoteError);
});

test('refuses two known keys of one name and id', () => {
  const peter = noteVerifier(PETER);
  assert.throws(() => openNote(`${TEXT}\n${PETER_SIGNED}`, [peter, peter]), MalformedEvidenceError);
});

test('takes 16 signatures and 100, and no more', () => {
  for (const count of [16, 100])
    assert.equal(openNote(`${TEXT}\n${PETER_SIGNED.repeat(count)}`, [noteVerifier(PETER)]).signatures.length, 1);
  assert.throws(() => parseNote(`${TEXT}\n${PETER_SIGNED.repeat(101)}`), MalformedEvidenceError);
  assert.throws(() => parseNote(`${'x'.repeat(1_000_000)}\n\n${PETER_SIGNED}`), MalformedEvidenceError);
});

test('refuses what is no note', () => {
  for (const note of [
    '',
    '\n',
    '\n\n',
    TEXT,
    `${TEXT}\n`,
    `${TEXT}${PETER_SIGNED}`,
    `${TEXT}\n${PETER_SIGNED.slice(0, -1)}`,
    `${TEXT}\n\n`,
    `\u0001${TEXT}\n${PETER_SIGNED}`,
    `${TEXT}\t\n\n${PETER_SIGNED}`,
    `${TEXT}\r\n\n${PETER_SIGNED}`,
    `${TEXT}\n${PETER_SIGNED}Unexpected line.\n`,
    `${TEXT}\n${PETER_SIGNED.replace('—', '-')}`,
    `${TEXT}\n${PETER_SIGNED.replace('— ', '—')}`,
    `${TEXT}\n${PETER_SIGNED.replace('Neumann', ' Neumann')}`,
    `${TEXT}\n${PETER_SIGNED.replace('Neumann', '+Neumann')}`,
    `${TEXT}\n${PETER_SIGNED.replace('Neumann', '\u00a0Neumann')}`,
    `${TEXT}\n${PETER_SIGNED.replace('Neumann', '\u0085Neumann')}`,
    `${TEXT}\n${PETER_SIGNED.replace('PeterNeumann ', ' ')}`,
    `${TEXT}\n${PETER_SIGNED.replace('=\n', '\n')}`,
    `${TEXT}\n${PETER_SIGNED.replace('/SffcvI', '_SffcvI')}`,
    `${TEXT}\n${PETER_SIGNED.replace('\n', ' \n')}`,
    `${TEXT}\n— PeterNeumann x08gow==\n`,
    `${TEXT}\n— PeterNeumann \n`,
  ])
    assert.throws(() => parseNote(note), MalformedEvidenceError, JSON.stringify(note));
  assert.throws(() => parseNote(`\ud83c${TEXT}\n${PETER_SIGNED}`), MalformedEvidenceError);
  assert.throws(
    () => parseNote(Buffer.concat([Buffer.from([0xff]), Buffer.from(`${TEXT}\n${PETER_SIGNED}`)])),
    MalformedEvidenceError,
  );
});

test('keeps empty lines and a byte order mark in its text', () => {
  const body = '\ufeffa\n\n\nb\n\n';
  const note = signNote(body, [noteSigner(PETER_PRIVATE)]);
  assert.equal(openNote(note, [noteVerifier(PETER)]).body, body);
  assert.equal(openNote(Buffer.from(note), [noteVerifier(PETER)]).body, body);
});

test('is not made of a text that no note has', () => {
  const signers = [noteSigner(PETER_PRIVATE)];
  for (const body of ['', 'no newline', 'a\tb\n', 'half \ud83c\n'])
    assert.throws(() => signNote(body, signers), MalformedEvidenceError);
});

test('takes further signatures below its own', () => {
  const note = signNote(TEXT, [noteSigner(PETER_PRIVATE)]);
  const [enoch] = parseNote(`${TEXT}\n${ENOCH_SIGNED}`).signatures;
  const both = withSignatures(note, [enoch as NonNullable<typeof enoch>]);
  assert.deepEqual(names(openNote(both, [noteVerifier(ENOCH)]).signatures), ['EnochRoot']);
});

test('has keys whose text is read back, and no other text', () => {
  for (const key of [PETER, ENOCH]) assert.equal(formatVerifierKey(parseVerifierKey(key)), key);
  assert.equal(formatVerifierKey(parseSignerKey(PETER_PRIVATE).key), PETER);
  for (const [key, parse] of [
    [PETER, parseVerifierKey],
    [PETER_PRIVATE, parseSignerKey],
  ] as const) {
    for (let from = 0; from < key.length; from++)
      for (let to = from + 1; to <= key.length; to++)
        if (from > 0 || to < key.length)
          assert.throws(() => parse(key.slice(from, to)), MalformedEvidenceError, key.slice(from, to));
    for (let at = 0; at < key.length; at++) {
      const other = key.slice(0, at) + String.fromCharCode(key.charCodeAt(at) + 1) + key.slice(at + 1);
      assert.throws(() => parse(other), MalformedEvidenceError, other);
    }
  }
  for (const key of [
    'PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==',
    'PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
    PETER.toUpperCase(),
    PETER.replace('c74f20a3', 'C74F20A3'),
    `${PETER}\n`,
    PETER_PRIVATE,
  ])
    assert.throws(() => parseVerifierKey(key), MalformedEvidenceError, key);
});

test('tells no private key in an error', () => {
  const wrong = PETER_PRIVATE.replace('c74f20a3', 'c74f20a4');
  const secret = wrong.split('+').at(-1) as string;
  try {
    parseSignerKey(wrong);
    assert.fail('a key with a wrong id was taken');
  } catch (error) {
    assert.ok(error instanceof MalformedEvidenceError);
    assert.equal(error.message.includes(secret), false);
  }
});

test('takes no key of another type', () => {
  const seed = randomBytes(32);
  const witness = formatSignerKey('witness', COSIGNATURE_V1, seed);
  assert.throws(() => noteSigner(witness), MalformedEvidenceError);
  assert.throws(() => noteVerifier(formatVerifierKey(parseSignerKey(witness).key)), MalformedEvidenceError);
});

const parsed = (bytes: Uint8Array): ParsedNote | undefined => {
  try {
    return parseNote(bytes);
  } catch {
    return undefined;
  }
};

test('with any key and text is opened by that key alone, and not once it was changed', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.string({ unit: 'binary' }).map((text) => text.replaceAll(/[^\P{Cc}\n]/gu, '')),
      fc.nat(),
      (seed, text, at) => {
        const key = formatSignerKey('log', ED25519_NOTE, seed);
        const known = [noteVerifier(formatVerifierKey(parseSignerKey(key).key))];
        const body = `${text}\n`;
        const note = signNote(body, [noteSigner(key)]);
        assert.equal(openNote(note, known).body, body);
        const bytes = Buffer.from(note);
        const place = at % bytes.length;
        bytes[place] = (bytes[place] as number) ^ (1 << (at % 7));
        // The last character of base64 has bits behind the signature's last byte, which are ignored.
        fc.pre(place !== bytes.length - '?=\n'.length || !isDeepStrictEqual(parsed(bytes), parseNote(note)));
        // Another name or id is that of an unknown key; anything else is refused as well.
        assert.throws(() => openNote(bytes, known));
      },
    ),
  );
});

test.run();
