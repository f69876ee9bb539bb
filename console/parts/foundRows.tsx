/** What a search has found, with the pages that it leads to. */
import type { Found, FoundGift } from '../service/finding.js';
import { Link } from 'wouter-preact';
import { type Column, Table } from './table.js';
import { giftPath, Id, personPath, pounds, Time, tracePath, transactionPath, words } from './text.js';

export const GIFT_COLUMNS: readonly Column<FoundGift>[] = [
  { name: 'Gift', cell: ({ gift_id }) => <Id of={gift_id} to={giftPath} /> },
  { name: 'Product', cell: ({ product_id }) => product_id },
  { name: 'Value', cell: ({ value }) => pounds(value), number: true },
  { name: 'Status', cell: ({ gift_status, blocked }) => words(gift_status) + (blocked ? ', blocked' : '') },
  { name: 'Last event', cell: ({ last_event }) => words(last_event) },
  { name: 'At', cell: ({ last_event_at }) => <Time at={last_event_at} /> },
  { name: 'Valid until', cell: ({ expiry_date }) => expiry_date },
  { name: 'Transaction', cell: ({ transaction_id }) => <Id of={transaction_id} to={transactionPath} /> },
];

export function FoundRows({
  found: { gifts, people, giftId, transactionIds, traceId, hasMore },
}: {
  readonly found: Found;
}) {
  return (
    <>
      {giftId === undefined ? null : (
        <p>
          Gift <Id of={giftId} to={giftPath} />
        </p>
      )}
      {transactionIds?.map((id) => (
        <p key={id}>
          Transaction <Id of={id} to={transactionPath} />
        </p>
      ))}
      {people === undefined ? null : (
        <p>
          {people.length === 1 ? 'Person' : 'Persons'}{' '}
          {people.map((person) => (
            <span key={person}>
              <Id of={person} to={personPath} />{' '}
            </span>
          ))}
        </p>
      )}
      {gifts === undefined ? null : (
        <Table
          caption="Gifts"
          columns={GIFT_COLUMNS}
          rows={gifts}
          keyOf={({ gift_id }) => gift_id}
          none="No gift was found."
        />
      )}
      {traceId === undefined ? null : (
        <p>
          <Link href={tracePath(traceId)}>What the request has led to</Link>
        </p>
      )}
      {hasMore === true ? <p role="status">There are more: the page of the person or transaction has all.</p> : null}
    </>
  );
}
