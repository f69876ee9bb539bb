/**
 * Reconciles a day of a payment provider's ledger with the log, to the penny: every charge and refund must be on both
 * sides. Both are read one span of time after another, so memory is bounded by the busiest span. Clocks differ, and an
 * answer may be recorded on a later day. So an entry without a counterpart in its span or the next is looked up by id.
 * Of refunds made at the provider itself the log has amounts (`RefundedAtProvider`), but no ids. Those that no refund of
 * the day covers are held against all that the provider gave back of the charge.
 */
import type { RefundedAtProvider } from '../../domain/purchase/disputes.js';
import { type PaymentCharged, transactionStream } from '../../domain/purchase/events.js';
import type { GiftsRefunded, RefundFailed } from '../../domain/purchase/refund.js';
import { idOf } from '../../domain/streamName.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { LedgerEntry, PaymentLedger } from '../../ports/paymentLedger.js';
import { openSpanFeed } from '../ranges/spanFeed.js';

/** Kind of a difference. `here` is the log, `there` is the provider. */
type DifferenceKind = 'missing_here' | 'missing_there' | 'amount' | 'currency' | 'state';

/** Amounts are in the currency's smallest unit. */
export interface Difference {
  readonly what: DifferenceKind;
  readonly kind: LedgerEntry['kind'];
  readonly provider: string;
  /** The provider's id of the charge or refund. */
  readonly id: string;
  readonly transaction_id: string | null;
  readonly here: { readonly amount: number; readonly at: string } | null;
  readonly there: {
    readonly amount: number | null;
    readonly currency: string;
    readonly at: string;
    readonly status: string;
  } | null;
  readonly detail: string;
}

/** Numbers of charges and refunds, and their amounts in pence. */
export interface Sums {
  readonly charges: number;
  readonly charged: number;
  readonly refunds: number;
  readonly refunded: number;
}

/** Result for one ledger. Each side's day is by its own clock. */
export interface Reconciled {
  readonly provider: string;
  readonly here: Sums;
  readonly there: Sums;
  /** Number of entries whose counterpart was found by id: recorded much later, or on another day. */
  readonly looked_up: number;
  readonly differences: number;
}

/** A day in ms since the epoch, end exclusive. */
export interface Day {
  readonly from: number;
  readonly to: number;
}

const SPAN_MS = 15 * 60_000;
const CURRENCY = 'gbp';
const PARALLEL_LOOKUPS = 8;

interface Here {
  readonly kind: LedgerEntry['kind'];
  /** The provider's id of the charge or refund; empty for `RefundedAtProvider`. */
  readonly id: string;
  readonly transactionId: string;
  readonly amount: number;
  readonly at: string;
}

type Tally = { -readonly [K in keyof Sums]: Sums[K] };
const nothing = (): Tally => ({ charges: 0, charged: 0, refunds: 0, refunded: 0 });

function count(sums: Tally, kind: LedgerEntry['kind'], amount: number, entries = 1): void {
  if (kind === 'charge') {
    sums.charges += entries;
    sums.charged += amount;
  } else {
    sums.refunds += entries;
    sums.refunded += amount;
  }
}

/**
 * Reconciles one ledger with the log.
 * @returns in `others` the log's sums of other providers, uncompared
 * @throws what the ledger throws; UnavailableError; the signal's reason
 */
