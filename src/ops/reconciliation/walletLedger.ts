import type { WalletEvent } from '../../domain/wallet.js';
import { causeOfDiscard, walletStream } from '../../domain/wallet.js';
import { type PurchaseEvent, transactionStream } from '../../domain/purchase/events.js';
import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { LedgerEntry, PaymentLedger } from '../../ports/paymentLedger.js';
import { openSpanFeed, type SpanFeed } from '../ranges/spanFeed.js';

const PAGE = 500;

/**
 * The streams of all prepaid wallets as a ledger, on a day (ms since the epoch, end exclusive). Found by its id, a
 * debit that a discard credited has moved nothing, nor has that credit.
 */
export async function walletLedger(
  events: EventStore,
  day: { readonly from: number; readonly to: number },
): Promise<PaymentLedger & Pick<SpanFeed, 'close'>> {
  const feed = await openSpanFeed(events, day, { types: ['WalletDebited', 'WalletCredited'] });
  return {
    provider: 'wallet',
    async *list(_from, to) {
      let page: LedgerEntry[] = [];
      for await (const event of feed.until(to, to === day.to)) {
        page.push(...entriesOf(event));
        if (page.length < PAGE) continue;
        yield page;
        page = [];
      }
      if (page.length > 0) yield page;
    },
    async find(kind, id, transactionId) {
      const [bought] = await events.read(transactionStream(transactionId), { limit: 1 });
      const purchase = bought as Recorded<PurchaseEvent> | undefined;
      if (purchase?.type !== 'GiftsPurchased') return undefined;
      const entries = (await events.read(walletStream(purchase.data.payment_reference))).flatMap(entriesOf);
      const found = entries.find((entry) => entry.kind === kind && entry.id === id);
      const undoing = idOfCredit(causeOfDiscard(transactionId));
      const undone = entries.some((entry) => entry.id === undoing);
      return found === undefined || !undone ? found : { ...found, moved: false, status: 'discarded' };
    },
    close: () => feed.close(),
  };
}

function entriesOf(event: RecordedEvent): LedgerEntry[] {
  const known = event as Recorded<WalletEvent>;
  const common = { currency: 'gbp', at: event.at, moved: true, status: 'booked' };
  if (known.type === 'WalletDebited') {
    const { transaction_id: transactionId, amount } = known.data;
    return [{ kind: 'charge', id: `wallet-${transactionId}`, transactionId, amount, ...common }];
  }
  if (known.type !== 'WalletCredited') return [];
  const { transaction_id: transactionId, amount, cause } = known.data;
  return [{ kind: 'refund', id: idOfCredit(cause), transactionId, amount, ...common }];
}

const idOfCredit = (cause: string): string => `wallet-${cause}`;
