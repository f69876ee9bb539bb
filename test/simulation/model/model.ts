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
  /** Called after each judge with its name. */
  readonly onJudged?: (judge: string) => void;
}

/** Judges by name, in their order; `undefined` for one that has nothing to judge. */
const judgesOf = (
  history: History,
  { installation, leeway = { clockMs: 1_000 }, alone = false, ledger }: Judgement,
): Readonly<Record<string, (() => Finding[]) | undefined>> => ({
  answers: () => checkAnswers(history, leeway),
  keys: () => checkKeys(history, leeway),
  gifts: () => checkGifts(history, installation, leeway),
  transactions: () => checkTransactions(history, installation, leeway),
  vouchers: () => checkVouchers(history, installation),
  lists: () => checkLists(history, installation, leeway),
  feeds: () => checkFeeds(history, leeway),
  strangers: alone ? () => checkStrangers(history, installation, leeway) : undefined,
  totals: alone ? () => checkTotals(history, installation, leeway) : undefined,
  reconciliations: alone ? () => checkReconciliations(history, installation, leeway) : undefined,
  ledger: ledger === undefined ? undefined : () => checkLedger(history, installation, ledger),
});

/** Everything that is wrong with a history. Empty: the documents explain all of it. */
export function check(history: History, judgement: Judgement): Finding[] {
  return Object.entries(judgesOf(history, judgement)).flatMap(([name, judge]) => {
    const findings = judge?.() ?? [];
    if (judge !== undefined) judgement.onJudged?.(name);
    return findings;
  });
}
