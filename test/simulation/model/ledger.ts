/**
 * Money: the payment provider's ledger holds one charge for each purchase that was paid for and one refund for each that
 * was accepted, to the penny, and nothing that no request explains.
 */
import type { Finding, Leeway } from './finding.js';
import { type History, describe, field, grouped, listField, toldBy } from './history.js';
import type { Installation } from './installation.js';
import { type KnownPurchase, purchasesOf } from './purchases.js';
import { type KnownRefund, refundsOf } from './refunds.js';
import { giftCount } from './transactions.js';

/** What a payment provider has booked. */
export interface LedgerEntry {
  readonly kind: 'charge' | 'refund';
  readonly transaction: string;
  readonly pence: number;
}

const pounds = (pence: number): string => `£${(pence / 100).toFixed(2)}`;
const show = ({ kind, transaction, pence }: LedgerEntry): string => `${kind} of ${pounds(pence)} for ${transaction}`;
const finding = (text: string): Finding => ({ rule: 'ledger', text });

/** Pence. */
export const totalOf = (purchase: KnownPurchase): number => purchase.product.price * giftCount(purchase);

/** Purchases that a ledger has. */
function bookedPurchases(history: History, installation: Installation): KnownPurchase[] {
  return [...purchasesOf(history, installation).values()].filter(
    ({ operation }) => installation.payments.get(operation.payment)?.booked === true,
  );
}

/** Findings about the provider's ledger, as it is once nothing is written any more. */
export function checkLedger(history: History, installation: Installation, ledger: readonly LedgerEntry[]): Finding[] {
  const purchases = bookedPurchases(history, installation);
  const refunds = grouped(refundsOf(history), ({ transaction }) => transaction);
  const booked = grouped(ledger, ({ kind, transaction }) => `${kind} ${transaction}`);
  const findings = purchases.flatMap((purchase) => {
    const { transaction } = purchase;
    if (transaction === undefined) return [];
    return [
      ...checkCharges(purchase, booked.get(`charge ${transaction}`) ?? []),
      ...checkRefunds(purchase, booked.get(`refund ${transaction}`) ?? [], refunds.get(transaction) ?? []),
    ];
  });
  return [...findings, ...checkStrangers(purchases, ledger)];
}

function checkCharges(purchase: KnownPurchase, charges: readonly LedgerEntry[]): Finding[] {
  const { order, transaction, charged, declined } = purchase;
  const name = `Purchase ${order}, transaction ${transaction}, of ${pounds(totalOf(purchase))}`;
  const booked = charges.map(show).join('; ');
  if (declined !== undefined && charges.length > 0) return [finding(`${name}, was declined, and charged: ${booked}`)];
  if (charged !== undefined && charges.length === 0) return [finding(`${name}, was paid for, and never charged.`)];
  if (charges.length > 1) return [finding(`${name}, was charged ${charges.length} times: ${booked}`)];
  const wrong = charges.filter(({ pence }) => pence !== totalOf(purchase));
  return wrong.length === 0 ? [] : [finding(`${name}, was charged another amount: ${booked}`)];
}

/** Each refund that was accepted is booked once; of those without an answer, some may be. */
function checkRefunds(
  purchase: KnownPurchase,
  booked: readonly LedgerEntry[],
  refunds: readonly KnownRefund[],
): Finding[] {
  const name = `Purchase ${purchase.order}, transaction ${purchase.transaction}`;
  const left = [...booked];
  const findings: Finding[] = [];
  const take = (amount: number): boolean => {
    const index = left.findIndex(({ pence }) => pence === amount);
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  };
  for (const { gifts, amount, accepted, text } of refunds) {
    const due = purchase.product.price * (gifts?.length ?? 0);
    if (gifts !== undefined && amount !== due)
      findings.push(finding(`${name}: a refund of ${gifts.length} gifts is ${pounds(due)}.\n${text}`));
    if (accepted && gifts !== undefined && gifts.length > 0 && !take(amount))
      findings.push(finding(`${name}: a refund was accepted, and never booked.\n${text}`));
  }
  for (const { accepted, gifts, amount } of refunds) if (!accepted && gifts !== undefined && amount > 0) take(amount);
  const open = refunds.filter(({ gifts }) => gifts === undefined);
  for (const { requested } of open) {
    const most = requested.length === 0 ? giftCount(purchase) : requested.length;
    const index = left.findIndex(
      ({ pence }) => pence % purchase.product.price === 0 && pence <= most * purchase.product.price,
    );
    if (index >= 0) left.splice(index, 1);
  }
  if (left.length > 0) findings.push(finding(`${name}: no request explains ${left.map(show).join('; ')}.`));
  const back = booked.reduce((sum, { pence }) => sum + pence, 0);
  if (back > totalOf(purchase))
    findings.push(finding(`${name}: ${pounds(back)} went back of ${pounds(totalOf(purchase))}.`));
  return findings;
}

