/** A day of the payment provider and the prepaid wallets, compared with the log. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Difference, Reconciled, Sums } from '../../src/ops/reconciliation/reconcile.js';
import { messageOf } from '../service/attempt.js';
import { lines } from '../service/call.js';
import { dayBefore } from '../service/money.js';
import { type Chosen, type Filter, Filters } from './filters.js';
import { Problem } from './page.js';
import { type Column, Shortened, Table } from './table.js';
import { count, Id, pounds, Time, transactionPath, words } from './text.js';

/** Differences that the page holds; their number goes on being counted. */
const MAX_HELD = 1_000;

interface DayReport {
  readonly day: string;
  readonly differences: number;
  readonly ledgers: readonly Reconciled[];
  /** The log's sums of providers that have no list to compare with. */
  readonly uncompared: readonly (Sums & { readonly provider: string })[];
}

type Line = (Difference & { readonly action: 'difference' }) | (DayReport & { readonly action: 'done' });

interface Comparison {
  readonly state: 'running' | 'done' | 'failed';
  readonly found: readonly Difference[];
  readonly differences: number;
  readonly report?: DayReport;
  readonly message?: string;
}

const FILTERS: readonly Filter[] = [
  { name: 'day', label: 'Day', type: 'date', hint: 'Today ends now.' },
  { name: 'time_zone', label: 'Time zone of the day' },
];
const BEGUN: Comparison = { state: 'running', found: [], differences: 0 };

export function Reconciliation() {
  const [comparison, set] = useState<Comparison>();
  const running = useRef<AbortController>();
  useEffect(() => () => running.current?.abort(), []);
  const compare = async (query: Chosen): Promise<void> => {
    running.current?.abort();
    const { signal } = (running.current = new AbortController());
    try {
      set(BEGUN);
      for await (const one of compared(query, signal)) if (!signal.aborted) set(one);
    } catch (error) {
      const message = messageOf(error);
      if (!signal.aborted) set((before) => ({ ...(before ?? BEGUN), state: 'failed', message }));
    }
  };
  return (
    <section aria-label="Reconciliation">
      <Filters
        filters={FILTERS}
        start={{ day: dayBefore(1), time_zone: 'Europe/London' }}
        choose={(query) => void compare(query)}
      />
      {comparison === undefined ? null : <Compared comparison={comparison} />}
    </section>
  );
}

/** What is known of the comparison after each of its lines. @throws Failed */
async function* compared(query: Chosen, signal: AbortSignal): AsyncGenerator<Comparison> {
  const found: Difference[] = [];
  let differences = 0;
  for await (const line of lines<Line>('ops/payments/reconciliation', { query, signal })) {
    if (line.action === 'done') return yield { state: 'done', found, differences: line.differences, report: line };
    differences++;
    if (found.length < MAX_HELD) found.push(line);
    if (differences % 100 === 1) yield { state: 'running', found: [...found], differences };
  }
  yield {
    state: 'failed',
    found,
    differences,
    message: 'The comparison was broken off before its end. Start it again.',
  };
}

function Compared({ comparison: { state, found, differences, report, message } }: { readonly comparison: Comparison }) {
  return (
    <>
      {state === 'failed' ? <Problem>{message}</Problem> : null}
      {state === 'running' ? <p role="status">Comparing… {count(differences)} differences so far.</p> : null}
      {report === undefined ? null : <Report report={report} differences={differences} />}
      {found.length === 0 ? null : (
        <Shortened
          caption={found.length < differences ? `The first ${count(found.length)} differences` : 'Differences'}
          columns={DIFFERENCES}
          rows={found}
          keyOf={({ provider, kind, id, what }) => `${provider} ${kind} ${id} ${what}`}
          none=""
        />
      )}
    </>
  );
}

const DIFFERENCES: readonly Column<Difference>[] = [
  { name: 'Difference', cell: ({ what }) => words(what) },
  { name: 'Provider', cell: ({ provider }) => provider },
  { name: 'Of', cell: ({ kind }) => words(kind) },
  { name: 'Id', cell: ({ id }) => <span class="id">{id}</span> },
  {
    name: 'Transaction',
    cell: ({ transaction_id }) => (transaction_id === null ? '–' : <Id of={transaction_id} to={transactionPath} />),
  },
  { name: 'By the log', cell: ({ here }) => (here === null ? '–' : pounds(here.amount)), number: true },
  { name: 'Log’s time', cell: ({ here }) => <Time at={here?.at} /> },
  { name: 'By the provider', cell: ({ there }) => (there === null ? '–' : amountOf(there)), number: true },
  { name: 'Provider’s time', cell: ({ there }) => <Time at={there?.at} /> },
  { name: 'Detail', cell: ({ detail }) => detail },
];

/** Amounts may be in another currency, which is a difference of its own. */
function amountOf({ amount, currency }: NonNullable<Difference['there']>): string {
  if (amount === null) return 'unknown';
  return currency === 'gbp' ? pounds(amount) : `${count(amount)} ${currency}`;
}

interface Side extends Sums {
  readonly name: string;
}

const SIDES: readonly Column<Side>[] = [
  { name: 'Side', cell: ({ name }) => name },
  { name: 'Charges', cell: ({ charges }) => count(charges), number: true },
  { name: 'Charged', cell: ({ charged }) => pounds(charged), number: true },
  { name: 'Refunds', cell: ({ refunds }) => count(refunds), number: true },
  { name: 'Refunded', cell: ({ refunded }) => pounds(refunded), number: true },
];

interface ReportProps {
  readonly report: DayReport;
  readonly differences: number;
}

function Report({ report: { day, ledgers, uncompared }, differences }: ReportProps) {
  const sides: readonly Side[] = [
    ...ledgers.flatMap(({ provider, here, there }) => [
      { name: `${provider}, by the log`, ...here },
      { name: `${provider}, by its own list`, ...there },
    ]),
    ...uncompared.map(({ provider, ...sums }) => ({ name: `${provider}, by the log: it has no list`, ...sums })),
  ];
  return (
    <>
      {differences === 0 ? (
        <p role="status" class="done">
          Both sides of {day} agree to the penny.
        </p>
      ) : (
        <Problem>
          Both sides of {day} have {count(differences)} differences.
        </Problem>
      )}
      <Table caption={`Sums of ${day}`} columns={SIDES} rows={sides} keyOf={({ name }) => name} none="No ledger." />
    </>
  );
}