export async function reconcile(
  events: EventStore,
  ledger: PaymentLedger,
  day: Day,
  onDifference: (difference: Difference) => Promise<void> | void,
  signal?: AbortSignal,
): Promise<{ readonly reconciled: Reconciled; readonly others: ReadonlyMap<string, Sums> }> {
  const feed = await openSpanFeed(events, day, { types: ['PaymentCharged', 'GiftsRefunded', 'RefundedAtProvider'] });
  const here = nothing();
  const there = nothing();
  const others = new Map<string, Tally>();
  /** Pence of `RefundedAtProvider` already matched, by event id. */
  const spent = new Map<string, number>();
  const reports: Recorded<RefundedAtProvider>[] = [];
  let lookedUp = 0;
  let differences = 0;
  /**
   * Entries of the log without a counterpart yet, of this span and the previous one; `theirs` has those of the ledger.
   */
  let ours = [new Map<string, Here>(), new Map<string, Here>()] as const;
  let theirs = [new Map<string, LedgerEntry>(), new Map<string, LedgerEntry>()] as const;

  const take = <T>(maps: readonly [Map<string, T>, Map<string, T>], key: string): T | undefined => {
    for (const map of maps) {
      const found = map.get(key);
      if (map.delete(key)) return found;
    }
    return undefined;
  };
  const report = async (found: readonly Difference[]): Promise<void> => {
    for (const difference of found) {
      differences++;
      await onDifference(difference);
    }
  };
  const resolveOurs = async (one: Here): Promise<void> => {
    const found = await ledger.find(one.kind, one.id, one.transactionId);
    if (found === undefined)
      return report([
        differenceOf('missing_there', ledger.provider, one, undefined, `${ledger.provider} knows no such ${one.kind}`),
      ]);
    lookedUp++;
    if (!found.moved && (await failedLater(events, one))) return count(here, one.kind, -one.amount, -1);
    return report(compare(ledger.provider, one, found));
  };
  const resolveTheirs = async (one: LedgerEntry): Promise<void> => {
    const { found, why } = await inLog(events, one, spent);
    if (found !== undefined) {
      lookedUp++;
      return report(compare(ledger.provider, found, one));
    }
    const now = one.transactionId === null ? undefined : await ledger.find(one.kind, one.id, one.transactionId);
    if (now?.moved !== false) return report([differenceOf('missing_here', ledger.provider, undefined, one, why)]);
    lookedUp++;
    return count(there, one.kind, -(one.amount ?? 0), -1);
  };
  const resolveReport = async (event: Recorded<RefundedAtProvider>): Promise<void> => {
    const { charge_id, amount, total } = event.data;
    if ((spent.get(event.id) ?? 0) >= amount) return;
    const given = await givenBackThere(events, ledger, event);
    if (given >= total) return void lookedUp++;
    const one = { ...hereOf(event), id: charge_id };
    const why = `${ledger.provider} has given back ${given} pence of this charge by itself, and had told of ${total}`;
    return report([differenceOf('missing_there', ledger.provider, one, undefined, why)]);
  };

  try {
    for (let from = day.from; from < day.to; from += SPAN_MS) {
      signal?.throwIfAborted();
      const to = Math.min(from + SPAN_MS, day.to);
      for await (const page of ledger.list(from, to)) {
        for (const entry of page) {
          if (!entry.moved) continue;
          count(there, entry.kind, entry.amount ?? 0);
          const known = take(ours, keyOf(entry));
          if (known === undefined) theirs[0].set(keyOf(entry), entry);
          else await report(compare(ledger.provider, known, entry));
        }
        signal?.throwIfAborted();
      }
      for await (const event of feed.until(to, to === day.to)) {
        const { provider, ...one } = hereOf(event);
        // A free gift: no provider knows it.
        if (one.amount === 0) continue;
        if (provider !== ledger.provider) {
          const sums = others.get(provider) ?? nothing();
          count(sums, one.kind, one.amount);
          others.set(provider, sums);
          continue;
        }
        count(here, one.kind, one.amount);
        if (event.type === 'RefundedAtProvider') {
          reports.push(event as Recorded<RefundedAtProvider>);
          continue;
        }
        const known = take(theirs, keyOf(one));
        if (known === undefined) ours[0].set(keyOf(one), one);
        else await report(compare(ledger.provider, one, known));
      }
      await inParallel([...ours[1].values()], PARALLEL_LOOKUPS, resolveOurs);
      await inParallel([...theirs[1].values()], PARALLEL_LOOKUPS, resolveTheirs);
      ours = [new Map(), ours[0]];
      theirs = [new Map(), theirs[0]];
    }
    await inParallel([...ours[1].values()], PARALLEL_LOOKUPS, resolveOurs);
    await inParallel([...theirs[1].values()], PARALLEL_LOOKUPS, resolveTheirs);
    await inParallel(reports, PARALLEL_LOOKUPS, resolveReport);
  } finally {
    await feed.close();
  }
  return { reconciled: { provider: ledger.provider, here, there, looked_up: lookedUp, differences }, others };
}

const keyOf = ({ kind, id }: { readonly kind: string; readonly id: string }): string => `${kind} ${id}`;

function hereOf(event: RecordedEvent): Here & { readonly provider: string } {
  const known = event as Recorded<PaymentCharged | GiftsRefunded | RefundedAtProvider>;
  const transactionId = idOf(event.stream);
  const { provider, amount } = known.data;
  const one = { provider, transactionId, amount, at: event.at };
  switch (known.type) {
    case 'PaymentCharged':
      return { ...one, kind: 'charge', id: known.data.charge_id };
    case 'GiftsRefunded':
      return { ...one, kind: 'refund', id: known.data.refund_ref };
    case 'RefundedAtProvider':
      return { ...one, kind: 'refund', id: '' };
    default:
      return known satisfies never;
  }
}

