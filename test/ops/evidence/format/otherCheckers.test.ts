/** Checkers that others wrote take what is made here, and refuse it once it was changed. */
import assert from 'node:assert/strict';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import { suite } from 'uvu';
import { leafOfShown } from '../../../../src/ops/evidence/format/eventLeaf.js';
import { encodeLeaf } from '../../../../src/ops/evidence/format/leaf.js';
import { parseVerifierKey } from '../../../../src/ops/evidence/format/noteKeys.js';
import { bundleOf, LOG_VKEY, ORIGIN } from '../../../support/evidence/bundles.js';

const test = suite('checkers of others');

interface Checkpoint {
  readonly origin: string;
  readonly logSize: bigint;
  readonly logHash: Buffer;
}

/** What `@sigstore/verify`, a checker of Sigstore's transparency log, uses within. */
interface Sigstore {
  verifyCheckpoint(entry: object, logs: readonly object[]): Checkpoint;
  verifyMerkleInclusion(entry: object, checkpoint: Checkpoint): void;
}
const load = createRequire(import.meta.url);
const sigstore = {
  ...(load('@sigstore/verify/dist/tlog/checkpoint.js') as object),
  ...(load('@sigstore/verify/dist/tlog/merkle.js') as object),
} as Sigstore;

function publicKeyOf(vkey: string): KeyObject {
  const { publicKey } = parseVerifierKey(vkey);
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey.toString('base64url') }, format: 'jwk' });
}

const ID = Buffer.alloc(4);
ID.writeUInt32BE(parseVerifierKey(LOG_VKEY).keyId);
const LOG = { logID: ID, baseURL: `https://${ORIGIN}`, publicKey: publicKeyOf(LOG_VKEY) };
const withCheckpoint = (envelope: string): object => ({ inclusionProof: { checkpoint: { envelope } } });

test('take our checkpoints and their Ed25519 signatures, with cosignatures below', async () => {
  const { checkpoint } = await bundleOf(9);
  const { origin, logSize } = sigstore.verifyCheckpoint(withCheckpoint(checkpoint), [LOG]);
  assert.deepEqual([origin, logSize], [ORIGIN, 9n]);
  assert.throws(() => sigstore.verifyCheckpoint(withCheckpoint(checkpoint.replace('\n9\n', '\n8\n')), [LOG]));
});

test('take our leaves and proofs of inclusion, in trees of many sizes', async () => {
  for (const count of [1, 2, 3, 7, 8, 9, 255, 256, 257, 300]) {
    const { checkpoint, events } = await bundleOf(count);
    const head = sigstore.verifyCheckpoint(withCheckpoint(checkpoint), [LOG]);
    for (const event of events) {
      const leaf = leafOfShown(event, event);
      assert.ok(leaf !== undefined);
      const canonicalizedBody = encodeLeaf(leaf);
      const inclusionProof = { logIndex: String(event.index), hashes: event.inclusion };
      sigstore.verifyMerkleInclusion({ canonicalizedBody, inclusionProof }, head);
      canonicalizedBody[7] = (canonicalizedBody[7] as number) ^ 1;
      assert.throws(() => sigstore.verifyMerkleInclusion({ canonicalizedBody, inclusionProof }, head));
    }
  }
});

test.run();
