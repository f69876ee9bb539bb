/** Route that lists redemptions (docs/support.md#ops-formats). */
import { ticks } from '../../lib/world.js';
import type { LogRange } from '../../ops/ranges/range.js';
import {
  redemptionTopic,
  REDEMPTION_FILTERS,
  REDEMPTION_FILTER_NAMES,
  type RedemptionFilter,
  type RedemptionRecord,
  readRedemptions,
  redemptionCsv,
  unknownTo,
} from '../../ops/redemptions/redemptionHistory.js';
import type { Shortcodes } from '../../domain/giftIds.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { alsoNamed } from '../pipeline/query.js';
import type { Call } from '../pipeline/route.js';
import { entity, integerSchema, jsonAnswer, orNull, querySchema, textSchema } from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import { CONTENT_TYPES, alsoAs, formatOf, formatParameter, isCsv } from './formats.js';
import type { OpsRoute } from './frame.js';
import { limitParameter, nextPageSchema, PAGE_MS } from './nextPages.js';
import {
  rangeExample,
  rangeParameters,
  rangeProperties,
  refuseUnknownFilter,
  requestedRange,
  requestedZone,
} from './ranges.js';

const text = { type: 'string', minLength: 1, maxLength: 64 };
const ID = textSchema();

const filterParameters = Object.fromEntries(
  REDEMPTION_FILTER_NAMES.map((name) => {
    const { chosen, columns } = REDEMPTION_FILTERS[name];
    return [name, { ...text, description: `Only ${chosen}.`, ...alsoNamed(columns) }];
  }),
);

const recordSchema = entity('RedemptionRecord', {
  ...(eventSchema['properties'] as typeof filterParameters),
  gift_id: ID,
  redemption: {
    type: 'object',
    description: 'The redemption; for a reversal, the reversed redemption.',
    required: [
      'redemption_id',
      'location_id',
      'location_merchant_id',
      'merchant_id',
      'brand_id',
      'product_id',
      'value',
    ],
    properties: {
      redemption_id: ID,
      location_id: ID,
      location_merchant_id: textSchema("The location's merchant."),
      merchant_id: orNull(textSchema("The location's merchant if the gift was valid for it; else null.")),
      brand_id: ID,
      product_id: ID,
      value: integerSchema('Pence.'),
    },
  },
});

const recordExample = {
  ...eventExample,
  gift_id: '5f2c9d6a1b7e4c80d3a1',
  redemption: eventExample.data,
} as RedemptionRecord;

export function redemptionAuditRoutes({ engines, gifts }: Pick<OpsDeps, 'engines' | 'gifts'>): OpsRoute[] {
  return [
    {
      method: 'GET',
      path: '/ops/redemptions',
      operation: 'listRedemptions',
      summary: 'Redemptions and their reversals',
      description:
        'In the order of the log. A page may hold fewer records than `limit`, even none, and not be the last: `next` is the `after` of the following page, null at the end. ' +
        'A stream has any length; to resume an interrupted one, send the position of its last complete record as `after`.',
      tag: 'Audit',
      roles: ['auditor'],
      query: querySchema({
        ...rangeParameters,
        ...filterParameters,
        after: textSchema('Only after this position.', { maxLength: 32 }),
        ...limitParameter,
        ...formatParameter,
      }),
      answers: [
        jsonAnswer(
          'The records.',
          nextPageSchema(recordSchema, rangeProperties),
          { data: [recordExample], next: null, ...rangeExample },
          { alsoAs },
        ),
      ],
      async handle(call) {
        const { query } = call;
        const range = await requestedRange(engines.events, query);
        const filter = filterOf(query, gifts.shortcodes);
        const recorded = redemptionTopic(filter);
        await refuseUnknown(engines.events, filter);
        const format = formatOf(call);
        if (format === 'json') {
          const { records, next } = await page(engines.events, range, filter, query['limit'] as number);
          return { body: { data: records, next, ...range }, shown: records.length, recorded };
        }
        const csv = redemptionCsv(engines.events, { zone: requestedZone(query), excel: format === 'excel' });
        const linesOf = async (records: readonly RedemptionRecord[]): Promise<string> =>
          isCsv(format) ? csv.lines(records) : records.map((record) => `${JSON.stringify(record)}\n`).join('');
        return {
          contentType: CONTENT_TYPES[format],
          recorded,
          async *records() {
            yield { text: isCsv(format) ? csv.heading : '', count: 0, position: range.after };
            for await (const { records, position } of readRedemptions(engines.events, range, filter))
              yield { text: await linesOf(records), count: records.length, position };
          },
        };
      },
    },
  ];
}

/** @throws HttpError `schema` naming a filter's value that the log does not know; UnavailableError */
export async function refuseUnknown(events: EventStore, filter: RedemptionFilter): Promise<void> {
  refuseUnknownFilter(await unknownTo(events, filter));
}

function filterOf(query: Call['query'], shortcodes: Shortcodes): RedemptionFilter {
  const named: RedemptionFilter = Object.fromEntries(
    REDEMPTION_FILTER_NAMES.map((name) => [name, query[name] as string | undefined]),
  );
  return named.gift === undefined ? named : { ...named, gift: shortcodes.giftIdOf(named.gift) ?? named.gift };
}

async function page(
  events: EventStore,
  range: LogRange,
  filter: RedemptionFilter,
  limit: number,
): Promise<{ records: RedemptionRecord[]; next: Position | null }> {
  const startedAt = ticks();
  const found: RedemptionRecord[] = [];
  for await (const { records, position } of readRedemptions(events, range, filter)) {
    found.push(...records);
    if (found.length > limit) return { records: found.slice(0, limit), next: found[limit - 1]?.position ?? null };
    if (range.through !== null && position < range.through && ticks() - startedAt >= PAGE_MS)
      return { records: found, next: position };
  }
  return { records: found, next: null };
}
