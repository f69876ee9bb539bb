/** A prepaid wallet. Stream `wallet-{reference}`; the reference is the payment method's. Money is pence. */
import type { Aggregate, DomainEvent, Happened } from './decider.js';

export const walletStream = (reference: string): string => `wallet-${reference}`;

// Events

/** The import makes sure that each `top_up_id` counts once. */
export type WalletToppedUp = DomainEvent<'WalletToppedUp', { readonly top_up_id: string; readonly amount: number }>;

export type WalletDebited = DomainEvent<'WalletDebited', { readonly transaction_id: string; readonly amount: number }>;

/** The refusal of a debit is recorded, so that the purchase stays refused after a top-up. */
type WalletDebitRefused = DomainEvent<
  'WalletDebitRefused',
  { readonly transaction_id: string; readonly amount: number }
>;

/** `cause`: id of the refund, or `causeOfDiscard`; each cause credits once. */
export type WalletCredited = DomainEvent<
  'WalletCredited',
  { readonly transaction_id: string; readonly amount: number; readonly cause: string }
>;

export type WalletEvent = WalletToppedUp | WalletDebited | WalletDebitRefused | WalletCredited;

// State

/** Decided debits and credits, the latest first: a linked list, so that adding one takes constant time. */
interface Decided {
  readonly kind: 'debited' | 'refused' | 'credited';
  /** Id of the debited transaction, or cause of the credit. */
  readonly id: string;
  readonly amount: number;
  /** Id of the credited transaction. */
  readonly of?: string;
  readonly earlier: Decided | undefined;
}

export interface Wallet {
  readonly balance: number;
  readonly decided: Decided | undefined;
}

export const walletAggregate: Aggregate<Wallet, WalletEvent> = {
  initial: { balance: 0, decided: undefined },
  evolve(state: Wallet, event: Happened<WalletEvent>): Wallet {
    const { balance, decided: earlier } = state;
    switch (event.type) {
      case 'WalletToppedUp':
        return { balance: balance + event.data.amount, decided: earlier };
      case 'WalletDebited':
        return {
          balance: balance - event.data.amount,
          decided: { kind: 'debited', id: event.data.transaction_id, amount: event.data.amount, earlier },
        };
      case 'WalletDebitRefused':
        return {
          balance,
          decided: { kind: 'refused', id: event.data.transaction_id, amount: event.data.amount, earlier },
        };
      case 'WalletCredited':
        return {
          balance: balance + event.data.amount,
          decided: {
            kind: 'credited',
            id: event.data.cause,
            amount: event.data.amount,
            of: event.data.transaction_id,
            earlier,
          },
        };
      default:
        return (event satisfies never, state);
    }
  },
};

/**
 * `undefined`: the debit is not decided yet. One that a discard of the charge has given back counts as refused: the
 * discard may have been killed before it declined the charge, and a late try must not take it for paid.
 */
export function debitOf(state: Wallet, transactionId: string): 'debited' | 'refused' | undefined {
  const discarded = causeOfDiscard(transactionId);
  for (let one = state.decided; one !== undefined; one = one.earlier) {
    if (one.kind === 'credited' && one.id === discarded) return 'refused';
    if ((one.kind === 'debited' || one.kind === 'refused') && one.id === transactionId) return one.kind;
  }
  return undefined;
}

// Decisions

export function debit(state: Wallet, requested: WalletDebited['data']): (WalletDebited | WalletDebitRefused)[] {
  if (debitOf(state, requested.transaction_id) !== undefined) return [];
  return [{ type: requested.amount > state.balance ? 'WalletDebitRefused' : 'WalletDebited', data: requested }];
}

/** Pence of the transaction's debit that are not credited yet. */
export function leftOf(state: Wallet, transactionId: string): number {
  let left = 0;
  for (let one = state.decided; one !== undefined; one = one.earlier) {
    if (one.kind === 'debited' && one.id === transactionId) return left + one.amount;
    if (one.of === transactionId) left -= one.amount;
  }
  return 0;
}

export function isCredited(state: Wallet, refundId: string): boolean {
  for (let one = state.decided; one !== undefined; one = one.earlier)
    if (one.kind === 'credited' && one.id === refundId) return true;
  return false;
}

/** No event for a repeat, or for an amount that exceeds the rest of the debit. */
export function credit(state: Wallet, requested: WalletCredited['data']): WalletCredited[] {
  if (isCredited(state, requested.cause) || requested.amount > leftOf(state, requested.transaction_id)) return [];
  return [{ type: 'WalletCredited', data: requested }];
}

/** Cause of the credit where the charge of a debited transaction is discarded. */
export const causeOfDiscard = (transactionId: string): string => `discarded-${transactionId}`;

/** Credits a debit that was made; otherwise records its refusal, so that a later one is refused. */
export function giveUpDebit(state: Wallet, requested: WalletDebited['data']): (WalletDebitRefused | WalletCredited)[] {
  const decided = debitOf(state, requested.transaction_id);
  if (decided === 'debited') return credit(state, { ...requested, cause: causeOfDiscard(requested.transaction_id) });
  return decided === undefined ? [{ type: 'WalletDebitRefused', data: requested }] : [];
}