/** A charge for a transaction that no answer named belongs to a purchase whose outcome nobody knows. */
function checkStrangers(purchases: readonly KnownPurchase[], ledger: readonly LedgerEntry[]): Finding[] {
  const known = new Set(purchases.map(({ transaction }) => transaction));
  const unknown = purchases.filter(
    ({ transaction, requests }) => transaction === undefined && requests.some((one) => toldBy(one) === undefined),
  );
  const amounts = unknown.map(totalOf);
  const seen = new Set<string>();
  return ledger.flatMap((entry) => {
    if (known.has(entry.transaction)) return [];
    const index = amounts.indexOf(entry.pence);
    if (entry.kind === 'refund' || index < 0 || seen.has(entry.transaction))
      return [finding(`No request explains ${show(entry)}.`)];
    seen.add(entry.transaction);
    amounts.splice(index, 1);
    return [];
  });
}

/** The service's own comparison with its providers finds nothing, and counts what clients saw. */
export function checkReconciliations(
  history: History,
  installation: Installation,
  { quietFrom = Infinity }: Leeway,
): Finding[] {
  const purchases = bookedPurchases(history, installation);
  const transactions = new Set(purchases.map(({ transaction }) => transaction));
  const refunds = refundsOf(history).filter(({ transaction }) => transactions.has(transaction));
  return history.flatMap((observation, index) => {
    const { operation, sent } = observation;
    const answer = toldBy(observation);
    if (operation.kind !== 'reconcile' || sent < quietFrom || answer?.status !== 200) return [];
    // Purchases of another day are in another comparison.
    if (purchases.some(({ boughtOn }) => boughtOn !== undefined && boughtOn !== operation.day)) return [];
    const line = describe(observation, index);
    const providers = listField(answer.body, 'ledgers');
    const sum = (name: string): number =>
      providers.reduce<number>((all, one) => all + Number(field(one, 'there', name) ?? 0), 0);
    const paid = purchases.filter(({ charged, product }) => charged !== undefined && product.price > 0);
    const least = {
      charges: paid.length,
      charged: paid.reduce((all, one) => all + totalOf(one), 0),
      refunds: refunds.filter(({ accepted, amount }) => accepted && amount > 0).length,
      refunded: refunds.reduce((all, one) => all + (one.accepted ? one.amount : 0), 0),
    };
    const open = purchases.filter(({ charged, declined }) => charged === undefined && declined === undefined);
    const openRefunds = refunds.filter(({ accepted, gifts }) => !accepted && gifts?.length !== 0);
    const most = {
      charges: least.charges + open.length,
      charged: least.charged + open.reduce((all, one) => all + totalOf(one), 0),
      refunds: least.refunds + openRefunds.length,
      refunded: openRefunds.length === 0 ? least.refunded : least.charged,
    };
    const wrong = (Object.keys(least) as (keyof typeof least)[]).filter(
      (name) => !(sum(name) >= least[name] && sum(name) <= most[name]),
    );
    return [
      ...(field(answer.body, 'differences') === 0 ? [] : [finding(`The ledgers differ.\n${line}`)]),
      ...wrong.map((name) => finding(`Clients saw ${name} of ${least[name]}, the ledgers have ${sum(name)}.\n${line}`)),
    ];
  });
}
