import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { PaymentLedger, LedgerEntry } from '../../ports/paymentLedger.js';
import type { ProviderSettings } from '../../providers/settings.js';
import { type Day, type Difference, reconcile, type Reconciled, type Sums } from './reconcile.js';
import { timeZone, TimeError } from '../ranges/times.js';
import { type WalletEvent, causeOfDiscard, walletStream } from '../../domain/wallet.js';
import { type PurchaseEvent, transactionStream } from '../../domain/purchase/events.js';
import { openSpanFeed, type SpanFeed } from '../ranges/spanFeed.js';

const DAY = /^\d{4}-\d\d-\d\d$/;
const SIMULATED_RETAINED_MS = 48 * 3_600_000;

interface ReconcileDeps {
  readonly events: EventStore;
  readonly ledger: PaymentLedger;
}

export interface ReconciledDay extends Day {
  /** Day of the calendar, `YYYY-MM-DD`. */
  readonly day: string;
  readonly timeZone: string;
}

export interface DayReport {
  readonly ledgers: readonly Reconciled[];
  /** The log's sums of providers without a ledger: invoices, or a provider that is no longer set. */
  readonly uncompared: readonly (Sums & { readonly provider: string })[];
}

/** Bounds of a day. A day that is not over ends at `now` (ms since the epoch). @throws TimeError */
export function dayOf(
  text: string,
  zone: string,
  { now, settings }: { readonly now: number; readonly settings: Pick<ProviderSettings, 'payments'> },
): ReconciledDay {
  if (!DAY.test(text))
    throw new TimeError(`${JSON.stringify(text.slice(0, 40))} is not a day: give one such as 2026-05-04`, 'day');
  const calendar = timeZone(zone);
  const from = Date.parse(calendar.instant(text, 'first'));
  if (from > now) throw new TimeError(`${text} has not started yet`, 'day');
  if (settings.payments === 'simulated' && from < now - SIMULATED_RETAINED_MS)
    throw new TimeError('the simulated provider keeps its ledger for 48 h only', 'day');
  return { day: text, timeZone: zone, from, to: Math.min(Date.parse(calendar.instant(text, 'last')) + 1, now) };
}

/** Reconciles a day with the ledgers of the payment provider and the prepaid wallets. @throws as `reconcile` */
export async function reconcileDay(
  { events, ledger }: ReconcileDeps,
  day: Day,
  onDifference: (difference: Difference) => Promise<void> | void,
  signal?: AbortSignal,
): Promise<DayReport> {
  const wallets = await walletLedger(events, day);
  try {
    const ledgers: PaymentLedger[] = [ledger, wallets];
    const reports: Reconciled[] = [];
    const uncompared = new Map<string, Sums>();
    for (const one of ledgers) {
      const { reconciled, others } = await reconcile(events, one, day, onDifference, signal);
      reports.push(reconciled);
      for (const [provider, sums] of others) uncompared.set(provider, sums);
    }
    for (const { provider } of ledgers) uncompared.delete(provider);
    return { ledgers: reports, uncompared: [...uncompared].map(([provider, sums]) => ({ provider, ...sums })) };
  } finally {
    await wallets.close();
  }
}

export function reconciliationReport(
  { day, timeZone: time_zone, from, to }: ReconciledDay,
  { ledgers, uncompared }: DayReport,
  differences: number,
): object {
  return {
    action: 'done',
    day,
    time_zone,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    differences,
    ledgers,
    uncompared,
  };
}

const PAGE = 500;

/**
 * The streams of all prepaid wallets as a ledger, on a day (ms since the epoch, end exclusive). Found by its id, a
 * debit that a discard credited has moved nothing, nor has that credit.
 */
async function walletLedger(
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
    // A wallet has no refunds but those of the log, each with an id.
    refundsOf: async () => [],
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
