import { shortened } from '../../lib/quotedText.js';
import type { Cell } from '../exports/csv.js';
import type { EventView } from './eventView.js';

export const EVENT_COLUMNS = [
  'position',
  'stream',
  'revision',
  'type',
  'id',
  'at',
  'user',
  'client',
  'roles',
  'request_id',
  'command_id',
  'causation_id',
  'correlation_id',
  'data',
] as const;

export function eventRow({ by: { user, client, roles }, data, ...event }: EventView): Cell[] {
  const cells = { ...event, user, client, roles: roles?.join(' '), data: JSON.stringify(data) };
  return EVENT_COLUMNS.map((column) => cells[column]);
}

export interface EventBlock {
  readonly head: string;
  readonly paragraphs: readonly string[];
}

/** Fields shown elsewhere in a block, or of no use to people. */
const NOT_DETAILS: ReadonlySet<string> = new Set([
  'location_id',
  'index',
  'purchased_at',
  'payment_reference',
  'transaction_id',
  'event_id',
  'GiftIssued message_id',
]);
const MAX_DETAILS = 2_000;
const ID_SHOWN = 8;

/** Events as text. Causes are shown by their numbers in the history; causes outside it by the start of their ids. */
export function eventBlocks(events: readonly EventView[]): EventBlock[] {
  const numbers = new Map(events.map(({ id }, index) => [id, index + 1]));
  return events.map((event, index) => ({
    head: `#${index + 1}  ${event.at}  ${event.type}`,
    paragraphs: paragraphsOf(event, numbers),
  }));
}

/** Events of any streams as text, each with its position and its stream. */
export function logBlocks(events: readonly EventView[]): EventBlock[] {
  return events.map((event) => ({
    head: `${event.position}  ${event.at}  ${event.type}  ${event.stream} #${event.revision}`,
    paragraphs: paragraphsOf(event),
  }));
}

/** @param numbers by which causes are shown */
function paragraphsOf(
  { type, by, request_id, causation_id, data }: EventView,
  numbers?: ReadonlyMap<string, number>,
): string[] {
  const cause = causation_id === null ? undefined : numbers?.get(causation_id);
  const roles = by.roles === undefined || by.roles.length === 0 ? '' : ` (${by.roles.join(' ')})`;
  const where = (data as { readonly location_id?: string }).location_id;
  const circumstances = [
    by.user === undefined ? '' : `by ${by.user}${roles}`,
    by.client === undefined ? '' : `through ${by.client}`,
    where === undefined ? '' : `at ${where}`,
    request_id === null ? '' : `request ${request_id}`,
    causation_id === null ? '' : `because of ${cause === undefined ? causation_id.slice(0, ID_SHOWN) : `#${cause}`}`,
  ]
    .filter((part) => part !== '')
    .join(', ');
  return [circumstances, detailsOf(type, data)].filter((text) => text !== '');
}

function detailsOf(type: string, data: object): string {
  const details = Object.entries(data).flatMap(([field, value]) =>
    NOT_DETAILS.has(field) || NOT_DETAILS.has(`${type} ${field}`) || value === null
      ? []
      : [`${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  );
  return shortened(details.join(' '), MAX_DETAILS);
}
