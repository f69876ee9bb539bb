/** Events as a line of what happened: when, what, who, why. */
import { Link } from 'wouter-preact';
import type { EventView } from '../../src/ops/history/eventView.js';
import { Fields } from './fields.js';
import { Time, tracePath, words } from './text.js';

export function Events({ events }: { readonly events: readonly EventView[] }) {
  return (
    <ol class="events">
      {events.map((event) => (
        <li key={event.id}>
          <Event event={event} />
        </li>
      ))}
    </ol>
  );
}

export function Event({ event }: { readonly event: EventView }) {
  const { reason } = event.data as { readonly reason?: string | null };
  return (
    <details>
      <summary>
        <strong>{words(event.type)}</strong> <Time at={event.at} /> <span>by {callerOf(event)}</span>
        {gistOf(event.data)}
        {reason === undefined || reason === null ? null : <span>: “{reason}”</span>}
      </summary>
      <Fields
        of={{
          ...event.data,
          stream: event.stream,
          revision: event.revision,
          position: event.position,
          event_id: event.id,
        }}
        texts={{
          trace: <Link href={tracePath(event.correlation_id)}>What led to it, and what followed</Link>,
        }}
      />
    </details>
  );
}

interface Told {
  readonly location_id?: string;
  readonly channel?: string;
  readonly cause?: string;
  readonly code?: string;
  readonly replaced_by?: { readonly gift_id: string };
}

/** What most readers open an event for: where, how, or why it failed. */
function gistOf({ location_id, channel, cause, code, replaced_by }: Told): string {
  const parts = [
    location_id === undefined ? '' : ` at ${location_id}`,
    channel === undefined ? '' : ` by ${channel}`,
    replaced_by === undefined ? '' : ` by gift ${replaced_by.gift_id}`,
    ...[cause, code].map((text) => (text === undefined || text === '' ? '' : `: ${text}`)),
  ];
  return parts.join('');
}

/** The user, and the client that they worked through. */
export function callerOf({ by }: Pick<EventView, 'by'>): string {
  const user = by.user ?? 'nobody';
  if (user.startsWith('system:')) return 'the service';
  return by.client === undefined ? user : `${user} (${by.client})`;
}
