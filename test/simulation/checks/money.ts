/** The log and the payment provider agree on all money, once the service has had time to finish its work. */
import type { GiftsPurchased, PaymentCharged } from '../../../src/domain/purchase/events.js';
import { idOf } from '../../../src/domain/streamName.js';
import type { WalletCredited, WalletDebited } from '../../../src/domain/wallet.js';
import type { ChargeReply, RefundReply } from '../../../src/messages/payments.js';
import { type GiftsRefunded, lateChargeRefundId, type RefundRequested } from '../../../src/domain/purchase/refund.js';
import { CHARGE_PREFIX, PROVIDER, REFUND_PREFIX } from '../../../src/providers/payments/simulated.js';
import type { EventLog } from '../engines/eventLog.js';
import type { RecordRows } from '../engines/records.js';
import type { Finding } from '../model/finding.js';
import type { LedgerEntry } from '../model/ledger.js';
import { entriesOf, madeByHand } from '../service/paymentAccount.js';
import { parkedEntities, waitingEntities } from './parked.js';

export function checkMoney(log: Pick<EventLog, 'stored'>, ledger: RecordRows): Finding[] {
  return [...checkCharges(log, ledger), ...checkRefunds(log, ledger)];
}

function checkCharges({ stored }: Pick<EventLog, 'stored'>, ledger: RecordRows): Finding[] {
  const findings: Finding[] = [];
  const found = (text: string): void => void findings.push({ rule: 'money', text });
  const charged = new Map<string, PaymentCharged['data']>();
  const settled = new Set<string>();
  const parked = parkedEntities({ stored });
  const waiting = waitingEntities({ stored });
  for (const { stream, type, data } of stored) {
    if (type === 'PaymentCharged') charged.set(idOf(stream), JSON.parse(data) as PaymentCharged['data']);
    if (type === 'PaymentCharged' || type === 'PaymentDeclined') settled.add(idOf(stream));
  }
  for (const { type, stream, data } of stored) {
    if (type !== 'GiftsPurchased') continue;
    const id = idOf(stream);
    const { total, replaces } = JSON.parse(data) as GiftsPurchased['data'];
    if (!settled.has(id) && !waiting.has(id)) found(`the purchase ${id} is neither charged nor declined`);
    const amount = charged.get(id)?.amount;
    if (replaces === undefined && amount !== undefined && amount !== total)
      found(`the purchase ${id} cost ${total} and was charged ${amount}`);
  }
  const taken = new Set<string>();
  for (const [id, entry] of entriesOf<ChargeReply>(ledger, CHARGE_PREFIX)) {
    if (entry.outcome !== 'charged') continue;
    taken.add(id);
    const here = charged.get(id);
    if (here === undefined) {
      // What became of a parked charge, a person finds out.
      if (!parked.has(id)) found(`the provider charged ${id}, and the log does not know it`);
    } else if (here.charge_id !== entry.charge_id || here.amount !== entry.amount)
      found(
        `the provider charged ${id} ${entry.amount} as ${entry.charge_id}, the log ${here.amount} as ${here.charge_id}`,
      );
  }
  for (const [id, { provider, amount }] of charged)
    if (provider === PROVIDER && amount > 0 && !taken.has(id)) found(`the provider does not know the charge of ${id}`);
  return findings;
}

/** What the provider and the prepaid wallets have booked, for the model. */
export function bookedBy({ stored }: Pick<EventLog, 'stored'>, ledger: RecordRows): LedgerEntry[] {
  return [
    ...entriesOf<ChargeReply>(ledger, CHARGE_PREFIX).flatMap(([transaction, { outcome, amount = 0 }]): LedgerEntry[] =>
      outcome === 'charged' ? [{ kind: 'charge', transaction, pence: amount }] : [],
    ),
    ...entriesOf<RefundReply>(ledger, REFUND_PREFIX).flatMap(([, entry]): LedgerEntry[] =>
      entry.outcome === 'refunded'
        ? [{ kind: 'refund', transaction: entry.transaction_id ?? '', pence: entry.amount ?? 0 }]
        : [],
    ),
    ...stored.flatMap(({ type, data }): LedgerEntry[] => {
      if (type !== 'WalletDebited' && type !== 'WalletCredited') return [];
      const { transaction_id, amount } = JSON.parse(data) as (WalletDebited | WalletCredited)['data'];
      return [{ kind: type === 'WalletDebited' ? 'charge' : 'refund', transaction: transaction_id, pence: amount }];
    }),
  ];
}

