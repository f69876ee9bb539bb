/** Webhook endpoints of all owners: what they get, what failed, what waits. */
import type { WebhookRow } from '../../src/ops/webhooks/webhookRows.js';
import { Page } from '../parts/page.js';
import { type Column, Paged } from '../parts/table.js';
import { count, duration, Id, Time } from '../parts/text.js';

const endpointPath = (id: string): string => `/webhooks/${encodeURIComponent(id)}`;

const COLUMNS: readonly Column<WebhookRow>[] = [
  { name: 'Endpoint', cell: ({ id }) => <Id of={id} to={endpointPath} /> },
  { name: 'Owner', cell: ({ owner }) => <bdi>{owner}</bdi> },
  { name: 'Address', cell: ({ url }) => <bdi>{url}</bdi> },
  { name: 'State', cell: (row) => stateOf(row) },
  { name: 'Waiting', cell: ({ waiting }) => count(waiting), number: true },
  {
    name: 'Oldest undelivered',
    cell: ({ oldest_undelivered_seconds: seconds }) => (seconds === null ? '–' : duration(seconds)),
    number: true,
  },
  { name: 'Last attempt', cell: ({ last_attempt }) => <Time at={last_attempt?.at} /> },
  {
    name: 'Answer',
    cell: ({ last_attempt }) => (last_attempt === null ? '–' : (last_attempt.status ?? last_attempt.error)),
  },
  { name: 'Events', cell: ({ types }) => types?.join(', ') ?? 'all' },
  { name: 'Description', cell: ({ description }) => <bdi>{description ?? '–'}</bdi> },
];

function stateOf({ disabled, disabled_by, failing, failures }: WebhookRow): string {
  if (disabled) return `disabled (${disabled_by ?? 'by its owner'})`;
  if (failing) return `failing, ${count(failures)} in a row`;
  return failures > 0 ? `${count(failures)} failed` : 'works';
}

export function Webhooks() {
  return (
    <Page title="Webhooks" lead="Where clients and merchants have events sent.">
      <Paged<WebhookRow>
        path="ops/webhooks"
        caption="Endpoints"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        none="There is no endpoint."
      />
    </Page>
  );
}
