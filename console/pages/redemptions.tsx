/** Redemptions and reversals: those that a merchant's total of a day is made of, or a till's own. */
import { useState } from 'preact/hooks';
import type { RedemptionRecord } from '../../src/ops/redemptions/redemptionHistory.js';
import { may } from '../parts/action.js';
import { callerOf } from '../parts/event.js';
import { Exports } from '../parts/exports.js';
import { type Chosen, type Filter, Filters } from '../parts/filters.js';
import { Page } from '../parts/page.js';
import { type Column, Paged } from '../parts/table.js';
import { giftPath, Id, pounds, Time, words } from '../parts/text.js';
import { auditCommand, dayBefore, REPORT_ZONE } from '../service/money.js';

const FILTERS: readonly Filter[] = [
  { name: 'from', label: 'From the day', type: 'date' },
  { name: 'to', label: 'To the day', type: 'date' },
  { name: 'merchant', label: 'Merchant’s id' },
  { name: 'location', label: 'Location’s id', hint: 'Of a store, where its till stands.' },
  { name: 'user', label: 'Done by', hint: 'A user’s id: of a till, or of a person.' },
  { name: 'gift', label: 'Gift', hint: 'Its id or shortcode.' },
  { name: 'time_zone', label: 'Time zone of days' },
];

const COLUMNS: readonly Column<RedemptionRecord>[] = [
  { name: 'At', cell: ({ at }) => <Time at={at} /> },
  { name: 'What happened', cell: ({ type }) => words(type) },
  { name: 'Value', cell: ({ redemption: { value } }) => pounds(value), number: true },
  { name: 'Gift', cell: ({ gift_id }) => <Id of={gift_id} to={giftPath} /> },
  { name: 'Location', cell: ({ redemption }) => redemption.location_id },
  { name: 'Brand', cell: ({ redemption }) => redemption.brand_id },
  { name: 'Product', cell: ({ redemption }) => redemption.product_id },
  { name: 'By', cell: (record) => callerOf(record) },
  { name: 'Redemption', cell: ({ redemption }) => <span class="id">{redemption.redemption_id}</span> },
];

interface RedemptionsProps {
  /** Of a total that the redemptions make up. */
  readonly zone?: string;
  readonly day?: string;
  readonly merchant?: string;
}

export function Redemptions({ zone = REPORT_ZONE, day = dayBefore(0), merchant = '' }: RedemptionsProps) {
  const [chosen, choose] = useState<Chosen>({ from: day, to: day, time_zone: zone, merchant });
  const name = ['redemptions', chosen['from'], chosen['to'], chosen['merchant']].filter(Boolean).join('-');
  return (
    <Page title="Redemptions" lead="Redemptions and their reversals, in the order of the log.">
      {may(['auditor']) ? (
        <>
          <Filters filters={FILTERS} start={chosen} choose={choose} />
          <Paged
            path="ops/redemptions"
            query={chosen}
            caption="Redemptions and reversals"
            columns={COLUMNS}
            keyOf={({ id }) => id}
            none="There are none."
          />
          <h2>Export</h2>
          <Exports
            path="ops/redemptions"
            query={chosen}
            name={name}
            command={auditCommand('redemptions', chosen, name)}
          />
        </>
      ) : (
        <p>Your role does not permit this. Redemptions are shown to auditors.</p>
      )}
    </Page>
  );
}
