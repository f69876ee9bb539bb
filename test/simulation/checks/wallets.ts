/** Prepaid wallets: each decision is made once, no balance is below zero, and the purchases say the same. */
import type { PaymentCharged } from '../../../src/domain/purchase/events.js';
import type { GiftsRefunded } from '../../../src/domain/purchase/refund.js';
import { idOf } from '../../../src/domain/streamName.js';
import { type WalletEvent, walletStream } from '../../../src/domain/wallet.js';
import type { EventLog, StoredEvent } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';
import { parkedEntities } from './parked.js';

const PREFIX = walletStream('');

/** Amounts in pence: debits by transaction, credits by their cause. */
interface Moved {
  readonly debits: Map<string, number>;
  readonly credits: Map<string, number>;
}

export function checkWallets(log: Pick<EventLog, 'stored'>): Finding[] {
  const findings: Finding[] = [];
  const found = (text: string): void => void findings.push({ rule: 'wallets', text });
  const moved = movedIn(log.stored, found);
  const parked = parkedEntities(log);
  const charged = new Map<string, number>();
  const refunded = new Map<string, number>();
  for (const { stream, type, data } of log.stored) {
    if (type === 'PaymentCharged') {
      const { provider, amount } = JSON.parse(data) as PaymentCharged['data'];
      if (provider === 'wallet') charged.set(idOf(stream), amount);
    }
    if (type === 'GiftsRefunded') {
      const { provider, refund_id, amount } = JSON.parse(data) as GiftsRefunded['data'];
      if (provider === 'wallet') refunded.set(refund_id, amount);
    }
  }
  const compare = (what: string, wallet: Map<string, number>, purchase: Map<string, number>): void => {
    for (const id of new Set([...wallet.keys(), ...purchase.keys()]))
      if (wallet.get(id) !== purchase.get(id) && !parked.has(id))
        found(`the wallet has ${wallet.get(id)} as the ${what} ${id}, the purchase ${purchase.get(id)}`);
  };
  compare('debit of', moved.debits, charged);
  compare('credit of', moved.credits, refunded);
  return findings;
}

function movedIn(stored: readonly StoredEvent[], found: (text: string) => void): Moved {
  const [debits, credits] = [new Map<string, number>(), new Map<string, number>()];
  const balances = new Map<string, number>();
  const decided = new Set<string>();
  for (const { stream, type, data } of stored) {
    if (!stream.startsWith(PREFIX)) continue;
    const event = { type, data: JSON.parse(data) as object } as WalletEvent;
    const { amount } = event.data;
    const decision = decisionOf(event);
    if (decided.has(decision)) found(`${stream}: ${decision} was decided twice`);
    decided.add(decision);
    if (event.type === 'WalletDebited') debits.set(event.data.transaction_id, amount);
    if (event.type === 'WalletCredited') credits.set(event.data.cause, amount);
    const change = { WalletToppedUp: amount, WalletCredited: amount, WalletDebited: -amount, WalletDebitRefused: 0 };
    const balance = (balances.get(stream) ?? 0) + change[event.type];
    balances.set(stream, balance);
    if (balance < 0) found(`${stream}: ${decision} leaves ${balance}`);
    if (event.type === 'WalletDebitRefused' && amount <= balance)
      found(`${stream}: ${decision} of ${amount} was refused, with ${balance} left`);
  }
  return { debits, credits };
}

/** A debit and its refusal are the same decision. */
function decisionOf({ type, data }: WalletEvent): string {
  switch (type) {
    case 'WalletToppedUp':
      return `top-up ${data.top_up_id}`;
    case 'WalletCredited':
      return `credit ${data.cause}`;
    default:
      return `debit ${data.transaction_id}`;
  }
}
