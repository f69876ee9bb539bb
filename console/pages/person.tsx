/** A person: what is stored of them, their purchases and gifts, and their erasure. */
import { useState } from 'preact/hooks';
import type { PersonRecord, RecordPart } from '../../src/ops/people/personRecord.js';
import type { PurchaseRow } from '../../src/ops/purchases/purchaseRows.js';
import { may } from '../parts/action.js';
import { Download } from '../parts/download.js';
import { Erasure } from '../parts/erasure.js';
import { Fields } from '../parts/fields.js';
import { GIFT_COLUMNS } from '../parts/foundRows.js';
import { Page, Problem, Shown } from '../parts/page.js';
import { ReasonForm } from '../parts/personal.js';
import { PURCHASE_COLUMNS } from '../parts/purchases.js';
import { Paged } from '../parts/table.js';
import { count, Time, words } from '../parts/text.js';
import { useAttempt } from '../service/attempt.js';
import { get } from '../service/call.js';
import type { FoundGift } from '../service/finding.js';
import { useLoaded } from '../service/loaded.js';

interface CountedPart extends RecordPart {
  /** How many records there are; the first of them are shown. */
  readonly count: number;
}

interface Answer {
  readonly data: Omit<PersonRecord, 'parts'> & { readonly parts: readonly CountedPart[] };
}

/** @param id of a user, or `phone:` and the id of a number that is no user’s */
export function Person({ id }: { readonly id: string }) {
  const [reason, setReason] = useState<string>();
  // What is left of a person who was erased is another answer.
  const [turn, setTurn] = useState(0);
  return (
    <Page title={`Person ${id}`}>
      <h2>What is stored</h2>
      {!may(['support']) ? (
        <p>What is stored of a person is shown to support only.</p>
      ) : reason === undefined ? (
        <ReasonForm label="Show what is stored" give={setReason} />
      ) : (
        <Stored key={turn} id={id} reason={reason} />
      )}
      <h2>Erasure</h2>
      <Erasure person={id} done={() => setTurn(turn + 1)} />
    </Page>
  );
}

interface StoredProps {
  readonly id: string;
  readonly reason: string;
}

function Stored({ id, reason }: StoredProps) {
  const path = `ops/people/${encodeURIComponent(id)}`;
  const stored = useLoaded(async (signal) => get<Answer>(path, { query: { reason }, signal }), [id, reason]);
  return (
    <Shown of={stored}>
      {({ data: { parts, erased_at } }) => (
        <>
          {erased_at === null ? null : (
            <p>
              The person was erased <Time at={erased_at} />. What is left does not tell who they were.
            </p>
          )}
          {parts.map((part) => (
            <Part key={part.part} part={part} />
          ))}
          <h3>Export for the person</h3>
          <Export path={path} id={id} reason={reason} />
          {id.startsWith('phone:') ? null : (
            <>
              <h3>Purchases</h3>
              <Paged<PurchaseRow>
                path="ops/transactions"
                query={{ buyer: id }}
                caption="Purchases of this person"
                columns={PURCHASE_COLUMNS}
                keyOf={({ transaction_id }) => transaction_id}
                none="They have bought nothing."
              />
            </>
          )}
          <h3>Gifts</h3>
          <Paged<FoundGift>
            path="ops/gifts"
            query={{ person: id, reason }}
            caption="Gifts that this person bought, received or claimed"
            columns={[...GIFT_COLUMNS, { name: 'As', cell: ({ as }) => words(as ?? '') }]}
            keyOf={({ gift_id, as }) => `${gift_id} ${as ?? ''}`}
            none="They have no gift."
          />
        </>
      )}
    </Shown>
  );
}

function Part({ part: { part, where, why, until, count: number, records } }: { readonly part: CountedPart }) {
  return (
    <details>
      <summary>
        {words(part)}: {count(number)}
      </summary>
      <p>
        Where: {where}. Why: {why}. How long: {until}.
      </p>
      <ol class="records">
        {records.map((record, index) => (
          <li key={index}>
            <Fields of={record} />
          </li>
        ))}
      </ol>
      {number > records.length ? <p>The first {records.length} are shown. The export has all.</p> : null}
    </details>
  );
}

interface ExportProps extends StoredProps {
  readonly path: string;
}

function Export({ path, id, reason }: ExportProps) {
  const [made, setMade] = useState<Answer>();
  const { busy, wrong, attempt } = useAttempt();
  const make = async (): Promise<void> =>
    attempt(async () => setMade(await get<Answer>(`${path}/export`, { query: { reason } })));
  return (
    <>
      {wrong === undefined ? null : <Problem>{wrong}</Problem>}
      {made === undefined ? (
        <button type="button" class="outline" aria-busy={busy} disabled={busy} onClick={() => void make()}>
          Make the export
        </button>
      ) : (
        <p role="status">
          <Download of={made} file={`person-${id.replace(':', '-')}.json`} label="Download the export" />. Texts of
          support may name others: read them before the person gets it.
        </p>
      )}
    </>
  );
}
