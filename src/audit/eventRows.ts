/** Events as rows: of a CSV file, of a table. */
import { shortened } from '../callerWords.js';
import type { Cell } from './csv.js';
import type { EventView } from './eventView.js';

/** The heading of an event's row in CSV. */
export const EVENT_COLUMNS: readonly string[] = [
  'position', 'stream', 'revision', 'type', 'id', 'at', 'user', 'client', 'roles', 'request_id', 'command_id', 'causation_id', 'correlation_id', 'data',
];

/** An event's row in CSV; `data` is JSON. */
export function eventRow({ position, stream, revision, type, id, at, by, request_id, command_id, causation_id, correlation_id, data }: EventView): Cell[] {
  return [position, stream, revision, type, id, at, by.user, by.client, by.roles?.join(' '), request_id, command_id, causation_id, correlation_id, JSON.stringify(data)];
}

/** The heading of an event's row in a table for people. */
export const HISTORY_COLUMNS: readonly string[] = ['#', 'when', 'what', 'who', 'client', 'where', 'request', 'cause', 'details'];

/** What stands in columns of its own, or says nothing to people. */
const NOT_DETAILS: ReadonlySet<string> = new Set(['location_id', 'index', 'message_id', 'purchased_at', 'payment_reference', 'transaction_id', 'event_id']);
const MAX_DETAILS = 400;
const ID_SHOWN = 8;

/** The rows of a history: `cause` is the number of the event that led to this one, where it stands in the history. */
export function historyRows(events: readonly EventView[]): Cell[][] {
  const numbers = new Map(events.map(({ id }, index) => [id, index + 1]));
  return events.map(({ type, at, by, request_id, causation_id, data }, index) => {
    const cause = causation_id === null ? undefined : numbers.get(causation_id);
    const who = [by.user ?? '', ...(by.roles === undefined || by.roles.length === 0 ? [] : [`(${by.roles.join(' ')})`])].join(' ');
    const where = (data as { readonly location_id?: string }).location_id;
    return [index + 1, at, type, who, by.client, where, request_id, cause === undefined ? causation_id?.slice(0, ID_SHOWN) : `#${cause}`, detailsOf(data)];
  });
}

function detailsOf(data: object): string {
  const details = Object.entries(data).flatMap(([field, value]) => (NOT_DETAILS.has(field) || value === null ? [] : [`${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`]));
  const text = details.join(' ');
  return shortened(text, MAX_DETAILS);
}
