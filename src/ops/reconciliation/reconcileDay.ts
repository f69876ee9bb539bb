import type { EventStore } from '../../ports/eventStore.js';
import type { PaymentLedger } from '../../ports/paymentLedger.js';
import type { ProviderSettings } from '../../providers/settings.js';
import { type Day, type Difference, reconcile, type Reconciled, type Sums } from './reconcile.js';
import { timeZone, TimeError } from '../ranges/times.js';
import { walletLedger } from './walletLedger.js';

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
