/** Route that lists access records (docs/support.md#access-records). */
import { eventView } from '../../ops/history/eventView.js';
import { type AccessFilter, type AccessPosition, readAccess, unknownIn } from '../../ops/history/accessRecords.js';
import type { Shortcodes } from '../../domain/giftIds.js';
import { idOf } from '../../domain/streamName.js';
import { openPeople } from '../../ops/people/index.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { faultOf } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import type { OpsRoute } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';
import { rangeParameters, requestedTimes, requestedZone } from './ranges.js';
import { isWithin } from '../../ops/ranges/timeBounds.js';
import { jsonAnswer, querySchema, textSchema } from '../pipeline/schemas.js';

/** Cost at which an answer ends, in records read; each page of records costs `COST_OF_DAY` more. */
const MOST_READ = 10_000;
/** Cost of reading a page, in records: a day without records is read, too. */
const COST_OF_DAY = 10;

const TEXT: Schema = { type: 'string', minLength: 1, maxLength: 256 };

export function accessRoutes({
  engines: { events },
  gifts: { now, shortcodes, subjects },
}: Pick<OpsDeps, 'engines' | 'gifts'>): OpsRoute[] {
  const people = openPeople({ events, subjects });

  /** @throws HttpError `schema` */
  async function refuseUnknown(filter: AccessFilter): Promise<void> {
    const unknown = await unknownIn(events, filter, people.isKnown);
    if (unknown !== undefined) throw faultOf(unknown.field, unknown.fault);
  }

  return [
    {
      method: 'GET',
      path: '/ops/access',
      operation: 'listAccess',
      summary: 'Who saw what',
      description: `The records that calls under \`/ops\` and exports left within a span of time, this call not among them, in order. \`next\` is the \`after\` of the following page; a page may hold less than \`limit\`, since at most ${MOST_READ} records are read for it.`,
      tag: 'Audit',
      roles: ['auditor'],
      query: querySchema({
        ...rangeParameters,
        from: {
          ...rangeParameters.from,
          description: 'Records from this time on, or from the beginning of a day. Default: of the day of `to`.',
        },
        to: { ...rangeParameters.to, description: 'Up to this time, or to the end of a day. Default: now.' },
        person: { ...TEXT, description: 'Only calls about this user, or `phone:{phone_id}`, or that found them.' },
        gift: { ...TEXT, description: 'Only calls about this gift, by its id or shortcode.' },
        who: { ...TEXT, description: 'Only calls by this user, or `cli:{system user}@{host}`.' },
        after: textSchema('Only records after this place: a `next`.', {
          pattern: '^\\d{4}-\\d{2}-\\d{2}\\.(?:-1|\\d{1,15})$',
        }),
        ...limitParameter,
      }),
      answers: [
        jsonAnswer('The records.', nextPageSchema(eventSchema), {
          data: [
            {
              ...eventExample,
              stream: 'access-2026-05-04',
              type: 'RecordsShown',
              data: {
                what: 'GET /ops/access',
                asked: { from: '2026-05-03', to: '2026-05-03', time_zone: 'Europe/London' },
                personal: false,
                reason: null,
                count: 3,
              },
            },
          ],
          next: null,
        }),
      ],
      async handle({ query }, sight) {
        const { position, ...span } = requestedSpan(query, now());
        const limit = query['limit'] as number;
        const filter = requestedFilter(query, shortcodes);
        const { records, next } = await pageOf(events, position, span, filter, limit);
        if (records.length === 0 && next === undefined && query['after'] === undefined) await refuseUnknown(filter);
        const body = {
          data: records.map((event) => eventView(event, sight)),
          next: next === undefined ? null : `${next.day}.${next.revision}`,
        };
        const recorded = filter.gift === undefined ? {} : { gift: filter.gift };
        return { body, shown: records.length, recorded };
      },
    },
  ];
}

type Query = Readonly<Record<string, unknown>>;

/** Times are ISO 8601, UTC. */
interface Span {
  readonly from: string;
  readonly to: string;
}

/** @throws HttpError `schema` */
function requestedSpan(query: Query, now: string): Span & { readonly position: AccessPosition } {
  const times = requestedTimes(query);
  const zone = requestedZone(query);
  const to = times.to ?? now;
  const from = times.from ?? zone.instant(zone.dayOf(to), 'first');
  if (from > to) throw faultOf('from', 'must not be in the future');
  const { after } = query as { readonly after?: string };
  if (after === undefined) return { from, to, position: { day: from.slice(0, 10), revision: -1 } };
  const [day = '', revision = ''] = after.split('.');
  if (day < from.slice(0, 10) || day > to.slice(0, 10) || Number.isNaN(Date.parse(day)))
    throw faultOf('after', 'is not valid');
  return { from, to, position: { day, revision: Number(revision) } };
}

/** @throws HttpError `schema` */
function requestedFilter(query: Query, shortcodes: Shortcodes): AccessFilter {
  const { person, gift, who } = query as AccessFilter;
  const giftId = gift === undefined ? undefined : shortcodes.giftIdOf(gift);
  if (gift !== undefined && giftId === undefined) throw faultOf('gift', 'is not valid');
  return { person, gift: giftId, who };
}

/** @returns the records, and in `next` the position after the last one; `undefined` where there are no more records */
async function pageOf(
  events: OpsDeps['engines']['events'],
  position: AccessPosition,
  span: Span,
  filter: AccessFilter,
  limit: number,
): Promise<{ readonly records: readonly RecordedEvent[]; readonly next: AccessPosition | undefined }> {
  const records: RecordedEvent[] = [];
  let cost = 0;
  for await (const page of readAccess(events, position, span.to.slice(0, 10), filter)) {
    records.push(...page.records.filter((record) => isWithin(record, span)));
    if (records.length > limit) {
      const { stream, revision } = records[limit - 1] as RecordedEvent;
      return { records: records.slice(0, limit), next: { day: idOf(stream), revision } };
    }
    cost += page.read + COST_OF_DAY;
    if (cost >= MOST_READ) return { records, next: page.position };
  }
  return { records, next: undefined };
}
