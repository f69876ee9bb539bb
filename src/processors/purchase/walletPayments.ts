/** Payments by prepaid wallets. Earlier decisions are found in the wallet's state, so nothing is paid twice. */
import { LRUCache } from 'lru-cache';
import { fold } from '../../domain/decider.js';
import {
  credit,
  debit,
  debitOf,
  isCredited,
  type Wallet,
  walletAggregate,
  type WalletEvent,
  walletStream,
} from '../../domain/wallet.js';
import type { StreamState } from '../../commands/transact.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Reason, StepDeps } from '../runner/index.js';

/** Most wallets held in memory, so that one in frequent use is read only from its last known event on. */
const KEPT = 100;

interface Known {
  readonly wallet: Wallet;
  /** Revision of the last event read; -1: the stream has no event. */
  readonly revision: number;
}

export interface WalletPayments {
  /** @returns the decision, made now or earlier @throws UnavailableError; ConflictError after many lost races */
  pay(reference: string, transactionId: string, amount: number, reason: Reason): Promise<'debited' | 'refused'>;
  /** `refused`: less than the amount is left of the transaction's debit. @throws as `pay` */
  refund(
    reference: string,
    transactionId: string,
    amount: number,
    refundId: string,
    reason: Reason,
  ): Promise<'credited' | 'refused'>;
}

export function walletPayments(events: EventStore, writer: StepDeps['writer']): WalletPayments {
  const known = new LRUCache<string, Known>({ max: KEPT });
  const queues = new Map<string, Promise<unknown>>();

  const read = async (reference: string): Promise<StreamState<Wallet>> => {
    const stream = walletStream(reference);
    const before = known.get(reference) ?? { wallet: walletAggregate.initial, revision: -1 };
    const newer = await events.read(stream, { from: before.revision + 1 });
    const wallet = fold(walletAggregate, newer, before.wallet);
    const revision = newer.at(-1)?.revision ?? before.revision;
    known.set(reference, { wallet, revision });
    // The history is left out, since earlier decisions are found in the state.
    return { stream, state: wallet, history: [], revision: revision < 0 ? 'none' : revision };
  };

  const decide = async (
    reference: string,
    reason: Reason,
    decision: (wallet: Wallet) => readonly WalletEvent[],
  ): Promise<Wallet> => {
    const source = { kind: 'wallet', read: async () => read(reference) };
    const { own, state } = await writer.transact(source, reason, decision);
    const last = own.at(-1);
    if (last === undefined) return state;
    const wallet = fold(walletAggregate, own, state);
    known.set(reference, { wallet, revision: last.revision });
    return wallet;
  };

  /** Runs the decisions on one wallet one after the other: concurrent ones would only lose races. */
  const inTurn = async <T>(reference: string, run: () => Promise<T>): Promise<T> => {
    const own = (queues.get(reference) ?? Promise.resolve()).then(run, run);
    queues.set(reference, own);
    try {
      return await own;
    } finally {
      if (queues.get(reference) === own) queues.delete(reference);
    }
  };

  return {
    pay: (reference, transactionId, amount, reason) =>
      inTurn(reference, async () => {
        const requested = { transaction_id: transactionId, amount };
        const decided = debitOf(await decide(reference, reason, (wallet) => debit(wallet, requested)), transactionId);
        if (decided === undefined) throw new Error('a wallet decided nothing');
        return decided;
      }),

    refund: (reference, transactionId, amount, refundId, reason) =>
      inTurn(reference, async () => {
        const requested = { transaction_id: transactionId, amount, cause: refundId };
        const wallet = await decide(reference, reason, (found) => credit(found, requested));
        return isCredited(wallet, refundId) ? 'credited' : 'refused';
      }),
  };
}
