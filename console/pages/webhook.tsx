/** A webhook endpoint: its attempts, and events delivered once more. */
import { useState } from 'preact/hooks';
import type { AttemptRow } from '../../src/ops/webhooks/attempts.js';
import { Action, may } from '../parts/action.js';
import { Page } from '../parts/page.js';
import { type Column, type Pages, PagedTable, usePaged } from '../parts/table.js';
import { Time } from '../parts/text.js';
import { post } from '../service/call.js';
import { pauseSince } from '../service/loaded.js';

const COLUMNS: readonly Column<AttemptRow>[] = [
  { name: 'At', cell: ({ at }) => <Time at={at} /> },
  { name: 'Event', cell: ({ type }) => type },
  { name: 'Event’s id', cell: ({ event_id }) => <code>{event_id}</code> },
  { name: 'Answer', cell: ({ status, error }) => status ?? error },
  { name: 'Took, ms', cell: ({ duration_ms }) => duration_ms, number: true },
  { name: 'Next attempt', cell: ({ next_at }) => <Time at={next_at} /> },
];

/** How long new attempts are looked for by themselves, ms. */
const WATCHED_MS = 10 * 60_000;

export function Webhook({ id }: { readonly id: string }) {
  const path = `ops/webhooks/${encodeURIComponent(id)}`;
  const [chosen, choose] = useState('');
  const [requestedAt, setRequestedAt] = useState<string>();
  const attempts = usePaged<AttemptRow>(
    `${path}/attempts`,
    {},
    { everyMs: (latest) => pauseUntilAttempt(latest, requestedAt) },
  );
  const done = (): void => {
    setRequestedAt(new Date().toISOString());
    attempts.first.reload();
  };
  const again: Column<AttemptRow> = {
    name: 'Again',
    cell: ({ event_id, type }) => (
      <button
        type="button"
        class="outline small"
        aria-label={`Choose ${type} ${event_id} for another delivery`}
        onClick={() => choose(event_id)}
      >
        Choose
      </button>
    ),
  };
  return (
    <Page title={`Webhook endpoint ${id}`}>
      {may(['support']) ? <h2>What can be done</h2> : null}
      <div class="actions">
        <Action
          label="Deliver an event again"
          of={chosen}
          opens
          effect="The endpoint gets this event once more. Its receiver knows it by its id."
          fields={[
            { name: 'event_id', label: 'Event’s id', start: chosen, hint: 'Choose it among the attempts below.' },
          ]}
          run={async ({ event_id = '', reason = '' }, key) => {
            await post(`${path}/resend`, { event_id: event_id.trim(), reason }, key);
            return <p>The event is delivered again: its attempt will be listed below.</p>;
          }}
          done={done}
        />
        <Action
          label="Deliver all since a time"
          effect="The endpoint gets every event again that happened since then and was not delivered to it."
          fields={[{ name: 'since', label: 'Since', type: 'datetime-local', hint: 'In your own time zone.' }]}
          run={async ({ since = '', reason = '' }, key) => {
            await post(`${path}/recover`, { since: new Date(since).toISOString(), reason }, key);
            return <p>The events are delivered: their attempts will be listed below.</p>;
          }}
          done={done}
        />
      </div>
      <h2>Attempts</h2>
      <PagedTable
        paging={attempts}
        caption="Attempts, the latest first"
        columns={may(['support']) ? [...COLUMNS, again] : COLUMNS}
        keyOf={({ id: attempt }) => attempt}
        none="No attempt is stored."
      />
    </Page>
  );
}

/** Attempts follow a request of this page, and a failed attempt. */
function pauseUntilAttempt(latest: Pages<AttemptRow> | undefined, requestedAt: string | undefined): number | undefined {
  const [last] = latest?.data ?? [];
  const failedAt = last !== undefined && last.next_at !== null ? last.at : undefined;
  const since = [requestedAt, failedAt]
    .flatMap((at) => at ?? [])
    .toSorted()
    .at(-1);
  return since === undefined || Date.now() - Date.parse(since) > WATCHED_MS ? undefined : pauseSince(since);
}
