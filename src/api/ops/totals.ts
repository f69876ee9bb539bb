/** Route that shows and checks totals (docs/commands.md). */
import { type TotalsCheck, checkTotals } from '../../ops/totals/checkTotals.js';
import { foldTotals, noSums, sumOf, totalsCsv } from '../../ops/totals/totals.js';
import { faultOf } from '../pipeline/errors.js';
import { alsoNamed } from '../pipeline/query.js';
import {
  countSchema,
  entity,
  flagSchema,
  integerSchema,
  jsonAnswer,
  listSchema,
  querySchema,
  record,
  textSchema,
} from '../pipeline/schemas.js';
import { CONTENT_TYPES, alsoAs, formatOf, formatParameter, isCsv } from './formats.js';
import type { OpsRoute } from './frame.js';
import { requestedRange, rangeExample, rangeParameters, rangeProperties, requestedZone } from './ranges.js';
import type { OpsDeps } from './deps.js';
import { refuseUnknown } from './redemptions.js';

const COUNT = countSchema();
const PENCE = integerSchema('Pence.');
/** Schema of sums that may be negative, since a reversal may fall on another day than its origin. */
const MAY_BE_NEGATIVE = integerSchema(
  'Negative where more came back than went (a refund that failed, a dispute that was won on appeal).',
);
const sumProperties = Object.fromEntries(
  Object.keys(noSums()).map((name) => [
    name,
    name.endsWith('_value') ? PENCE : ['refunded', 'charged_back'].includes(name) ? MAY_BE_NEGATIVE : COUNT,
  ]),
);

const sumsSchema = entity('Sums', sumProperties);
const rowSchema = entity('TotalRow', {
  day: { type: 'string', format: 'date' },
  merchant_id: textSchema(),
  ...sumProperties,
});
const checkSchema = entity('TotalsCheck', {
  agree: flagSchema('Log and streams agree to the penny, and there are no faults.'),
  transactions: COUNT,
  gifts: COUNT,
  not_issued_yet: countSchema('Gifts that are paid for and not issued yet.'),
  differences: listSchema({
    type: 'object',
    required: ['day', 'merchant_id', 'field', 'log', 'streams'],
    properties: {
      day: textSchema(),
      merchant_id: textSchema(),
      field: textSchema(),
      log: integerSchema(),
      streams: integerSchema(),
    },
  }),
  faults: listSchema({
    type: 'object',
    required: ['transaction_id', 'fault'],
    properties: { transaction_id: textSchema(), gift_id: textSchema(), fault: textSchema() },
  }),
  differences_found: COUNT,
  faults_found: COUNT,
});

const sumsExample = { ...noSums(), issued: 3, issued_value: 1_050, redeemed: 1, redeemed_value: 350 };
const checkExample: TotalsCheck = {
  agree: true,
  transactions: 1,
  gifts: 3,
  not_issued_yet: 0,
  differences: [],
  faults: [],
  differences_found: 0,
  faults_found: 0,
};

export function totalsRoutes({ engines, models }: OpsDeps): OpsRoute[] {
  const { events } = engines;
  return [
    {
      method: 'GET',
      path: '/ops/totals',
      operation: 'getTotals',
      summary: 'Totals per merchant and day',
      description:
        "Gifts issued, redeemed, taken back and refunded, and disputes that were lost (`charged_back`), counted and in pence, folded from the log. What is issued, refunded and charged back is its brand's merchant's, what is redeemed and taken back the location's. " +
        'With `check` every stream of the transactions and gifts is read and summed again, which takes time: `check.agree` says whether both agree to the penny.',
      tag: 'Audit',
      roles: ['auditor'],
      query: querySchema({
        ...rangeParameters,
        merchant: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: "Only this merchant's.",
          ...alsoNamed(['merchant_id']),
        },
        check: flagSchema('Also compare the totals of all merchants with the streams. Only in JSON.', {
          default: false,
        }),
        ...formatParameter,
      }),
      answers: [
        jsonAnswer(
          'The totals.',
          record({ data: listSchema(rowSchema), sums: sumsSchema, check: checkSchema, ...rangeProperties }, [
            'data',
            'sums',
            ...Object.keys(rangeProperties),
          ]),
          {
            data: [{ day: '2026-05-04', merchant_id: 'm1', ...sumsExample }],
            sums: sumsExample,
            check: checkExample,
            ...rangeExample,
          },
          { alsoAs },
        ),
      ],
      async handle(call) {
        const range = await requestedRange(events, call.query);
        const zone = requestedZone(call.query);
        const format = formatOf(call);
        // Totals without their check would be taken for totals that agree.
        if (format !== 'json' && call.query['check'] === true)
          throw faultOf('check', 'is answered in JSON only: give format=json, or leave it out');
        const signal = call.left;
        const merchant = call.query['merchant'] as string | undefined;
        await refuseUnknown(events, { merchant });
        const all = await foldTotals(events, range, zone, { signal });
        const rows = merchant === undefined ? all : all.filter(({ merchant_id }) => merchant_id === merchant);
        if (format !== 'json') {
          const lines = isCsv(format)
            ? await totalsCsv(events, rows, range, { excel: format === 'excel' })
            : rows.map((row) => JSON.stringify(row));
          return {
            contentType: CONTENT_TYPES[format],
            async *records() {
              yield { text: lines.map((line) => `${line}\n`).join(''), count: rows.length, position: range.through };
            },
          };
        }
        const check =
          call.query['check'] === true
            ? { check: await checkTotals({ events, transactions: models.transactions }, all, range, zone, { signal }) }
            : {};
        return { body: { data: rows, sums: sumOf(rows), ...check, ...range }, shown: rows.length };
      },
    },
  ];
}
