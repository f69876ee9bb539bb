/** Codes of a segment's imported pool; each goes to one gift (docs/api/vouchers.md#voucher-codes). */
import { Refusal } from '../domain/refusal.js';
import {
  assignVoucherCode,
  voucherCodeAggregate,
  type VoucherCodeAdded,
  voucherCodeOfStream,
  voucherCodeStream,
} from '../domain/voucherCode.js';
import type { EventStore } from '../ports/eventStore.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import {
  type PoolCode,
  type VoucherCodeDocument,
  codesOfGift,
  freeCodes,
  hasPool,
} from '../projections/voucherCodes.js';
import { type CommandContext, transact } from './transact.js';

/** Number of free codes read per round. If other draws take all of them, another round follows. */
const CANDIDATES = 20;
const ROUNDS = 50;
const ADDED = 'VoucherCodeAdded' satisfies VoucherCodeAdded['type'];

/** A code drawn for a gift. Both fields are secret. */
interface DrawnCode {
  readonly code: string;
  readonly pin: string | null;
}

export interface CodePool {
  /**
   * The code of an earlier attempt for this gift, else a free one. `undefined`: the segment has no pool.
   * @throws Refusal `voucher_not_available` when the pool is empty; what `mayTake` throws; UnavailableError
   */
  draw(segmentId: string, giftId: string, context: CommandContext): Promise<DrawnCode | undefined>;
}

/**
 * @param mayTake throws where no free code may be given out: another log may have given it
 * (docs/design.md#outward-work)
 */
export function codePool(
  events: EventStore,
  codes: ReadModel<VoucherCodeDocument>,
  mayTake: () => void = () => undefined,
): CodePool {
  /**
   * Two draws for one gift try the same codes in the same order, so both get the first free one. The PIN is the
   * stream's: an import may have changed it since the read model was read.
   */
  const take = async (
    { stream, code }: PoolCode,
    giftId: string,
    context: CommandContext,
  ): Promise<DrawnCode | undefined> => {
    let isFree = true;
    const { state } = await transact(events, voucherCodeAggregate, stream, context, (found) => {
      const assigned = assignVoucherCode(found, giftId);
      isFree = assigned !== undefined;
      return assigned ?? [];
    });
    return isFree && state.status !== 'none' ? { code, pin: state.pin } : undefined;
  };
  /** Codes that were imported just now may be in the log only, and a generated code would stay the gift's for good. */
  const isPooled = async (segmentId: string): Promise<boolean> => {
    const folded = await codes.folded();
    if (await hasPool(codes, segmentId)) return true;
    const filter = { types: [ADDED], streams: [voucherCodeStream(segmentId, '')] };
    for await (const batch of events.readAll(folded, filter))
      if (batch.events.some(({ stream }) => voucherCodeOfStream(stream).segment_id === segmentId)) return true;
    return false;
  };
  return {
    async draw(segmentId, giftId, context) {
      for (let round = 0; round < ROUNDS; round++) {
        // Free codes are read first: a code that another draw for this gift takes concurrently is then in one of the
        // two lists.
        const candidates = await freeCodes(codes, segmentId, giftId, CANDIDATES);
        const [own] = await codesOfGift(codes, segmentId, giftId);
        if (own !== undefined) return { code: own.code, pin: own.pin };
        if (candidates.length === 0) {
          if (await isPooled(segmentId)) break;
          return undefined;
        }
        mayTake();
        for (const candidate of candidates) {
          const taken = await take(candidate, giftId, context);
          if (taken !== undefined) return taken;
        }
      }
      throw new Refusal('voucher_not_available');
    },
  };
}
