/** Routes for the history and past states of gifts (docs/commands.md). */
import { nextTurn } from '../../lib/world.js';
import { EVENT_COLUMNS, eventRow } from '../../ops/history/eventRows.js';
import { eventView } from '../../ops/history/eventView.js';
import { type HistoryDeps, type NamedGifts, giftHistory, namedGifts } from '../../ops/history/giftHistory.js';
import { asOf } from '../../ops/ranges/timeBounds.js';
import { DEFAULT_ZONE } from '../../ops/ranges/times.js';
import { MASK } from '../../lib/mask.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { faultOf, HttpError } from '../pipeline/errors.js';
import { giftEmbeddedSchema, giftExample, maskedGiftSchema } from '../gifts/schemas.js';
import type { EarlyCall } from '../pipeline/route.js';
import {
  countSchema,
  jsonAnswer,
  listSchema,
  querySchema,
  record,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import { CONTENT_TYPES, alsoAs, formatOf, formatParameter, lineWriter } from './formats.js';
import { withPersonalTexts } from '../../ops/history/personalTexts.js';
import { type Exported, type OpsRoute, STAFF } from './frame.js';
import { ALL_RELATIONS, giftAsOf } from '../../ops/history/giftAsOf.js';
import { requestedPastInstant, requestedZone, zoneParameter } from './ranges.js';

const PARAMS = { giftId: "The gift's id or shortcode, the id of one of its redemptions, or its transaction's." };
const EVENTS_A_PIECE = 100;
/**
 * The most events of an answer that is not streamed. Longer histories are streamed, so that other requests don't wait:
 * a purchase may have thousands of gifts.
 */
const AT_ONCE = 500;
/** Without a default, so that access records name the zone only where it was requested. */
const { default: _, ...ZONE_OF_DAYS } = zoneParameter.time_zone;

export function giftAuditRoutes({ engines, models, gifts, hash }: OpsDeps): OpsRoute[] {
  const deps: HistoryDeps = { events: engines.events, models, hash, subjects: gifts.subjects };
  const named = async (id: string): Promise<NamedGifts> => {
    const found = await namedGifts(deps, id);
    if (found === undefined) throw new HttpError('gift_not_found');
    return found;
  };
  const exists = async ({ params: { giftId = '' } }: EarlyCall): Promise<unknown> => named(giftId);
  return [
    {
      method: 'GET',
      path: '/ops/gifts/:giftId/history',
      operation: 'getGiftHistory',
      summary: "Every event of a gift's life",
      description:
        'Across streams, in log order: the purchase and its payment, the issue, notifications, redemptions, vouchers, parked work. A transaction gives the lives of all its gifts; ' +
        'of a purchase of several gifts only the receivers of those asked for are shown.',
      tag: 'Audit',
      roles: STAFF,
      personal: true,
      params: PARAMS,
      reads: ['redemptions'],
      query: querySchema({ ...formatParameter, time_zone: ZONE_OF_DAYS }),
      answers: [
        jsonAnswer(
          'The events.',
          record({
            data: listSchema(eventSchema),
            transaction_id: textSchema(),
            gift_ids: listSchema(textSchema()),
          }),
          { data: [eventExample], transaction_id: giftExample.transaction_id, gift_ids: [giftExample.id] },
          { alsoAs },
        ),
      ],
      errors: ['gift_not_found'],
      exists,
      async handle(call, sight) {
        const zone = requestedZone(call.query);
        const found = await named(call.params['giftId'] ?? '');
        const events = await withPersonalTexts(deps.subjects, await giftHistory(deps, found), sight);
        const format = formatOf(call);
        const about = { transaction_id: found.transactionId, gift_ids: found.giftIds };
        const recorded = { transactionId: found.transactionId };
        if (format === 'json' && events.length <= AT_ONCE)
          return {
            body: { data: events.map((event) => eventView(event, sight)), ...about },
            shown: events.length,
            recorded,
          };
        if (format === 'json') {
          const rest = `],${JSON.stringify(about).slice(1)}`;
          return {
            contentType: 'application/json; charset=utf-8',
            recorded,
            records: () => inPieces(events, '{"data":[', ',', rest, (event) => JSON.stringify(eventView(event, sight))),
          };
        }
        const { heading, line } = lineWriter(format, EVENT_COLUMNS, eventRow, zone);
        return {
          contentType: CONTENT_TYPES[format],
          recorded,
          records: () => inPieces(events, heading, '', '', (event) => line(eventView(event, sight))),
        };
      },
    },
    {
      method: 'GET',
      path: '/ops/gifts/:giftId/as-of',
      operation: 'getGiftAsOf',
      summary: 'A gift as it was at a time',
      description:
        "The API's answer at that time, with the catalogue and accounts of that time, to the owner at that time or another user. The voucher's code is never shown, the message only with `personal`.",
      tag: 'Audit',
      roles: STAFF,
      personal: true,
      params: PARAMS,
      reads: ['redemptions'],
      embeds: ALL_RELATIONS,
      query: querySchema(
        {
          time: textSchema(
            'A past time (`2026-05-04T12:30:00Z`; without an offset in `time_zone`), or a day: its end, or now if it has not ended.',
            { maxLength: 64 },
          ),
          ...zoneParameter,
          viewer: textSchema(
            'The id of the user who sees the answer. Default: the owner at that time, or else the buyer.',
            { minLength: 1, maxLength: 64 },
          ),
        },
        ['time'],
      ),
      answers: [
        jsonAnswer(
          'The gift.',
          record(
            {
              as_of: timeSchema(),
              position: textSchema("The log's position at that time."),
              stamped_later: countSchema(
                'Number of events before that position that a clock stamped later: they are left out.',
              ),
              time_zone: textSchema(),
              viewer: textSchema(),
              blocked_by: listSchema(textSchema(), 'What blocked the gift then: no answer of the API shows it.'),
              data: maskedGiftSchema,
              embedded: giftEmbeddedSchema,
            },
            ['as_of', 'position', 'stamped_later', 'time_zone', 'viewer', 'blocked_by', 'data'],
          ),
          {
            as_of: '2026-05-04T12:30:00.000Z',
            position: '0000000000001042',
            stamped_later: 0,
            time_zone: DEFAULT_ZONE,
            viewer: giftExample.sender_id,
            blocked_by: [],
            data: { ...giftExample, shortcode: MASK, launch_url: `https://gifts.example/g/${MASK}` },
          },
        ),
      ],
      errors: ['gift_not_found'],
      exists,
      async handle({ params, query, embeds }, { personal }) {
        const time = requestedPastInstant(query, query['time'] as string, gifts.now());
        const { giftIds, purchase, transactionId } = await named(params['giftId'] ?? '');
        const [giftId] = giftIds;
        if (giftId === undefined || giftIds.length > 1)
          throw new HttpError('schema', {
            message: `the id must name one gift: this transaction has ${giftIds.length}`,
          });
        const moment = await asOf(deps.events, time);
        const viewer = query['viewer'] as string | undefined;
        const requested = { giftId, purchase, moment, embeds, personal, viewer };
        const then = await giftAsOf({ ...deps, catalogue: models.catalogue, publicUrl: gifts.publicUrl }, requested);
        if (then === 'no viewer') throw faultOf('viewer', 'must be a user of that time');
        if (then === undefined || moment === undefined) throw new HttpError('gift_not_found');
        const { data, embedded } = then;
        return {
          body: {
            as_of: time,
            position: moment.position,
            stamped_later: moment.stampedLater,
            time_zone: query['time_zone'],
            viewer: then.viewer,
            blocked_by: then.blocked_by,
            data,
            embedded,
          },
          shown: 1,
          recorded: { transactionId },
        };
      },
    },
  ];
}

async function* inPieces(
  events: readonly RecordedEvent[],
  before: string,
  between: string,
  after: string,
  textOf: (event: RecordedEvent) => string,
): AsyncGenerator<Exported> {
  yield { text: before, count: 0, position: null };
  for (let from = 0; from < events.length; from += EVENTS_A_PIECE) {
    const piece = events.slice(from, from + EVENTS_A_PIECE);
    yield {
      text: (from === 0 ? '' : between) + piece.map(textOf).join(between),
      count: piece.length,
      position: piece.at(-1)?.position ?? null,
    };
    await nextTurn();
  }
  yield { text: after, count: 0, position: events.at(-1)?.position ?? null };
}
