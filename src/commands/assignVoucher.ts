/** One voucher per gift, whatever its format (docs/api/vouchers.md#one-voucher-per-gift). */
import type { Segment } from '../domain/catalogue.js';
import type { VoucherAssigned } from '../domain/gift/events.js';
import { assignVoucher, refuseNewVoucher, refuseUnlessMayHaveVoucher } from '../domain/gift/decisions.js';
import { Refusal } from '../domain/refusal.js';
import { PINS, V1_INTEGRATIONS, generateCode, pinOf, voucherExpiry } from '../domain/voucher.js';
import { randomBytes, randomInt } from '../lib/world.js';
import type { UserDocument } from '../projections/accounts.js';
import type { Catalogue } from '../projections/catalogue/wholeCatalogue.js';
import type { CodePool } from './codePool.js';
import { idFrom } from './commandIds.js';
import type { CommandContext, Transacted } from './transact.js';
import { type GiftDeps, type LoadedGift, handleGift } from './loadGift.js';

export interface VoucherDeps extends GiftDeps {
  readonly pool: CodePool;
}

/** `segmentId` absent: the product's first segment. */
interface VoucherRequest {
  readonly format: 'V1' | 'V2';
  readonly segmentId?: string;
}

/**
 * A gift keeps its voucher, whatever its product and brand offer today.
 * @throws Refusal `cannot_redeem`, `staff_receives_no_gifts`; `voucher_not_available`, `invalid_segment`; as
 * `refuseUnlessUsable`; UnavailableError
 */
export async function assignGiftVoucher(
  deps: VoucherDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
  request: VoucherRequest,
): Promise<Transacted> {
  return handleGift(deps, loaded, user, context, async (gift, facts) => {
    refuseUnlessMayHaveVoucher(gift, facts);
    const catalogue = deps.catalogue.current();
    if (gift.voucher !== undefined) {
      // The product may have lost the segment since: only an id that never was a segment is refused.
      if (request.segmentId !== undefined && !catalogue.segments.has(request.segmentId))
        throw new Refusal('invalid_segment', 'segmentId');
      return [];
    }
    const [first = ''] = segmentsFor(catalogue, gift.issued, request);
    const segment = catalogue.segments.get(request.segmentId ?? first);
    if (segment === undefined) throw new Refusal('voucher_not_available');
    refuseNewVoucher(gift, facts);
    const drawn = (await deps.pool.draw(segment.id, loaded.giftId, context)) ?? generated(segment);
    const voucher: VoucherAssigned['data'] = {
      voucher_id: idFrom(context.commandId, 'voucher'),
      ...drawn,
      segment_id: segment.id,
      expires_at: voucherExpiry(facts.now, gift.issued.expires_on, segment.expiry),
    };
    return assignVoucher(gift, facts, voucher);
  });
}

/** @throws Refusal `voucher_not_available`, `invalid_segment` */
function segmentsFor(
  catalogue: Catalogue,
  gift: { readonly product_id: string; readonly brand_id: string },
  request: VoucherRequest,
): readonly string[] {
  if (request.format === 'V1' && !V1_INTEGRATIONS.has(catalogue.brandOf(gift)?.integration_id ?? ''))
    throw new Refusal('voucher_not_available');
  const live = (catalogue.products.get(gift.product_id)?.segments ?? []).filter(
    (id) => !catalogue.retired('segment', id),
  );
  if (request.segmentId !== undefined && !live.includes(request.segmentId))
    throw new Refusal('invalid_segment', 'segmentId');
  return live;
}

function generated(segment: Segment): { code: string; pin: string | null } {
  const pin = segment.voucherType === 'alpha/pin' ? pinOf(randomInt(PINS)) : null;
  return { code: generateCode(randomBytes(12)), pin };
}
