import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import { formatCheckpoint } from '../../../../src/ops/evidence/format/checkpoint.js';
import { MalformedEvidenceError } from '../../../../src/ops/evidence/format/parsing.js';
import { ED25519_NOTE, formatSignerKey } from '../../../../src/ops/evidence/format/noteKeys.js';
import { noteSigner, signNote } from '../../../../src/ops/evidence/format/signedNote.js';
import { formatTlogProof } from '../../../../src/ops/evidence/format/checkProof.js';
import { parseTlogProof } from '../../../support/evidence/readers.js';
import { leafHashes } from './trees.js';

const test = suite('tlog proof');

const key = noteSigner(formatSignerKey('gifts.example/log/1', ED25519_NOTE, randomBytes(32)));
const root = randomBytes(32);
const checkpoint = signNote(formatCheckpoint({ origin: 'gifts.example/log/1', size: 9, root }), [key]);
const hashes = leafHashes(3);

test('is read as it is written', () => {
  for (const proof of [
    { index: 0, inclusion: [], checkpoint },
    { index: 8, inclusion: hashes, checkpoint },
    { index: 8, inclusion: leafHashes(63), checkpoint },
  ])
    assert.deepEqual(parseTlogProof(formatTlogProof(proof)), proof);
});

test('has the form of the specification', () => {
  const lines = formatTlogProof({ index: 5, inclusion: hashes.slice(0, 1), checkpoint });
  assert.equal(lines, `c2sp.org/tlog-proof@v1\nindex 5\n${hashes[0]?.toString('base64')}\n\n${checkpoint}`);
  assert.equal(
    formatTlogProof({ index: 0, inclusion: [], checkpoint }),
    `c2sp.org/tlog-proof@v1\nindex 0\n\n${checkpoint}`,
  );
});

test('is refused in any other form', () => {
  const good = formatTlogProof({ index: 5, inclusion: hashes, checkpoint });
  for (const text of [
    '',
    good.slice(1),
    good.replace('@v1', '@v2'),
    good.replace('proof@v1\n', 'proof@v1\n\n'),
    good.replace('index 5\n', ''),
    good.replace('index 5', 'index 05'),
    good.replace('index 5', 'index -5'),
    good.replace('index 5', 'index 5 '),
    good.replace('index 5', 'index five'),
    good.replace('index 5', 'index 9007199254740992'),
    good.replace('index 5\n', 'index 5\n!!\n'),
    good.replace('index 5\n', `index 5\n${Buffer.alloc(64).toString('base64')}\n`),
    good.replace('index 5\n', 'index 5\r\n'),
    good.slice(0, -1),
    good.slice(0, good.indexOf('\n\n') + 2),
    formatTlogProof({ index: 5, inclusion: leafHashes(64), checkpoint }),
  ])
    assert.throws(() => parseTlogProof(text), MalformedEvidenceError, JSON.stringify(text));
});

test.run();
