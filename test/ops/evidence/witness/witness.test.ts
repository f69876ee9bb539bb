import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import {
  cosignatureVerifier,
  cosigner,
  formatAddCheckpoint,
  formatCheckpoint,
  parseAddCheckpoint,
  parseCheckpoint,
} from '../../../../src/ops/evidence/format/checkpoint.js';
import { MalformedEvidenceError } from '../../../../src/ops/evidence/format/parsing.js';
import { EMPTY_ROOT, proveConsistency } from '../../../../src/ops/evidence/format/merkleTree.js';
import {
  COSIGNATURE_V1,
  ED25519_NOTE,
  formatSignerKey,
  formatVerifierKey,
  parseSignerKey,
  verifierKey,
} from '../../../../src/ops/evidence/format/noteKeys.js';
import {
  noteSigner,
  noteVerifier,
  openNote,
  parseNote,
  signNote,
} from '../../../../src/ops/evidence/format/signedNote.js';
import {
  answerAddCheckpoint,
  type WitnessAnswer,
  type WitnessedLog,
  type WitnessView,
} from '../../../../src/ops/evidence/witness/witness.js';
import { leafHashes, simpleRoot, tiledTree } from '../format/trees.js';

const test = suite('witness');

const witnessKey = formatSignerKey('witness.example/w1', COSIGNATURE_V1, randomBytes(32));
const cosigned = cosignatureVerifier(formatVerifierKey(parseSignerKey(witnessKey).key));

interface Witness {
  readonly latest: WitnessedLog | undefined;
  ask(body: string): WitnessAnswer;
}

function witnessOf(origin: string, logKeys: readonly string[]): Witness {
  let latest: WitnessedLog | undefined;
  const view: WitnessView = {
    verifiers: (requested) => (requested === origin ? logKeys.map(noteVerifier) : undefined),
    latest: () => latest,
    cosigners: [cosigner(witnessKey, () => 1_700_000_000)],
  };
  return {
    get latest() {
      return latest;
    },
    ask(body) {
      const answer = answerAddCheckpoint(body, view);
      if (answer.status === 200) latest = answer.keep;
      return answer;
    },
  };
}

test('answers the requests of another witness’ tests with the same statuses', () => {
  const { requests, logKey, origin } = JSON.parse(
    readFileSync('test/ops/evidence/witness/witnessVectors.json', 'utf8'),
  ) as {
    readonly requests: readonly { readonly body: string; readonly status: number }[];
    readonly logKey: string;
    readonly origin: string;
  };
  assert.equal(requests.length, 9);
  const key = formatVerifierKey(verifierKey(origin, ED25519_NOTE, Buffer.from(logKey, 'hex')));
  const witness = witnessOf(origin, [key]);
  for (const { body, status } of requests) assert.equal(witness.ask(body).status, status, body);
  assert.equal(witness.latest?.size, 5);
});

const ORIGIN = 'gifts.example/log/1';
const logSeed = randomBytes(32);
const logKey = formatSignerKey(ORIGIN, ED25519_NOTE, logSeed);
const vkey = formatVerifierKey(parseSignerKey(logKey).key);
const leaves = leafHashes(60);
const tree = tiledTree(leaves);
const other = tiledTree(leafHashes(61).slice(1));

const signed = (size: number, root: Uint8Array = simpleRoot(leaves.slice(0, size)), key = logKey): string =>
  signNote(formatCheckpoint({ origin: ORIGIN, size, root }), [noteSigner(key)]);

async function request(oldSize: number, size: number, from = oldSize, note = signed(size)): Promise<string> {
  const consistency = await proveConsistency(tree.readAt(size), from, size);
  return formatAddCheckpoint({ oldSize, consistency, checkpoint: note });
}

test('cosigns what continues its latest checkpoint, and keeps that', async () => {
  const witness = witnessOf(ORIGIN, [vkey]);
  for (const [from, to] of [
    [0, 0],
    [0, 7],
    [7, 7],
    [7, 8],
    [8, 60],
  ] as const) {
    const body = await request(from, to);
    const answer = witness.ask(body);
    assert.equal(answer.status, 200, `${from} to ${to}`);
    assert.ok(answer.status === 200);
    const note = `${parseNote(signed(to)).body}\n${answer.cosignatures}`;
    assert.equal(parseCheckpoint(openNote(note, [cosigned]).body).size, to);
    const kept = openNote(answer.keep.checkpoint, [noteVerifier(vkey), cosigned]);
    assert.equal(kept.signatures.length, 2);
    assert.equal(answer.keep.size, to);
  }
});

test('answers 409 and its own size for another old size', async () => {
  const witness = witnessOf(ORIGIN, [vkey]);
  assert.deepEqual(witness.ask(await request(7, 9)), { status: 409, size: 0 });
  witness.ask(await request(0, 9));
  for (const old of [0, 8]) assert.deepEqual(witness.ask(await request(old, 20)), { status: 409, size: 9 });
  // Also of a smaller tree than its own: it never goes back.
  assert.deepEqual(witness.ask(await request(5, 7)), { status: 409, size: 9 });
  assert.equal(witness.latest?.size, 9);
});

