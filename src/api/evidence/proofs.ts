/** Proofs that anybody checks offline (docs/evidence.md#bundles). */

import { foundGift, type GiftDeps } from '../../commands/loadGift.js';
import { giftStream } from '../../domain/gift/events.js';
import { type ProofDeps, proveGifts, proveRedemption, redemptionNamed } from '../../ops/history/giftProofs.js';
import { BUNDLE_FORMAT } from '../../ops/evidence/index.js';
import { type HistoryDeps, namedGifts } from '../../ops/history/giftHistory.js';
import { userOf } from '../pipeline/commandContext.js';
import { GIFT_PARAM } from '../gifts/deps.js';
import { HttpError } from '../pipeline/errors.js';
import type { Route, Schema, SuccessAnswer } from '../pipeline/route.js';
import {
  choiceSchema,
  countSchema,
  entity,
  jsonAnswer,
  listSchema,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import { type OpsRoute, STAFF } from '../ops/frame.js';

const TEXT = textSchema();
const SALT = textSchema('16 bytes in hex.');
const ANY_OBJECT = { type: 'object', additionalProperties: true } as const;
/** Hash in place of data or metadata that is not shown, in hex. */
const HASH = textSchema('SHA-256 in hex, where nothing of it is shown.');

const SHOWN_FIELD: Schema = entity('ShownField', {
  name: TEXT,
  value: { description: 'Any JSON value.' },
  salt: SALT,
});
const PROVEN_EVENT = entity('ProvenEvent', {
  index: countSchema('Of its leaf.'),
  id: TEXT,
  stream: TEXT,
  revision: countSchema(),
  type: TEXT,
  at: timeSchema(),
  data: {
    title: 'ShownData',
    type: 'object',
    additionalProperties: false,
    description: '`hash` alone, or all others.',
    properties: {
      hash: HASH,
      apart: listSchema(TEXT, 'Names of fields that have their hash in place of their value.'),
      value: ANY_OBJECT,
      salt: SALT,
      shown: listSchema(SHOWN_FIELD, 'Those of them that are shown.'),
    },
  },
  metadata: {
    title: 'ShownMetadata',
    type: 'object',
    additionalProperties: false,
    description: '`hash` alone, or all others.',
    properties: { hash: HASH, value: ANY_OBJECT, salt: SALT },
  },
  inclusion: listSchema(TEXT, 'The inclusion proof: hashes in base64, from the leaf’s sibling up.'),
});

const HEX = '0'.repeat(64);
const PROOF: SuccessAnswer = jsonAnswer(
  'The proof, for `gift audit check`.',
  entity('Proof', {
    format: choiceSchema([BUNDLE_FORMAT]),
    checkpoint: textSchema('A signed note (c2sp.org/tlog-checkpoint).'),
    events: listSchema(PROVEN_EVENT),
  }),
  {
    format: BUNDLE_FORMAT,
    checkpoint: 'gifts.example/log/1\n1\nAAAA\n\n— gifts.example/log/1 AAAA\n',
    events: [
      {
        index: 0,
        id: '2f0b7a52-6c0e-4b1f-9a40-0c7d1f6e8b11',
        stream: 'gift-5f2c9d6a1b7e4c80d3a1',
        revision: 1,
        type: 'GiftRedeemed',
        at: '2026-05-04T12:30:00.000Z',
        data: { apart: [], value: { location_id: 'store-7', value: 500 }, salt: HEX.slice(32), shown: [] },
        metadata: { hash: HEX },
        inclusion: [],
      },
    ],
  },
);

export function giftProofRoutes(deps: ProofDeps, history: HistoryDeps): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/gifts/:giftId/proof',
      operation: 'getGiftProof',
      summary: "Proof of a gift's events",
      description:
        'The events of the gift, its purchase and its notifications, with proofs that they stand in the log of the latest checkpoint. Secret and personal fields are left as salted hashes. 404 also while no checkpoint covers the gift.',
      tag: 'Evidence',
      roles: STAFF,
      params: { giftId: "The gift's id or shortcode, or the id of one of its redemptions." },
      reads: ['redemptions'],
      answers: [PROOF],
      errors: ['gift_not_found', 'not_found'],
      exists: async ({ params: { giftId = '' } }) => oneGift(history, giftId),
      async handle({ params }) {
        const { file, events } = covered(await proveGifts(deps, await oneGift(history, params['giftId'] ?? '')));
        return { body: file, shown: events.length };
      },
    },
  ];
}

async function oneGift(
  history: HistoryDeps,
  id: string,
): Promise<{ readonly transactionId: string; readonly giftIds: readonly string[] }> {
  const found = await namedGifts(history, id);
  // The id of a transaction is refused: a transaction may have thousands of gifts.
  if (found === undefined || found.transactionId === id) throw new HttpError('gift_not_found');
  return found;
}

export function redemptionProofRoutes(deps: ProofDeps & Pick<GiftDeps, 'events' | 'gifts'>): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/gifts/:giftId/redemptions/:redemptionId/proof',
      operation: 'getRedemptionProof',
      summary: 'Proof of a redemption',
      description:
        'For the merchant at whose location it was: the redemption, its reversal and the issue of the gift, with proofs that they stand in the log of the latest checkpoint. Sender and receiver are left as salted hashes. 404 also while no checkpoint covers the redemption, which takes some seconds.',
      tag: 'Evidence',
      caller: 'user',
      params: { ...GIFT_PARAM, redemptionId: 'The redemption’s id, or `latest`.' },
      giftParam: 'giftId',
      answers: [PROOF],
      errors: ['redemption_not_found', 'not_found'],
      async open(early) {
        const user = userOf(early);
        const { giftId = '', redemptionId = '' } = early.params;
        const redemption = await redemptionNamed(deps.stored, giftId, redemptionId);
        if (redemption === undefined) {
          // Refuses an unknown gift.
          await foundGift(deps, giftId, await deps.events.read(giftStream(giftId)));
          throw new HttpError('redemption_not_found');
        }
        if (redemption.merchantId !== user.merchant_id) throw new HttpError('forbidden');
        return async () => {
          const { file, events } = covered(await proveRedemption(deps, giftId, redemption.id));
          const isCovered = events.some(({ type }) => type === 'GiftRedeemed');
          if (!isCovered) throw new HttpError('not_found');
          return { body: file };
        };
      },
    },
  ];
}

/** @throws HttpError `not_found` where no checkpoint covers any of the events */
function covered<Proven>(proven: Proven | undefined): Proven {
  if (proven === undefined) throw new HttpError('not_found');
  return proven;
}
