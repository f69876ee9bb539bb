/** Totals to the penny, what they are made of, and the payment provider's side of a day. */
import { Link } from 'wouter-preact';
import { useLoaded } from '../service/loaded.js';
import { auditCommand, chosenTotals, REPORT_ZONE, type TotalsAnswer } from '../service/money.js';
import { get, type Query } from '../service/call.js';
import { may } from '../parts/action.js';
import { Exports } from '../parts/exports.js';
import { type Filter, Filters } from '../parts/filters.js';
import { Page, Shown } from '../parts/page.js';
import { Reconciliation } from '../parts/reconciliation.js';
import { TotalsChecked } from '../parts/totalsCheck.js';
import { TotalsPlot, TotalsTable } from '../parts/totals.js';

const FILTERS: readonly Filter[] = [
  { name: 'from', label: 'From the day', type: 'date' },
  { name: 'to', label: 'To the day', type: 'date' },
  { name: 'merchant', label: 'Merchant’s id', hint: 'Empty: all merchants.' },
  { name: 'time_zone', label: 'Time zone of days' },
  {
    name: 'check',
    label: 'Comparison with streams',
    choices: [
      ['', 'No'],
      ['true', 'Yes, which takes longer'],
    ],
  },
];

export function Money() {
  return (
    <Page title="Money">
      {may(['auditor']) ? (
        <>
          <p>
            Of a till, a store or a person: <Link href="/redemptions">redemptions by filters</Link>.
          </p>
          <Totals />
        </>
      ) : (
        <p>Your role does not permit totals and redemptions: they are shown to auditors.</p>
      )}
      <h2>Payment provider’s side of a day</h2>
      <Reconciliation />
    </Page>
  );
}

function Totals() {
  const { check, ...chosen } = chosenTotals.value;
  const totals = useLoaded(
    async (signal) => get<TotalsAnswer>('ops/totals', { query: { ...chosen, check }, signal }),
    [JSON.stringify([chosen, check])],
  );
  return (
    <section aria-label="Totals">
      <Filters filters={FILTERS} start={chosenTotals.value} choose={(value) => (chosenTotals.value = value)} />
      <Shown of={totals}>
        {(answer) => (
          <>
            {answer.check === undefined ? null : <TotalsChecked check={answer.check} />}
            <TotalsPlot rows={answer.data} />
            <TotalsTable answer={answer} zone={chosen['time_zone'] || REPORT_ZONE} />
            <TotalsExports query={chosen} />
          </>
        )}
      </Shown>
    </section>
  );
}

function TotalsExports({ query }: { readonly query: Query }) {
  const name = ['totals', query['from'], query['to']].filter((part) => part !== undefined && part !== '').join('-');
  return <Exports path="ops/totals" query={query} name={name} command={auditCommand('totals', query, name)} />;
}
