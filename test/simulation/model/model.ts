/** The oracle of the simulation: what of a history no document allows. */
import { checkAnswers } from './answers.js';
import { checkFeeds } from './feed.js';
import type { Finding, Leeway } from './finding.js';
import { checkGifts } from './giftHistory.js';
import type { History } from './history.js';
import type { Installation } from './installation.js';
import { checkKeys } from './keys.js';
import { type LedgerEntry, checkLedger, checkReconciliations } from './ledger.js';
import { checkLists, checkStrangers } from './lists.js';
import { checkTotals } from './totals.js';
import { checkTransactions } from './transactions.js';
import { checkVouchers } from './vouchers.js';

export type { Finding } from './finding.js';
export type { LedgerEntry } from './ledger.js';

/** What a history is held against. */
export interface Judgement {
  readonly installation: Installation;
  /** Default: clocks that differ by a second, and no time from which on all is quiet. */
  readonly leeway?: Leeway;
  /** Whether nobody else bought or redeemed anything: then totals, ledgers and lists hold nothing but what clients did. */
  readonly alone?: boolean;
  /** What the payment providers have booked once all is quiet, if it is known. */
  readonly ledger?: readonly LedgerEntry[];
}

/** Everything that is wrong with a history. Empty: the documents explain all of it. */
export function check(
  history: History,
  { installation, leeway = { clockMs: 1_000 }, alone = false, ledger }: Judgement,
): Finding[] {
  return [
    ...checkAnswers(history, leeway),
    ...checkKeys(history, leeway),
    ...checkGifts(history, installation, leeway),
    ...checkTransactions(history, installation, leeway),
    ...checkVouchers(history, installation),
    ...checkLists(history, installation, leeway),
    ...checkFeeds(history, leeway),
    ...(alone ? checkStrangers(history, installation, leeway) : []),
    ...(alone ? checkTotals(history, installation, leeway) : []),
    ...(alone ? checkReconciliations(history, installation, leeway) : []),
    ...(ledger === undefined ? [] : checkLedger(history, installation, ledger)),
  ];
}
