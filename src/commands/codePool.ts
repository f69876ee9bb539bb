/** Draws voucher codes from a segment's imported pool; each code goes to one gift (docs/decisions.md#voucher-codes). */
import { Refusal } from '../domain/refusal.js';
import { assignVoucherCode, voucherCodeAggregate } from '../domain/voucherCode.js';
import type { EventStore } from '../ports/eventStore.js';
import type { ReadModel } from '../runtime/readmodels/readModel.js';
import {
  type PoolCode,
  type VoucherCodeDocument,
  codesOfGift,
  freeCodes,
  hasPool,
} from '../projections/voucherCodes.js';
import type { CommandContext } from './context.js';
import { transact } from './transact.js';

/** Free codes that are looked at in one round; another round follows where others took all of them meanwhile. */
const CANDIDATES = 20;
const ROUNDS = 50;

/** A code as a voucher keeps it. Secret. */
export interface DrawnCode {
  readonly code: string;
  readonly pin: string | null;
}

/** The imported pools. */
export interface CodePool {
  /**
   * A code of the segment's pool for this gift: that of an earlier attempt, where there was one. `undefined`: the
   * segment has no pool.
   * @throws Refusal `voucher_not_available` when the pool is empty; UnavailableError
   */
  draw(segmentId: string, giftId: string, context: CommandContext): Promise<DrawnCode | undefined>;
}

/** The pools of this log. */
export function codePool(events: EventStore, codes: ReadModel<VoucherCodeDocument>): CodePool {
  /** Two draws for one gift look at the same codes in the same order, so both get the first free one. */
  const take = async (candidate: PoolCode, giftId: string, context: CommandContext): Promise<boolean> => {
    let taken = true;
    await transact(events, voucherCodeAggregate, candidate.stream, context, (code) => {
      const assigned = assignVoucherCode(code, giftId);
      taken = assigned !== undefined;
      return assigned ?? [];
    });
    return taken;
  };
  return {
    async draw(segmentId, giftId, context) {
      for (let round = 0; round < ROUNDS; round++) {
        // Free codes first: what another draw for this gift takes meanwhile is among them, or among the gift's own.
        const candidates = await freeCodes(codes, segmentId, giftId, CANDIDATES);
        const [own] = await codesOfGift(codes, segmentId, giftId);
        if (own !== undefined) return { code: own.code, pin: own.pin };
        if (candidates.length === 0) {
          if (await hasPool(codes, segmentId)) break;
          return undefined;
        }
        for (const candidate of candidates)
          if (await take(candidate, giftId, context)) return { code: candidate.code, pin: candidate.pin };
      }
      throw new Refusal('voucher_not_available');
    },
  };
}
