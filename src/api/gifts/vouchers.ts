/**
 * Vouchers (docs/api/vouchers.md#generate-a-v1-voucher, docs/api/vouchers.md#generate-a-v2-voucher,
 * docs/api/vouchers.md#one-voucher-per-gift).
 */
import { assignGiftVoucher } from '../../commands/assignVoucher.js';
import { type Transacted, upToOwn } from '../../commands/transact.js';
import { type LoadedGift, hasRun, loadGift } from '../../commands/loadGift.js';
import { refuseUnlessMayHaveVoucher } from '../../domain/gift/decisions.js';
import type { Segment } from '../../domain/catalogue.js';
import { type VoucherDocument, voucherIn } from '../../projections/gifts.js';
import { segmentEntity } from '../../entities/catalogue.js';
import { segmentExample, segmentSchema } from '../catalogue/schemas.js';
import { embeddedCollector } from '../../entities/embedded.js';
import { dataSchema, embeddedSchema, jsonAnswer, textSchema } from '../pipeline/schemas.js';
import { HttpError } from '../pipeline/errors.js';
import { waitUntilProjected } from '../pipeline/positions.js';
import { BEHIND_WAIT_MS } from '../../runtime/readmodels/index.js';
import type { Answer, EarlyCall, Route, Schema } from '../pipeline/route.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import { OF_GIFT, type GiftRouteDeps, viewing } from './deps.js';
import { giftEntity, voucherV1, voucherV2 } from '../../entities/gifts.js';
import { giftAfter } from '../../entities/joinedGift.js';
import { openGift } from './openGift.js';
import {
  boughtGiftExample,
  giftSchema,
  voucherOptionsExample,
  voucherOptionsSchema,
  voucherV1Example,
  voucherV1Schema,
  voucherV2Example,
  voucherV2Schema,
} from './schemas.js';

const SEGMENT_ID = textSchema('One of the product’s segments; absent: its first.');
const STATE_ERRORS = [
  'voucher_not_available',
  'invalid_segment',
  'gift_not_paid',
  'gift_cancelled',
  'gift_already_redeemed',
  'gift_expired',
  'gift_blocked',
  'outward_work_held',
] as const;

const V1_BODY: Schema = {
  title: 'GenerateV1',
  type: 'object',
  additionalProperties: false,
  properties: {
    segmentId: SEGMENT_ID,
    embed: {
      type: 'array',
      maxItems: 100,
      items: textSchema(),
      description: '`voucher.segment` embeds the segment.',
    },
  },
};

const V2_BODY: Schema = {
  title: 'GenerateV2',
  type: 'object',
  additionalProperties: false,
  properties: { segmentId: SEGMENT_ID },
};

/** The voucher's segment. Where another process gave the voucher, only the log may know the segment yet. */
async function segmentOf(
  { catalogue }: Pick<GiftRouteDeps, 'catalogue'>,
  { segment_id }: VoucherDocument,
): Promise<Segment> {
  const known = (): Segment | undefined => catalogue.current().segments.get(segment_id);
  if (known() === undefined) await catalogue.readOn();
  const segment = known();
  if (segment === undefined) throw new Error(`a voucher names segment ${segment_id}, which was never imported`);
  return segment;
}

