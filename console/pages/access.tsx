/** Who looked at whom, and why (docs/support.md#access-records). */
import { useState } from 'preact/hooks';
import type { AccessEvent } from '../../src/domain/access.js';
import type { EventView } from '../../src/ops/history/eventView.js';
import { may } from '../parts/action.js';
import { Evidence } from '../parts/evidence.js';
import { callerOf } from '../parts/event.js';
import { type Chosen, type Filter, Filters } from '../parts/filters.js';
import { Page } from '../parts/page.js';
import { type Column, Paged } from '../parts/table.js';
import { count, giftPath, Id, personPath, Time, transactionPath, ZONE } from '../parts/text.js';

const FILTERS: readonly Filter[] = [
  { name: 'from', label: 'From', type: 'datetime-local' },
  { name: 'to', label: 'To', type: 'datetime-local', hint: 'Empty: until now.' },
  { name: 'person', label: 'About the person', hint: 'A user’s id, or phone:…' },
  { name: 'gift', label: 'About the gift', hint: 'Its id or shortcode.' },
  { name: 'who', label: 'By', hint: 'A user’s id, or cli:user@host.' },
];
const HOUR_MS = 3_600_000;

/** An hour ago, as such a field has it. */
function anHourAgo(): string {
  const at = new Date(Date.now() - HOUR_MS);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

interface AccessRecord extends Omit<EventView, 'type' | 'data'> {
  readonly type: AccessEvent['type'];
  readonly data: AccessEvent['data'];
}

export function Access() {
  return (
    <Page title="Access" lead="Records that calls and exports of support and auditors have left, in their order.">
      {may(['auditor']) ? <Records /> : <p>Your role does not permit this. Access records are shown to auditors.</p>}
      <h2>Evidence of the log</h2>
      <Evidence />
    </Page>
  );
}

function Records() {
  const [chosen, choose] = useState<Chosen>(() => ({ from: anHourAgo() }));
  return (
    <>
      <Filters filters={FILTERS} start={chosen} choose={choose} />
      <Paged
        path="ops/access"
        query={{ ...chosen, time_zone: ZONE }}
        caption="Access records"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        none="Nobody looked at anything of this choice."
      />
    </>
  );
}

const COLUMNS: readonly Column<AccessRecord>[] = [
  { name: 'When', cell: ({ at }) => <Time at={at} /> },
  { name: 'Who', cell: (record) => callerOf(record) },
  { name: 'What', cell: what },
  { name: 'Whom', cell: whom },
  { name: 'Why', cell: ({ data }) => ('reason' in data ? (data.reason ?? '–') : '–') },
  { name: 'Records', cell: ({ data }) => ('count' in data ? count(data.count) : '–'), number: true },
  { name: 'Personal fields', cell: ({ data }) => ('personal' in data ? (data.personal ? 'shown' : 'masked') : '–') },
  { name: 'Requested', cell: rest },
];

function what({ data, type }: AccessRecord) {
  if ('complete' in data)
    return (
      <>
        {data.complete ? 'end' : 'interrupted or refused'} of <span class="id">{data.operation_id}</span>
      </>
    );
  return (
    <>
      <code>{data.what}</code>
      {type === 'OperationStarted' && 'operation_id' in data ? (
        <>
          , start of <span class="id">{data.operation_id}</span>
        </>
      ) : null}
    </>
  );
}

/** Fields of a call that name a gift, a person or a transaction, and the page of each. */
const NAMED: Readonly<Record<string, (id: string) => string>> = {
  giftId: giftPath,
  gift: giftPath,
  personId: personPath,
  person: personPath,
  found: personPath,
  transactionId: transactionPath,
};

function whom({ data }: AccessRecord) {
  if (!('asked' in data)) return <>–</>;
  const named = Object.entries(NAMED).flatMap(([field, path]) =>
    [data.asked[field]].flat().flatMap((id) => (typeof id === 'string' ? [{ id, path }] : [])),
  );
  if (named.length === 0) return <>–</>;
  return (
    <ul class="plain">
      {named.map(({ id, path }) => (
        <li key={path(id)}>
          <Id of={id} to={path} />
        </li>
      ))}
    </ul>
  );
}

function rest({ data }: AccessRecord) {
  const others = 'asked' in data ? Object.entries(data.asked).filter(([field]) => !(field in NAMED)) : [];
  if (others.length === 0) return <>–</>;
  return (
    <ul class="plain">
      {others.map(([field, value]) => (
        <li key={field}>
          {field}: {typeof value === 'string' ? value : JSON.stringify(value)}
        </li>
      ))}
    </ul>
  );
}
