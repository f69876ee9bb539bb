/** Totals by merchant and day. */
import { Link } from 'wouter-preact';
import type { TotalRow } from '../../src/ops/totals/totals.js';
import { redemptionsPath, SUMS, type TotalsAnswer } from '../service/money.js';
import { Plot } from './plot.js';
import { type Column, Shortened } from './table.js';
import { count, pounds } from './text.js';

interface TotalsTableProps {
  readonly answer: TotalsAnswer;
  readonly zone: string;
}

export function TotalsTable({ answer: { data, sums }, zone }: TotalsTableProps) {
  const used = SUMS.filter(([name]) => data.some((row) => row[name] !== 0 || row[`${name}_value`] !== 0));
  const columns: readonly Column<TotalRow>[] = [
    { name: 'Day', cell: ({ day }) => (day === '' ? <strong>All days</strong> : <span class="day">{day}</span>) },
    { name: 'Merchant', cell: (row) => <Merchant row={row} zone={zone} /> },
    ...used.flatMap(([name, label]): readonly Column<TotalRow>[] => [
      { name: label, cell: (row) => count(row[name]), number: true },
      { name: `${label}, £`, cell: (row) => pounds(row[`${name}_value`]), number: true },
    ]),
  ];
  return (
    <Shortened
      caption="Totals by day and merchant"
      columns={columns}
      rows={data.length === 0 ? [] : [{ day: '', merchant_id: '', ...sums }, ...data]}
      keyOf={({ day, merchant_id }) => `${day} ${merchant_id}`}
      none="Nothing was issued, redeemed or refunded in these days."
    />
  );
}

/** A merchant whose redemptions of the day can be shown leads to them. */
function Merchant({ row, zone }: { readonly row: TotalRow; readonly zone: string }) {
  const { day, merchant_id, redeemed, unredeemed } = row;
  if (day === '') return <strong>all merchants</strong>;
  if (merchant_id === '') return <>unknown brand</>;
  if (redeemed === 0 && unredeemed === 0) return <span class="id">{merchant_id}</span>;
  return (
    <Link
      class="id"
      href={redemptionsPath(zone, day, merchant_id)}
      aria-label={`${merchant_id}, redemptions of ${day}`}
    >
      {merchant_id}
    </Link>
  );
}

export function TotalsPlot({ rows }: { readonly rows: readonly TotalRow[] }) {
  const days = new Map<string, { issued: number; redeemed: number }>();
  for (const { day, issued_value, redeemed_value } of rows) {
    const sums = days.get(day) ?? { issued: 0, redeemed: 0 };
    days.set(day, { issued: sums.issued + issued_value, redeemed: sums.redeemed + redeemed_value });
  }
  if (days.size < 2) return null;
  const sums = [...days.values()];
  return (
    <Plot
      caption="Value by day"
      series={[
        { name: 'Issued', values: sums.map(({ issued }) => issued) },
        { name: 'Redeemed', values: sums.map(({ redeemed }) => redeemed) },
      ]}
      points={[...days.keys()].map((day) => ({ at: Date.parse(day), label: day }))}
      format={pounds}
    />
  );
}