export function voucherRoutes(deps: GiftRouteDeps): Route[] {
  /** Refuses callers who may not redeem the gift (docs/api/conventions.md#order-of-checks). */
  const load = async (early: EarlyCall): Promise<LoadedGift> => {
    const user = userOf(early);
    const context = contextOf(early, deps.now());
    const loaded = await loadGift(deps, early.params['giftId'] ?? '', user, context.now);
    if (!hasRun(loaded, context)) refuseUnlessMayHaveVoucher(loaded.gift, loaded.facts);
    return loaded;
  };
  const assign = async (
    early: EarlyCall,
    loaded: LoadedGift,
    format: 'V1' | 'V2',
    segmentId: unknown,
  ): Promise<Transacted & { readonly voucher: VoucherDocument }> => {
    const context = contextOf(early, loaded.facts.now);
    const handled = await assignGiftVoucher(deps, loaded, userOf(early), context, {
      format,
      ...(typeof segmentId === 'string' ? { segmentId } : {}),
    });
    const last = handled.own.at(-1);
    if (last !== undefined) await waitUntilProjected(last.position, [deps.gifts], BEHIND_WAIT_MS);
    const voucher = voucherIn(upToOwn(handled));
    if (voucher === undefined) throw new Error('a voucher was assigned and is not there');
    return { ...handled, voucher };
  };
  const outcome = ({ own, replayed }: Transacted): Pick<Answer, 'replayed' | 'position'> => ({
    replayed,
    position: own.at(-1)?.position,
  });

  return [
    {
      method: 'GET',
      path: '/api/v2/gifts/:giftId/voucher/options',
      operation: 'listVoucherOptions',
      summary: 'Voucher options',
      description: 'The segments that a voucher of this gift may be generated for.',
      tag: 'Vouchers',
      ...OF_GIFT,
      answers: [jsonAnswer('The options.', voucherOptionsSchema, voucherOptionsExample)],
      async open(early) {
        const joined = await openGift(deps, early);
        return async () => {
          const { product_id, created_at } = joined.transaction;
          const catalogue = deps.catalogue.current();
          const segments = (catalogue.products.get(product_id)?.segments ?? []).flatMap((id) =>
            catalogue.retired('segment', id) ? [] : (catalogue.segments.get(id) ?? []),
          );
          const options = segments.map(({ id, name, expiry }) => ({ id, name, expiry }));
          return {
            body: { segments: options, dateCreated: created_at, dateModified: created_at, productId: product_id },
          };
        };
      },
    },
    {
      method: 'POST',
      path: '/api/v2/gifts/:giftId/voucher/claimed',
      operation: 'generateVoucher',
      summary: 'Generate a V2 voucher',
      description:
        'A gift has one voucher with one code, whichever endpoint made it: a later call answers the one there is.',
      tag: 'Vouchers',
      ...OF_GIFT,
      reads: ['voucherCodes'],
      body: V2_BODY,
      bodyOptional: true,
      bodyExample: { segmentId: segmentExample.id },
      answers: [jsonAnswer('The voucher.', voucherV2Schema, voucherV2Example)],
      errors: ['cannot_redeem', 'staff_receives_no_gifts', ...STATE_ERRORS],
      async open(early) {
        const loaded = await load(early);
        return async ({ body }) => {
          const assigned = await assign(early, loaded, 'V2', body['segmentId']);
          return {
            body: voucherV2(loaded.giftId, assigned.voucher, await segmentOf(deps, assigned.voucher)),
            ...outcome(assigned),
          };
        };
      },
    },
    {
      method: 'GET',
      path: '/api/v2/gifts/:giftId/voucher/claimed',
      operation: 'getVoucher',
      summary: 'The V2 voucher, if there is one',
      description:
        'Generates none: a gift without a voucher is answered 404. A voucher that was generated in the V1 format is shown in this one.',
      tag: 'Vouchers',
      ...OF_GIFT,
      answers: [jsonAnswer('The voucher.', voucherV2Schema, voucherV2Example)],
      errors: ['cannot_redeem', 'staff_receives_no_gifts', 'voucher_not_found'],
      async open(early) {
        const loaded = await load(early);
        return async () => {
          const voucher = voucherIn(loaded.found.history);
          if (voucher === undefined) throw new HttpError('voucher_not_found');
          return { body: voucherV2(loaded.giftId, voucher, await segmentOf(deps, voucher)) };
        };
      },
    },
    {
      method: 'POST',
      path: '/api/v2/gifts/:giftId/voucher',
      operation: 'generateVoucherV1',
      summary: 'Generate a V1 voucher',
      description: 'For brands with integration ids 1 to 6. The code is at `embedded.vouchers[0].code`.',
      tag: 'Vouchers',
      ...OF_GIFT,
      embeds: ['voucher', 'voucher.segment'],
      reads: ['voucherCodes'],
      body: V1_BODY,
      bodyOptional: true,
      bodyExample: { segmentId: segmentExample.id, embed: ['voucher.segment'] },
      answers: [
        jsonAnswer(
          'The gift with its voucher.',
          {
            ...dataSchema(giftSchema, {
              ...embeddedSchema({ vouchers: voucherV1Schema, segments: segmentSchema }),
              description: 'Always the voucher; its segment when requested.',
            }),
            required: ['data', 'embedded'],
          },
          {
            data: { ...boughtGiftExample, voucher_id: voucherV1Example.id, updated_at: voucherV1Example.updated_at },
            embedded: { vouchers: [voucherV1Example], segments: [segmentExample] },
          },
        ),
      ],
      errors: ['cannot_redeem', 'staff_receives_no_gifts', ...STATE_ERRORS],
      async open(early) {
        const loaded = await load(early);
        return async ({ body, embeds }) => {
          const assigned = await assign(early, loaded, 'V1', body['segmentId']);
          const { giftId } = loaded;
          const vouchered = await giftAfter(deps, giftId, upToOwn(assigned));
          const data = giftEntity(vouchered, viewing(deps, userOf(early), loaded.facts.now));
          const embedded = embeddedCollector();
          embedded.add('vouchers', assigned.voucher.id, () => voucherV1(giftId, assigned.voucher));
          if (embeds.includes('voucher.segment')) {
            embedded.request('segments');
            const segment = await segmentOf(deps, assigned.voucher);
            embedded.add('segments', segment.id, () => segmentEntity(segment));
          }
          return { body: { data, embedded: embedded.result() }, ...outcome(assigned) };
        };
      },
    },
  ];
}
