/** Voucher codes of imported pools (docs/api/vouchers.md#voucher-codes), which are too large for memory. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { createHash } from 'node:crypto';
import {
  type VoucherCode,
  type VoucherCodeEvent,
  voucherCodeAggregate,
  voucherCodeOfStream,
} from '../domain/voucherCode.js';
import { type Projection, type ReadModel, typesOf } from '../runtime/readmodels/index.js';
import type { Recorded } from '../ports/eventStore.js';

/** `voucherCode-{segmentId}-{hash}`. Secret: `code`, `pin`. */
export interface VoucherCodeDocument {
  readonly segment_id: string;
  readonly code: string;
  readonly pin: string | null;
  readonly status: 'free' | 'assigned' | 'withdrawn';
  readonly gift_id: string | null;
  /** The stream's keyed hash, which spreads codes evenly, whatever the order of imports. */
  readonly probe: string;
}

export const voucherCodesProjection: Projection<VoucherCodeDocument> = {
  name: 'voucher_codes',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [{ fields: ['segment_id', 'status', 'probe'] }, { fields: ['gift_id'] }],
  types: typesOf<VoucherCodeEvent['type']>({
    VoucherCodeAdded: true,
    VoucherCodeChanged: true,
    VoucherCodeAssigned: true,
    VoucherCodeWithdrawn: true,
  }),
  documentIds: (event) => [event.stream],
  evolve(document, event, id) {
    const next = voucherCodeAggregate.evolve(
      document === undefined ? { status: 'none' } : stateOf(document),
      event as Recorded<VoucherCodeEvent>,
    );
    if (next.status === 'none') throw new Error(`${event.type} comes before anything was added to ${event.stream}`);
    return {
      segment_id: next.segment_id,
      code: next.code,
      pin: next.pin,
      status: next.status,
      gift_id: next.status === 'assigned' ? next.gift_id : null,
      probe: voucherCodeOfStream(id).hash,
    };
  },
};

function stateOf({ segment_id, code, pin, status, gift_id }: VoucherCodeDocument): VoucherCode {
  return status === 'assigned' && gift_id !== null
    ? { status, segment_id, code, pin, gift_id }
    : { status: status === 'free' ? 'free' : 'withdrawn', segment_id, code, pin };
}

/** A code as of the read: only the code's stream tells whether it is still free. */
export interface PoolCode {
  readonly stream: string;
  readonly code: string;
  readonly pin: string | null;
}

/**
 * Whether the segment has a pool, even an empty one: then no code is ever generated for it. @throws UnavailableError
 */
export async function hasPool(codes: ReadModel<VoucherCodeDocument>, segmentId: string): Promise<boolean> {
  return (await codes.find({ where: { segment_id: segmentId }, limit: 1 })).length > 0;
}

/**
 * The gift's codes from this pool: none, or one without a voucher, if the process ended between the assignments of the
 * code and the voucher. @throws UnavailableError
 */
export async function codesOfGift(
  codes: ReadModel<VoucherCodeDocument>,
  segmentId: string,
  giftId: string,
): Promise<PoolCode[]> {
  return (await codes.find({ where: { gift_id: giftId } }))
    .filter(({ body }) => body.segment_id === segmentId)
    .map(poolCode);
}

/**
 * Free codes, from an offset hashed from the gift's id, and around the pool's end. Concurrent draws of different gifts
 * rarely meet; a repeated draw starts at the same offset. @throws UnavailableError
 */
export async function freeCodes(
  codes: ReadModel<VoucherCodeDocument>,
  segmentId: string,
  giftId: string,
  limit: number,
): Promise<PoolCode[]> {
  const offset = createHash('sha256').update(giftId).digest('base64url').slice(0, 22);
  const free = { segment_id: segmentId, status: 'free' };
  const from = await codes.find({ where: { ...free, probe: { gte: offset } }, sort: [['probe', 1]], limit });
  const rest = limit - from.length;
  const round =
    rest === 0
      ? []
      : await codes.find({ where: { ...free, probe: { lt: offset } }, sort: [['probe', 1]], limit: rest });
  return [...from, ...round].map(poolCode);
}

function poolCode({ id, body }: { readonly id: string; readonly body: VoucherCodeDocument }): PoolCode {
  return { stream: id, code: body.code, pin: body.pin };
}