/** Types of events that end a refund, or wait for a person. */
const REFUND_ENDS = new Set(['GiftsRefunded', 'NothingRefunded', 'RefundRefused']);

function checkRefunds({ stored }: Pick<EventLog, 'stored'>, ledger: RecordRows): Finding[] {
  const findings: Finding[] = [];
  const found = (text: string): void => void findings.push({ rule: 'refunds', text });
  const ended = new Set<string>();
  const parked = parkedEntities({ stored });
  const refunded = new Map<string, GiftsRefunded['data']>();
  const sums = new Map<string, number>();
  const redeemed = new Set<string>();
  const prices = new Map<string, number>();
  const byHand = byHandIn(stored);
  for (const { stream, type, data } of stored) {
    if (type === 'GiftsPurchased') prices.set(idOf(stream), (JSON.parse(data) as GiftsPurchased['data']).sale_price);
    if (type === 'PaymentCharged') add(sums, idOf(stream), (JSON.parse(data) as PaymentCharged['data']).amount);
    if (REFUND_ENDS.has(type)) ended.add((JSON.parse(data) as { readonly refund_id: string }).refund_id);
    if (type === 'GiftRedeemed') redeemed.add(idOf(stream));
    if (type === 'GiftUnredeemed') redeemed.delete(idOf(stream));
    if (type !== 'GiftsRefunded') continue;
    const refund = JSON.parse(data) as GiftsRefunded['data'];
    if (refunded.has(refund.refund_ref)) found(`the refund ${refund.refund_ref} is in the log twice`);
    refunded.set(refund.refund_ref, refund);
    // What was charged after a decline bought nothing.
    if (refund.refund_id.startsWith(lateChargeRefundId(''))) continue;
    add(sums, idOf(stream), -refund.amount);
    const price = refund.gift_ids.length * (prices.get(idOf(stream)) ?? 0);
    if (refund.amount !== price)
      found(`the refund ${refund.refund_ref} gave ${refund.amount} back, of gifts of ${price}`);
  }
  for (const { stream, type, data } of stored) {
    if (type !== 'RefundRequested') continue;
    const { refund_id: refund } = JSON.parse(data) as RefundRequested['data'];
    if (!ended.has(refund) && !parked.has(refund))
      found(`the refund ${refund} of ${stream} was requested, and has not ended`);
  }
  for (const { refund_ref: ref, gift_ids: gifts } of refunded.values())
    for (const gift of gifts) if (redeemed.has(gift)) found(`the gift ${gift} is redeemed, and refunded by ${ref}`);
  for (const [id, amount] of byHand) add(sums, id, -amount);
  for (const [id, left] of sums) if (left < 0) found(`the purchase ${id} was refunded ${-left} more than charged`);
  const given = new Set<string>();
  for (const [, entry] of entriesOf<RefundReply>(ledger, REFUND_PREFIX)) {
    if (entry.outcome !== 'refunded') continue;
    given.add(entry.refund_ref);
    const here = refunded.get(entry.refund_ref);
    if (here?.amount !== entry.amount)
      found(`the provider gave back ${entry.amount} by ${entry.refund_ref}, the log says ${here?.amount}`);
  }
  for (const [ref, { provider, amount }] of refunded)
    if (provider === PROVIDER && amount > 0 && !given.has(ref)) found(`the provider does not know the refund ${ref}`);
  return findings;
}

/** What was given back by hand is in the log. To be called once the provider has reported all of it. */
export function checkByHand({ stored }: Pick<EventLog, 'stored'>, ledger: RecordRows): Finding[] {
  const byHand = byHandIn(stored);
  const charged = stored.flatMap(({ stream, type }) => (type === 'PaymentCharged' ? [idOf(stream)] : []));
  return [...new Set([...charged, ...byHand.keys()])].flatMap((id) => {
    const [here, there] = [byHand.get(id) ?? 0, madeByHand(ledger, id)];
    const text = `${there} of the purchase ${id} were given back by hand, the log says ${here}`;
    return here === there ? [] : [{ rule: 'refunds', text }];
  });
}

/** Pence by transaction. */
function byHandIn(stored: EventLog['stored']): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { stream, type, data } of stored)
    if (type === 'RefundedAtProvider') add(sums, idOf(stream), (JSON.parse(data) as { amount: number }).amount);
  return sums;
}

function add(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}
