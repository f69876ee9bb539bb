/** Route that reads the log (docs/support.md#the-log). */
import { ticks } from '../../lib/world.js';
import { eventView } from '../../ops/history/eventView.js';
import { withPersonalTexts } from '../../ops/history/personalTexts.js';
import {
  lastOfLog,
  LOG_FILTERS,
  type LogFilter,
  logTopic,
  readLog,
  unknownLogFilter,
} from '../../ops/history/readLog.js';
import type { LogRange } from '../../ops/ranges/range.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { kindOf } from '../../domain/streamName.js';
import { faultOf } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import { type OpsRoute, STAFF } from './frame.js';
import { limitParameter, nextPageSchema, PAGE_MS } from './nextPages.js';
import { rangeExample, rangeParameters, rangeProperties, refuseUnknownFilter, requestedRange } from './ranges.js';
import { flagSchema, integerSchema, jsonAnswer, querySchema, textSchema } from '../pipeline/schemas.js';

const TEXT = { type: 'string', minLength: 1, maxLength: 256 };

const filterParameters = Object.fromEntries(
  Object.entries(LOG_FILTERS).map(([name, chosen]) => [name, { ...TEXT, description: `Only ${chosen}.` }]),
) satisfies Record<string, Schema>;

/** Streams whose personal fields are shown here. A person's own are shown by `/ops/people`, which records the person. */
const OF_ONE_GIFT: ReadonlySet<string> = new Set(['gift', 'notification', 'transaction']);

interface Page {
  readonly found: readonly RecordedEvent[];
  readonly next: Position | null;
  readonly end: boolean;
}

export function logRoutes({
  engines: { events },
  gifts: { subjects },
}: Pick<OpsDeps, 'engines' | 'gifts'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/log',
      operation: 'listLogEvents',
      summary: 'Events of the log',
      description:
        'In the order of the log, without access records. All filters must match. A page may hold fewer events than `limit`, even none, and not be the last. ' +
        'At the end of the log `end` is true, and `next` is where a later call goes on: a live tail is a poll of it. Such a call leaves no access record where it shows no event.',
      tag: 'Audit',
      roles: STAFF,
      personal: true,
      query: querySchema({
        ...filterParameters,
        ...rangeParameters,
        after: textSchema('Only after this position.', { maxLength: 32 }),
        last: integerSchema(
          'The last so many events that match, in place of `limit`, `after`, `from` and `to`. Fewer where a search of a second finds no more.',
          { minimum: 1, maximum: 1_000 },
        ),
        ...limitParameter,
      }),
      answers: [
        jsonAnswer(
          'The events.',
          nextPageSchema(
            eventSchema,
            {
              end: flagSchema('Whether the log, or the span of time, was read to its end.'),
              ...rangeProperties,
            },
            '`after` of the next page, also at the end; null: there was no event yet.',
          ),
          { data: [eventExample], next: eventExample.position, end: false, ...rangeExample },
        ),
      ],
      async handle({ query }, sight) {
        const last = query['last'] as number | undefined;
        const other = ['after', 'from', 'to'].find((name) => query[name] !== undefined);
        if (last !== undefined && other !== undefined) throw faultOf('last', `must not be given with ${other}`);
        const filter = query as LogFilter;
        if (sight.personal && !OF_ONE_GIFT.has(kindOf(filter.stream ?? '')))
          throw faultOf('personal', 'needs the stream of a gift, a notification or a transaction');
        const range = await requestedRange(events, query);
        refuseUnknownFilter(await unknownLogFilter(events, filter));
        const { found, after, ...page } =
          last === undefined
            ? { ...(await pageOf(events, range, filter, query as unknown as PageQuery)), after: range.after }
            : await lastPage(events, range, filter, last);
        const shown = await withPersonalTexts(subjects, found, sight);
        const data = shown.map((event) => eventView(event, sight));
        return {
          body: { data, ...page, ...range, after },
          shown: data.length,
          recorded: logTopic(filter),
          nothingNew: data.length === 0 && page.end && query['after'] !== undefined,
        };
      },
    },
  ];
}

interface PageQuery {
  readonly limit: number;
  readonly after?: string;
}

async function pageOf(
  events: EventStore,
  range: LogRange,
  filter: LogFilter,
  { limit, after = range.after ?? undefined }: PageQuery,
): Promise<Page> {
  const { through } = range;
  const startedAt = ticks();
  const found: RecordedEvent[] = [];
  for await (const { events: more, position } of readLog(events, range, filter)) {
    found.push(...more);
    if (found.length > limit)
      return { found: found.slice(0, limit), next: found[limit - 1]?.position ?? null, end: false };
    if (through !== null && position < through && ticks() - startedAt >= PAGE_MS)
      return { found, next: position, end: false };
  }
  return { found, next: through ?? after ?? null, end: true };
}

async function lastPage(
  events: EventStore,
  { through }: LogRange,
  filter: LogFilter,
  count: number,
): Promise<Page & { readonly after: Position | null }> {
  const last = await lastOfLog(events, through, filter, { count, withinMs: PAGE_MS });
  return { found: last.events, after: last.after, next: through, end: true };
}
