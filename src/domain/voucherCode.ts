/**
 * One code of a segment's imported pool (decisions 6). Stream `voucherCode-{segmentId}-{hash}`: the expected revision
 * hands each code out once.
 */
import type { Aggregate, DomainEvent, Happened } from './decider.js';

/** The stream of a code; `hash` is its keyed hash of kind `code`. */
export const voucherCodeStream = (segmentId: string, hash: string): string => `voucherCode-${segmentId}-${hash}`;

/**
 * The segment and the hash that a code's stream name is made of. The hash has a fixed length, so a segment's id may
 * hold dashes.
 */
export function voucherCodeOfStream(stream: string): { segment_id: string; hash: string } {
  return { segment_id: stream.slice('voucherCode-'.length, -23), hash: stream.slice(-22) };
}

/** The code came into the pool, or back into it. Secret: `code`, `pin`. */
export type VoucherCodeAdded = DomainEvent<
  'VoucherCodeAdded',
  { readonly segment_id: string; readonly code: string; readonly pin: string | null }
>;

/** The code's pin was corrected while nobody had it. Secret: `pin`. */
export type VoucherCodeChanged = DomainEvent<'VoucherCodeChanged', { readonly pin: string | null }>;

/** The code is a gift's voucher, for ever. */
export type VoucherCodeAssigned = DomainEvent<'VoucherCodeAssigned', { readonly gift_id: string }>;

/** An import pruned the code before anybody had it; `reason` is what its operator gave. */
export type VoucherCodeWithdrawn = DomainEvent<'VoucherCodeWithdrawn', { readonly reason: string }>;

/** Events of a code's stream. */
export type VoucherCodeEvent = VoucherCodeAdded | VoucherCodeChanged | VoucherCodeAssigned | VoucherCodeWithdrawn;

/** What is known of a code. */
export type VoucherCode =
  | { readonly status: 'none' }
  | {
      readonly status: 'free' | 'withdrawn';
      readonly segment_id: string;
      readonly code: string;
      readonly pin: string | null;
    }
  | {
      readonly status: 'assigned';
      readonly segment_id: string;
      readonly code: string;
      readonly pin: string | null;
      readonly gift_id: string;
    };

/** The fold. */
export const voucherCodeAggregate: Aggregate<VoucherCode, VoucherCodeEvent> = {
  initial: { status: 'none' },
  evolve(state: VoucherCode, event: Happened<VoucherCodeEvent>): VoucherCode {
    if (event.type === 'VoucherCodeAdded') return { status: 'free', ...event.data };
    if (state.status === 'none') return state;
    switch (event.type) {
      case 'VoucherCodeChanged':
        return { ...state, pin: event.data.pin };
      case 'VoucherCodeAssigned':
        return { ...state, status: 'assigned', gift_id: event.data.gift_id };
      case 'VoucherCodeWithdrawn':
        return { ...state, status: 'withdrawn' };
      default:
        return (event satisfies never, state);
    }
  },
};

/** Brings the code into the pool: no event when it is there. A code that a gift has stays as it is. */
export function addVoucherCode(state: VoucherCode, wanted: VoucherCodeAdded['data']): VoucherCodeEvent[] {
  if (state.status === 'none' || state.status === 'withdrawn') return [{ type: 'VoucherCodeAdded', data: wanted }];
  if (state.status === 'assigned' || state.pin === wanted.pin) return [];
  return [{ type: 'VoucherCodeChanged', data: { pin: wanted.pin } }];
}

/**
 * Gives the code to a gift. No event when the gift has it already.
 * @returns `undefined` when the code can't be had: another gift has it, it was withdrawn, or there is none such.
 */
export function assignVoucherCode(state: VoucherCode, giftId: string): VoucherCodeAssigned[] | undefined {
  if (state.status === 'assigned' && state.gift_id === giftId) return [];
  return state.status === 'free' ? [{ type: 'VoucherCodeAssigned', data: { gift_id: giftId } }] : undefined;
}

/** Takes a code that nobody has out of the pool: no event otherwise. */
export function withdrawVoucherCode(state: VoucherCode, reason: string): VoucherCodeWithdrawn[] {
  return state.status === 'free' ? [{ type: 'VoucherCodeWithdrawn', data: { reason } }] : [];
}
