/** The event feed (docs/api/events.md#list-events). */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { parsedPosition, positionText } from '../../ports/positionText.js';
import type { FeedDocument } from '../../projections/feed/feed.js';
import { feedEvent } from '../../projections/feed/feedEvent.js';
import { feedPage, type FeedPage } from '../../projections/feed/feedPage.js';
import { ALL_ENTRY_TYPES, type EntryType } from '../../projections/feed/entryTypes.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { faultOf } from '../pipeline/errors.js';
import type { Principal } from '../pipeline/principal.js';
import type { Call, Route } from '../pipeline/route.js';
import { listSchema, record } from '../representation/schemas.js';
import { eventExample, eventSchema } from './schemas.js';
import { feedWatch } from './feedWatch.js';

const MAX_WAIT_S = 30;
export interface EventRouteDeps {
  readonly events: Pick<EventStore, 'logId' | 'isPosition' | 'end'>;
  readonly feed: ReadModel<FeedDocument>;
  readonly stopping: AbortSignal;
  /** @throws HttpError `authentication_failed`; UnavailableError */
  readonly recognise: (authorization: string | undefined) => Promise<Principal>;
}

export function eventRoutes({ events, feed, stopping, recognise }: EventRouteDeps): Route[] {
  const watch = feedWatch(feed, stopping);

  /** Answers the first page with an event, or with what there is once `wait` seconds have passed. */
  async function waitForPage(call: Call, after: Position | undefined): Promise<FeedPage> {
    const { types, limit, wait } = call.query as { types?: EntryType[]; limit: number; wait: number };
    const request = { limit, ...(types === undefined ? {} : { types: new Set(types) }) };
    const until = performance.now() + wait * 1_000;
    let page = await feedPage(feed, call.principal, { ...request, after });
    while (page.entries.length === 0 && !page.more) {
      const ms = until - performance.now();
      if (ms <= 0) return page;
      const { sources, through: position } = page;
      const caller = callerName(call.principal);
      if (!(await watch.wait({ caller, sources, position, ms, left: call.left }))) return page;
      // During the wait the login may have ended, or its user may have changed.
      const principal = await recognise(call.header('authorization'));
      page = await feedPage(feed, principal, { ...request, after: position });
    }
    return page;
  }

  return [
    {
      method: 'GET',
      path: '/api/v2/events',
      operation: 'listEvents',
      summary: 'What has happened, in order',
      description:
        'A client’s token sees what was bought through that client. A user’s sees what the user bought, what happens to gifts while they are the user’s, and, for a merchant’s user, redemptions at the merchant. ' +
        'Events are complete, in the order of the log, the same in every reading. `next` is the `after` of the following page, also where nothing came.',
      tag: 'Events',
      caller: 'any',
      noStore: true,
      reads: ['feed'],
      query: {
        type: 'object',
        properties: {
          after: { type: 'string', maxLength: 128, description: 'A `position` or `next`: only later events.' },
          types: {
            type: 'array',
            items: {
              type: 'string',
              enum: ALL_ENTRY_TYPES,
              // An error message that lists all types would be too long.
              'x-errors': { enum: 'types: not a type of event; /openapi.json lists them' },
            },
            description: 'Only events of these types.',
          },
          limit: { type: 'integer', minimum: 1, maximum: 500, default: 100, description: 'The most events of a page.' },
          wait: {
            type: 'integer',
            minimum: 0,
            maximum: MAX_WAIT_S,
            default: 0,
            description: 'Where there is no event yet: how long to wait for one, in seconds.',
          },
        },
      },
      answers: [
        {
          status: 200,
          description: 'The events.',
          schema: record({
            data: listSchema(eventSchema),
            next: { type: ['string', 'null'], description: '`after` of the next page; null while the log is empty.' },
            has_more: {
              type: 'boolean',
              description: 'Whether the next page may have events by now. An empty page may have more behind it.',
            },
          }),
          example: { data: [eventExample], next: eventExample.position, has_more: false },
        },
      ],
      errors: ['too_many_requests'],
      async handle(call) {
        const after = await positionIn(call.query['after'] as string | undefined, events);
        const { entries, through, more } = await waitForPage(call, after);
        const data = entries.map((placed) => feedEvent(placed, events.logId));
        const next = through === undefined ? null : positionText(events.logId, through);
        return { status: 200, body: { data, next, has_more: more } };
      },
    },
  ];
}

function callerName(principal: Principal): string {
  return principal.kind === 'user'
    ? `user ${principal.user.id}`
    : principal.kind === 'client'
      ? `client ${principal.clientId}`
      : '';
}

/** @throws HttpError `schema`; UnavailableError */
async function positionIn(text: string | undefined, events: EventRouteDeps['events']): Promise<Position | undefined> {
  if (text === undefined) return undefined;
  const parsed = parsedPosition(text);
  if (parsed === undefined || (parsed.log === events.logId && !events.isPosition(parsed.position)))
    throw faultOf('after', 'must be the `position` of an event, or the `next` of a page');
  if (parsed.log !== events.logId)
    throw faultOf('after', 'is of another log: start without it; events that you have seen keep their ids');
  const end = await events.end();
  // A log restored from a backup may end before this position, and would hide its next events from this caller.
  if (end === undefined || parsed.position > end)
    throw faultOf(
      'after',
      'lies beyond the end of the log: start without it; events that you have seen keep their ids',
    );
  return parsed.position;
}
