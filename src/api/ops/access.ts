/** Route that lists access records (docs/support.md#access-records). */
import { eventView } from '../../ops/history/eventView.js';
import { type AccessFilter, type AccessPosition, readAccess } from '../../ops/history/accessRecords.js';
import type { Shortcodes } from '../../domain/giftIds.js';
import { idOf } from '../../domain/streamName.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { faultOf } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import type { OpsRoute } from './frame.js';
import { limitParameter, nextPageSchema } from './nextPages.js';
import { dayParameter } from './ranges.js';

/** Cost at which an answer ends, in records read; each page of records costs `COST_OF_DAY` more. */
const MOST_READ = 10_000;
/** Cost of reading a page, in records: a day without records is read, too. */
const COST_OF_DAY = 10;

const TEXT: Schema = { type: 'string', minLength: 1, maxLength: 256 };

export function accessRoutes({ engines, gifts: { now, shortcodes } }: Pick<OpsDeps, 'engines' | 'gifts'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/access',
      operation: 'listAccess',
      summary: 'Who saw what',
      description: `The records that calls under \`/ops\` and exports left on a day, or from one day to another (UTC), this call not among them, in order. \`next\` is the \`after\` of the following page; a page may hold less than \`limit\`, since at most ${MOST_READ} records are read for it.`,
      tag: 'Audit',
      roles: ['auditor'],
      query: {
        type: 'object',
        properties: {
          ...dayParameter('day', 'The day (UTC), `YYYY-MM-DD`. Default: today.'),
          ...dayParameter('from', 'In place of `day`: from this day on.'),
          ...dayParameter('to', 'With `from`: up to this day. Default: today.'),
          person: { ...TEXT, description: 'Only calls about this user, or `phone:{phone_id}`, or that found them.' },
          gift: { ...TEXT, description: 'Only calls about this gift, by its id or shortcode.' },
          who: { ...TEXT, description: 'Only calls by this user, or `cli:{system user}@{host}`.' },
          after: {
            type: 'string',
            pattern: '^(?:-1|\\d{1,15}|\\d{4}-\\d{2}-\\d{2}\\.(?:-1|\\d{1,15}))$',
            default: '-1',
            description: 'Only records behind this place: a revision of the `day`, or with `from` a `next`.',
          },
          ...limitParameter,
        },
      },
      answers: [
        {
          status: 200,
          description: 'The records.',
          schema: nextPageSchema(eventSchema, ['integer', 'string']),
          example: {
            data: [
              {
                ...eventExample,
                stream: 'access-2026-05-04',
                type: 'RecordsShown',
                data: {
                  what: 'GET /ops/access',
                  asked: { day: '2026-05-03' },
                  personal: false,
                  reason: null,
                  count: 3,
                },
              },
            ],
            next: null,
          },
        },
      ],
      errors: [],
      async handle({ query }, sight) {
        const { position, to } = requestedSpan(query, now());
        const limit = query['limit'] as number;
        const filter = requestedFilter(query, shortcodes);
        const { records, next } = await pageOf(engines.events, position, to, filter, limit);
        const body = {
          data: records.map((event) => eventView(event, sight)),
          next:
            next === undefined ? null : query['from'] === undefined ? next.revision : `${next.day}.${next.revision}`,
        };
        const recorded = filter.gift === undefined ? {} : { gift: filter.gift };
        return { status: 200, body, shown: records.length, recorded };
      },
    },
  ];
}

type Query = Readonly<Record<string, unknown>>;

/** @throws HttpError `schema` */
function requestedSpan(query: Query, now: string): { readonly position: AccessPosition; readonly to: string } {
  const { day, from, to, after } = query as Readonly<Record<'day' | 'from' | 'to', string | undefined>> & {
    readonly after: string;
  };
  if (day !== undefined && (from ?? to) !== undefined) throw faultOf('day', 'must not be given with from or to');
  if (to !== undefined && from === undefined) throw faultOf('to', 'must be given with from');
  const today = now.slice(0, 10);
  const first = from ?? day ?? today;
  const last = to ?? (from === undefined ? first : today);
  if (last < first) throw faultOf('to', 'must not be before from');
  const [, before, revision = ''] = /^(?:(.{10})\.)?(.+)$/.exec(after) ?? [];
  const isOther =
    before !== undefined && (from === undefined || before < first || before > last || Number.isNaN(Date.parse(before)));
  if (isOther || (before === undefined && from !== undefined && after !== '-1')) throw faultOf('after', 'is not valid');
  return { position: { day: before ?? first, revision: Number(revision) }, to: last };
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
  from: AccessPosition,
  to: string,
  filter: AccessFilter,
  limit: number,
): Promise<{ readonly records: readonly RecordedEvent[]; readonly next: AccessPosition | undefined }> {
  const records: RecordedEvent[] = [];
  let cost = 0;
  for await (const page of readAccess(events, from, to, filter)) {
    records.push(...page.records);
    if (records.length > limit) {
      const { stream, revision } = records[limit - 1] as RecordedEvent;
      return { records: records.slice(0, limit), next: { day: idOf(stream), revision } };
    }
    cost += page.read + COST_OF_DAY;
    if (cost >= MOST_READ) return { records, next: page.position };
  }
  return { records, next: undefined };
}