/** Whether the entry is a refund that the provider could not deliver. */
async function failedLater(events: EventStore, { kind, id, transactionId }: Here): Promise<boolean> {
  if (kind !== 'refund') return false;
  const history = await events.read(transactionStream(transactionId));
  return history.some(({ type, data }) => type === 'RefundFailed' && (data as RefundFailed['data']).refund_ref === id);
}

/** Pence that the provider gave back of a charge, but for our own refunds. */
async function givenBackThere(
  events: EventStore,
  ledger: PaymentLedger,
  { stream, data: { charge_id } }: Recorded<RefundedAtProvider>,
): Promise<number> {
  const ours = new Set(
    (await events.read(stream)).map(({ data }) => (data as Partial<GiftsRefunded['data']>).refund_ref ?? ''),
  );
  const others = (await ledger.refundsOf(charge_id)).filter(({ id, moved }) => moved && !ours.has(id));
  return others.reduce((sum, { amount = 0 }) => sum + amount, 0);
}

async function inLog(
  events: EventStore,
  entry: LedgerEntry,
  spent: Map<string, number>,
): Promise<{ found?: Here; why: string }> {
  const { kind, id, transactionId } = entry;
  if (transactionId === null) return { why: 'it names no transaction of this service' };
  const history = await events.read(transactionStream(transactionId));
  if (history.length === 0) return { why: 'its transaction is unknown here' };
  const field = kind === 'charge' ? 'charge_id' : 'refund_ref';
  for (const event of history) {
    const data = event.data as Readonly<Record<string, unknown>>;
    if (data[field] === id && typeof data['amount'] === 'number')
      return { found: { kind, id, transactionId, amount: data['amount'], at: event.at }, why: '' };
  }
  if (kind === 'refund') {
    const outside = refundedOutside(history, entry, spent);
    if (outside === undefined) return { why: 'its transaction has no such refund' };
    return { found: { kind, id, transactionId, ...outside }, why: '' };
  }
  if (history.some(({ type }) => type === 'PaymentCharged'))
    return { why: 'its transaction was charged by another one: charged twice' };
  return {
    why: history.some(({ type }) => type === 'PaymentDeclined')
      ? 'its transaction was declined'
      : 'its transaction is not settled yet',
  };
}

/**
 * Matches a refund with `RefundedAtProvider`; `undefined` where none matches. The provider reports totals: the first
 * reports after the refund cover it, and their amounts are used up (`spent`).
 */
function refundedOutside(
  history: readonly RecordedEvent[],
  { at, amount }: LedgerEntry,
  spent: Map<string, number>,
): Pick<Here, 'amount' | 'at'> | undefined {
  if (amount === undefined) return undefined;
  const parts: (readonly [id: string, spent: number])[] = [];
  let open = amount;
  let recordedAt: string | undefined;
  for (const event of history) {
    if (event.type !== 'RefundedAtProvider' || Date.parse(event.at) < Date.parse(at) - SPAN_MS) continue;
    const before = spent.get(event.id) ?? 0;
    const part = Math.min(open, (event.data as RefundedAtProvider['data']).amount - before);
    if (part <= 0) continue;
    recordedAt ??= event.at;
    open -= part;
    parts.push([event.id, before + part]);
  }
  if (open > 0 || recordedAt === undefined) return undefined;
  for (const [id, pence] of parts) spent.set(id, pence);
  return { amount, at: recordedAt };
}

function compare(provider: string, here: Here, there: LedgerEntry): Difference[] {
  const of = (what: DifferenceKind, detail: string): Difference => differenceOf(what, provider, here, there, detail);
  const differences: Difference[] = [];
  if (!there.moved) differences.push(of('state', `the log counts it, ${provider} says ${there.status}`));
  if (there.currency !== CURRENCY) differences.push(of('currency', `${there.currency} instead of ${CURRENCY}`));
  if (there.amount !== undefined && there.amount !== here.amount)
    differences.push(of('amount', `${here.amount} here, ${there.amount} there`));
  return differences;
}

function differenceOf(
  what: DifferenceKind,
  provider: string,
  here: Here | undefined,
  there: LedgerEntry | undefined,
  detail: string,
): Difference {
  const one = here ?? there;
  if (one === undefined) throw new Error('a difference is of one entry at least');
  const { kind, id, transactionId: transaction_id } = one;
  return {
    what,
    kind,
    provider,
    id,
    transaction_id,
    here: here === undefined ? null : { amount: here.amount, at: here.at },
    there:
      there === undefined
        ? null
        : { amount: there.amount ?? null, currency: there.currency, at: there.at, status: there.status },
    detail,
  };
}
