/**
 * One code of a segment's imported pool (docs/api/vouchers.md#voucher-codes). Stream `voucherCode-{segmentId}-{hash}`.
 */
import type { Aggregate, DomainEvent, Happened } from './decider.js';

/** `hash` is the code's keyed hash of kind `code`. */
export const voucherCodeStream = (segmentId: string, hash: string): string => `voucherCode-${segmentId}-${hash}`;

/** A hash has a fixed length, so a segment's id may have dashes. */
export function voucherCodeOfStream(stream: string): { segment_id: string; hash: string } {
  return { segment_id: stream.slice('voucherCode-'.length, -23), hash: stream.slice(-22) };
}

// Events

/** An import added the code, for the first time or again after a withdrawal. Secret: `code`, `pin`. */
export type VoucherCodeAdded = DomainEvent<
  'VoucherCodeAdded',
  { readonly segment_id: string; readonly code: string; readonly pin: string | null }
>;

/** An import changed the PIN of a free code. Secret: `pin`. */
type VoucherCodeChanged = DomainEvent<'VoucherCodeChanged', { readonly pin: string | null }>;

/** The code belongs to this gift for ever. */
type VoucherCodeAssigned = DomainEvent<'VoucherCodeAssigned', { readonly gift_id: string }>;

/** An import pruned the free code. */
type VoucherCodeWithdrawn = DomainEvent<'VoucherCodeWithdrawn', { readonly reason: string }>;

export type VoucherCodeEvent = VoucherCodeAdded | VoucherCodeChanged | VoucherCodeAssigned | VoucherCodeWithdrawn;

// State

export type VoucherCode =
  | { readonly status: 'none' }
  | (VoucherCodeAdded['data'] &
      ({ readonly status: 'free' | 'withdrawn' } | { readonly status: 'assigned'; readonly gift_id: string }));

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

// Decisions

export function addVoucherCode(state: VoucherCode, desired: VoucherCodeAdded['data']): VoucherCodeEvent[] {
  if (state.status === 'none' || state.status === 'withdrawn') return [{ type: 'VoucherCodeAdded', data: desired }];
  if (state.status === 'assigned' || state.pin === desired.pin) return [];
  return [{ type: 'VoucherCodeChanged', data: { pin: desired.pin } }];
}

/** @returns `undefined` when the code is not free */
export function assignVoucherCode(state: VoucherCode, giftId: string): VoucherCodeAssigned[] | undefined {
  if (state.status === 'assigned' && state.gift_id === giftId) return [];
  return state.status === 'free' ? [{ type: 'VoucherCodeAssigned', data: { gift_id: giftId } }] : undefined;
}

export function withdrawVoucherCode(state: VoucherCode, reason: string): VoucherCodeWithdrawn[] {
  return state.status === 'free' ? [{ type: 'VoucherCodeWithdrawn', data: { reason } }] : [];
}
