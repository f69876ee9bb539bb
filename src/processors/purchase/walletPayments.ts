/**
 * Pays purchases from prepaid wallets and refunds them there: decided in the wallet's own stream at its expected
 * revision, found again by the transaction or the refund.
 */
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
import { ConflictError, type EventStore } from '../../ports/eventStore.js';
import type { Reason, Writer } from '../runner/writing.js';

/** Wallets kept in memory: one in frequent use is read from its last event on. */
const KEPT = 100;

/** A wallet as last read. */
interface Known {
  readonly wallet: Wallet;
  /** -1: the stream has no event. */
  readonly revision: number;
}

/** Pays from wallets. */
export interface WalletPayments {
  /**
   * Debits once for ever for this transaction. @returns what was decided, now or before.
   * @throws UnavailableError; ConflictError after many lost races.
   */
  pay(reference: string, transactionId: string, amount: number, reason: Reason): Promise<'debited' | 'refused'>;
  /**
   * Credits once for ever for this refund; `refused`: less than that is left of the transaction's debit.
   * @throws UnavailableError; ConflictError after many lost races.
   */
  refund(
    reference: string,
    transactionId: string,
    amount: number,
    refundId: string,
    reason: Reason,
  ): Promise<'credited' | 'refused'>;
}

const ATTEMPTS = 32;

/** Wallets of an event store. */
export function walletPayments(events: EventStore, writer: Writer): WalletPayments {
  const known = new LRUCache<string, Known>({ max: KEPT });
  const queues = new Map<string, Promise<unknown>>();

  const read = async (reference: string): Promise<Known> => {
    const before = known.get(reference) ?? { wallet: walletAggregate.initial, revision: -1 };
    const newer = await events.read(walletStream(reference), { from: before.revision + 1 });
    const now = {
      wallet: fold(walletAggregate, newer, before.wallet),
      revision: newer.at(-1)?.revision ?? before.revision,
    };
    known.set(reference, now);
    return now;
  };

  /** Decides on the wallet as it stands, again after each lost race. `outcomeOf`: what has been decided. */
  const decide = async <T>(
    reference: string,
    reason: Reason,
    outcomeOf: (wallet: Wallet) => T | undefined,
    decision: (wallet: Wallet) => readonly WalletEvent[],
  ): Promise<T | undefined> => {
    let at = await read(reference);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const decided = outcomeOf(at.wallet);
      if (decided !== undefined) return decided;
      const [event] = decision(at.wallet);
      if (event === undefined) return undefined;
      await writer.append(walletStream(reference), event, at.revision < 0 ? 'none' : at.revision, reason);
      // Whether it was appended or another one was first: the stream says what stands.
      at = await read(reference);
    }
    throw new ConflictError(walletStream(reference), at.revision, at.revision);
  };

  /** One at a time within this process: they would only lose races against each other. */
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
        const decided = await decide(
          reference,
          reason,
          (wallet) => debitOf(wallet, transactionId),
          (wallet) => debit(wallet, { transaction_id: transactionId, amount }),
        );
        if (decided === undefined) throw new Error('a wallet decided nothing');
        return decided;
      }),

    refund: (reference, transactionId, amount, refundId, reason) =>
      inTurn(reference, async () => {
        const asked = { transaction_id: transactionId, amount, cause: refundId };
        return (
          (await decide(
            reference,
            reason,
            (wallet) => (isCredited(wallet, refundId) ? 'credited' : undefined),
            (wallet) => credit(wallet, asked),
          )) ?? 'refused'
        );
      }),
  };
}
