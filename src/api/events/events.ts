/** The event feed (docs/api/events.md#list-events). */
import { inParallel } from '../../lib/async/inParallel.js';
import { basePathOf } from '../../lib/urls.js';
import { ticks } from '../../lib/world.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { parsedPosition, positionText } from '../../ports/positionText.js';
import type { FeedDocument } from '../../projections/feed/feed.js';
import { feedEvent } from '../../projections/feed/feedEvent.js';
import { feedPage, type FeedPage, type PlacedEntry } from '../../projections/feed/feedPage.js';
import { type WebhookEvent, webhookEvent } from '../../projections/feed/subject.js';
import { ALL_ENTRY_TYPES, type EntryType } from '../../projections/feed/entryTypes.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { faultOf } from '../pipeline/errors.js';
import type { Principal } from '../pipeline/principal.js';
import type { Call, Route } from '../pipeline/route.js';
import {
  choiceSchema,
  countSchema,
  flagSchema,
  integerSchema,
  jsonAnswer,
  listSchema,
  orNull,
  record,
  textSchema,
} from '../pipeline/schemas.js';
import { CLOUD_EVENTS, cloudEvent, cloudEventExample, cloudEventsSchema } from './cloudEvents.js';
import { eventExample, eventSchema } from './schemas.js';
import { feedWatch } from './feedWatch.js';
import { type Form, FORMS, viewerFor } from './viewers.js';

const MAX_WAIT_S = 30;
/** `after` of a caller that starts at the end of the feed. */
const END = 'end';
/** The most events of a page in a webhook's form, each of which reads a stream; and how many at once. */
const MOST_WEBHOOKS = { ofPage: 100, atOnce: 8 };

interface EventRouteDeps {
  readonly events: Pick<EventStore, 'logId' | 'isPosition' | 'end' | 'read'>;
  readonly feed: ReadModel<FeedDocument>;
  readonly stopping: AbortSignal;
  readonly publicUrl: string;
  /** @throws HttpError `authentication_failed`; UnavailableError */
  readonly recognise: (authorization: string | undefined) => Promise<Principal>;
}

export function eventRoutes({ events, feed, stopping, publicUrl, recognise }: EventRouteDeps): Route[] {
  const watch = feedWatch(feed, stopping);

  /** Answers the first page with an event, or with what there is once `wait` seconds have passed. */
  async function waitForPage(call: Call, after: Position | undefined): Promise<FeedPage> {
    const { types, limit, wait, form } = call.query as EventQuery;
    const most = form === 'event' ? limit : Math.min(limit, MOST_WEBHOOKS.ofPage);
    const request = { limit: most, ...(types === undefined ? {} : { types: new Set(types) }) };
    const until = ticks() + wait * 1_000;
    let page = await feedPage(feed, viewerFor(call.principal, form), { ...request, after });
    while (page.entries.length === 0 && !page.more) {
      const ms = until - ticks();
      if (ms <= 0) return page;
      const { sources, through: position } = page;
      const caller = callerName(call.principal);
      if (!(await watch.wait({ caller, sources, position, ms, left: call.left }))) return page;
      // During the wait the login may have ended, or its user may have changed.
      const principal = await recognise(call.header('authorization'));
      page = await feedPage(feed, viewerFor(principal, form), { ...request, after: position });
    }
    return page;
  }

  async function webhookEvents(entries: readonly PlacedEntry[]): Promise<readonly WebhookEvent[]> {
    const shown: WebhookEvent[] = [];
    await inParallel(entries.entries(), MOST_WEBHOOKS.atOnce, async ([index, placed]) => {
      shown[index] = await webhookEvent(events, placed, events.logId);
    });
    return shown;
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
          after: textSchema('A `position` or `next`: only later events. `end`: only events from now on.', {
            maxLength: 128,
          }),
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
          limit: integerSchema('The most events of a page.', { minimum: 1, maximum: 500, default: 100 }),
          wait: countSchema('Where there is no event yet: how long to wait for one, in seconds.', {
            maximum: MAX_WAIT_S,
            default: 0,
          }),
          form: choiceSchema(
            FORMS,
            '`webhook`: the bodies that an endpoint of the caller would be sent, with the gift or purchase; at most 100 in a page.',
            { default: 'event' },
          ),
        },
      },
      answers: [
        jsonAnswer(
          'The events.',
          record({
            data: listSchema(eventSchema),
            next: orNull(textSchema('`after` of the next page; null while the log is empty.')),
            has_more: flagSchema(
              'Whether the next page may have events by now. An empty page may have more behind it.',
            ),
          }),
          { data: [eventExample], next: eventExample.position, has_more: false },
          {
            alsoJson: { [CLOUD_EVENTS]: { schema: cloudEventsSchema, example: [cloudEventExample] } },
            headers: { Link: 'Of CloudEvents: `rel="next"` names the next page, also where no event came.' },
          },
        ),
      ],
      errors: ['too_many_requests', 'forbidden'],
      async handle(call) {
        const text = call.query['after'] as string | undefined;
        const after = text === END ? await feed.folded() : await positionIn(text, events);
        const { entries, through, more } = await waitForPage(call, after);
        const { form } = call.query as EventQuery;
        const data =
          form === 'event' ? entries.map((placed) => feedEvent(placed, events.logId)) : await webhookEvents(entries);
        const next = through === undefined ? null : positionText(events.logId, through);
        if (call.preferredType(['application/json', CLOUD_EVENTS]) !== CLOUD_EVENTS)
          return { body: { data, next, has_more: more } };
        const batch = data.map((event) => cloudEvent(event, publicUrl));
        return {
          body: JSON.stringify(batch),
          headers: { 'Content-Type': CLOUD_EVENTS, ...nextLink(call, next, publicUrl) },
        };
      },
    },
  ];
}

/** A batch of CloudEvents has no place for where it ends. */
function nextLink({ rawQuery }: Call, next: string | null, publicUrl: string): Readonly<Record<string, string>> {
  if (next === null) return {};
  const query = new URLSearchParams(rawQuery);
  query.set('after', next);
  return { Link: `<${basePathOf(publicUrl)}/api/v2/events?${query.toString()}>; rel="next"` };
}

type EventQuery = {
  readonly types?: EntryType[];
  readonly limit: number;
  readonly wait: number;
  readonly form: Form;
};

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