test('answers 409 and the size to another tree of the size that it has cosigned', async () => {
  const witness = witnessOf(ORIGIN, [vkey]);
  const emptyFork = formatAddCheckpoint({ oldSize: 0, consistency: [], checkpoint: signed(0, Buffer.alloc(32)) });
  assert.deepEqual(witness.ask(emptyFork), { status: 409, size: 0 });
  assert.equal(witness.latest, undefined);
  witness.ask(await request(0, 9));
  const before = witness.latest;
  const fork = await request(9, 9, 9, signed(9, simpleRoot(leafHashes(61).slice(1, 10))));
  assert.deepEqual(witness.ask(fork), { status: 409, size: 9 });
  assert.equal(witness.latest, before);
});

test('answers 422 to what its latest checkpoint does not lead to', async () => {
  const witness = witnessOf(ORIGIN, [vkey]);
  witness.ask(await request(0, 9));
  const before = witness.latest;
  const fork = await proveConsistency(other.readAt(20), 9, 20);
  const forkRoot = simpleRoot(leafHashes(61).slice(1, 21));
  for (const body of [
    await request(9, 20, 8),
    await request(9, 20, 0),
    formatAddCheckpoint({ oldSize: 9, consistency: fork, checkpoint: signed(20, forkRoot) }),
    formatAddCheckpoint({ oldSize: 9, consistency: [Buffer.alloc(32)], checkpoint: signed(9) }),
  ])
    assert.equal(witness.ask(body).status, 422, body);
  assert.equal(witness.latest, before);
  const fresh = witnessOf(ORIGIN, [vkey]);
  const proven = formatAddCheckpoint({ oldSize: 0, consistency: [Buffer.alloc(32)], checkpoint: signed(3) });
  assert.equal(fresh.ask(proven).status, 422);
  assert.equal(fresh.latest, undefined);
  assert.equal(
    fresh.ask(formatAddCheckpoint({ oldSize: 0, consistency: [], checkpoint: signed(0, EMPTY_ROOT) })).status,
    200,
  );
});

test('answers 403 without a valid signature of a key that it trusts for the log', async () => {
  const witness = witnessOf(ORIGIN, [vkey]);
  const stranger = formatSignerKey(ORIGIN, ED25519_NOTE, randomBytes(32));
  const asCosigner = formatSignerKey(ORIGIN, COSIGNATURE_V1, logSeed);
  const body = formatCheckpoint({ origin: ORIGIN, size: 7, root: simpleRoot(leaves.slice(0, 7)) });
  for (const note of [
    signed(7, simpleRoot(leaves.slice(0, 7)), stranger),
    signed(7).replace('\n7\n', '\n8\n'),
    signNote(body, [cosigner(asCosigner, () => 1)]),
  ])
    assert.equal(witness.ask(await request(0, 7, 0, note)).status, 403, note);
  assert.equal(
    witness.ask(await request(0, 7, 0, signNote(body, [noteSigner(stranger), noteSigner(logKey)]))).status,
    200,
  );
});

test('takes any key of a log while it is changed', async () => {
  const next = formatSignerKey(ORIGIN, ED25519_NOTE, randomBytes(32));
  const witness = witnessOf(ORIGIN, [vkey, formatVerifierKey(parseSignerKey(next).key)]);
  assert.equal(witness.ask(await request(0, 7)).status, 200);
  assert.equal(witness.ask(await request(7, 9, 7, signed(9, simpleRoot(leaves.slice(0, 9)), next))).status, 200);
});

test('answers 404 for a log that it does not know, whoever signed', async () => {
  const witness = witnessOf('another.example/log', [vkey]);
  assert.equal(witness.ask(await request(0, 7)).status, 404);
});

test('answers 400 to what is no request, and to an old size above the new one', async () => {
  const witness = witnessOf(ORIGIN, [vkey]);
  const good = await request(0, 7);
  const many = Array.from({ length: 64 }, () => Buffer.alloc(32));
  for (const body of [
    '',
    'old 0\n',
    good.slice(1),
    good.replace('old 0', 'old'),
    good.replace('old 0', 'old  0'),
    good.replace('old 0', 'old 00'),
    good.replace('old 0', 'old -1'),
    good.replace('old 0', 'old 0x1'),
    good.replace('old 0', 'new 0'),
    good.replace('old 0\n', 'old 0\nnonsense\n'),
    good.replace('old 0\n', 'old 0\nAAAA\n'),
    good.replace('\n\n', '\n'),
    good.slice(0, -1),
    good.replace('\n7\n', '\n07\n'),
    formatAddCheckpoint({ oldSize: 0, consistency: many, checkpoint: signed(7) }),
    await request(8, 7, 0),
  ])
    assert.equal(witness.ask(body).status, 400, JSON.stringify(body));
  assert.equal(witness.latest, undefined);
  assert.equal(witness.ask(good).status, 200);
});

test('reads requests as they are written', () => {
  const whole = { oldSize: 5, consistency: leafHashes(63), checkpoint: signed(7) };
  assert.deepEqual(parseAddCheckpoint(formatAddCheckpoint(whole)), whole);
  assert.throws(() => parseAddCheckpoint('old 1'), MalformedEvidenceError);
});

test.run();
