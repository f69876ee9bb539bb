/** Route that lists purchases (docs/support.md#finding-purchases). */
import { TRANSACTION_STATUSES } from '../../domain/purchase/status.js';
import { ticks } from '../../lib/world.js';
import { PURCHASE_FILTERS, type PurchaseFilter, unknownPurchaseFilter } from '../../ops/purchases/purchaseFilter.js';
import { PURCHASE_COLUMNS, purchaseCells, type PurchaseRow } from '../../ops/purchases/purchaseRows.js';
import {
  purchasePosition,
  PURCHASE_POSITION,
  type PurchaseDeps,
  readPurchases,
} from '../../ops/purchases/readPurchases.js';
import { DEFAULT_ZONE } from '../../ops/ranges/times.js';
import type { Schema } from '../pipeline/route.js';
import {
  choiceSchema,
  countSchema,
  entity,
  integerSchema,
  jsonAnswer,
  orNull,
  querySchema,
  textSchema,
} from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { alsoAs, CONTENT_TYPES, formatOf, formatParameter, lineWriter } from './formats.js';
import { type OpsRoute, STAFF } from './frame.js';
import { limitParameter, nextPageSchema, PAGE_MS } from './nextPages.js';
import { rangeProperties, refuseUnknownFilter, requestedTimes, requestedZone, rangeParameters } from './ranges.js';

const ID = textSchema();
const PENCE = countSchema('Pence.');

const purchaseSchema = entity('ListedPurchase', {
  at: textSchema('When it was bought.', { format: 'date-time' }),
  transaction_id: ID,
  buyer_id: ID,
  brand_id: ID,
  product_id: ID,
  sale_price: countSchema('Pence: the price of one gift.'),
  count: integerSchema('How many gifts it has.', { minimum: 1 }),
  total: PENCE,
  status: choiceSchema(TRANSACTION_STATUSES),
  charge_id: orNull(textSchema("The payment provider's id; null: nothing was charged.")),
  reference_id: orNull(textSchema("The caller's own name for it, such as an order's number.")),
  paid: PENCE,
  refunded: countSchema('Pence: what refunds gave back, also those made at the provider.'),
  product_name: textSchema('Its name at the purchase.'),
} satisfies Record<keyof PurchaseRow, Schema>);

const example: PurchaseRow = {
  at: '2026-05-04T12:30:00.000Z',
  transaction_id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  buyer_id: 'u42',
  brand_id: 'b1',
  product_id: 'p1',
  sale_price: 350,
  count: 2,
  total: 700,
  status: 'partially_refunded',
  charge_id: 'ch_3MmlLrLkdIwHu7ix0snN0B15',
  reference_id: 'order-1042',
  paid: 700,
  refunded: 350,
  product_name: 'Café latte',
};

const text = { type: 'string', minLength: 1 };
const price = { type: 'integer', minimum: 0, maximum: 1_000_000_000 };
const filterParameters = {
  buyer: { ...text, maxLength: 64, description: `Only ${PURCHASE_FILTERS.buyer}.` },
  product: { ...text, maxLength: 64, description: `Only ${PURCHASE_FILTERS.product}.` },
  status: choiceSchema(TRANSACTION_STATUSES, `Only ${PURCHASE_FILTERS.status}.`),
  min: { ...price, description: `Only ${PURCHASE_FILTERS.min}.` },
  max: { ...price, description: `Only ${PURCHASE_FILTERS.max}.` },
  reference_id: { ...text, maxLength: 255, description: `Only ${PURCHASE_FILTERS.reference_id}.` },
  charge: { ...text, maxLength: 256, description: `Only ${PURCHASE_FILTERS.charge}. It takes one reading of the log.` },
} satisfies Record<keyof typeof PURCHASE_FILTERS, Schema>;

export function purchaseRoutes({ engines: { events }, models }: OpsDeps): OpsRoute[] {
  const deps: PurchaseDeps = { events, models };
  return [
    {
      method: 'GET',
      path: '/ops/transactions',
      operation: 'listPurchases',
      summary: 'Purchases',
      description:
        'The latest first. All filters must match. A page may hold fewer purchases than `limit`, even none, and not be the last: `next` is the `after` of the following page, null at the end.',
      tag: 'Support',
      roles: STAFF,
      reads: ['byUser', 'reversals'],
      query: querySchema({
        ...filterParameters,
        ...rangeParameters,
        after: textSchema('Only after this position.', { maxLength: 64, pattern: PURCHASE_POSITION }),
        ...limitParameter,
        ...formatParameter,
      }),
      answers: [
        jsonAnswer(
          'The purchases.',
          nextPageSchema(purchaseSchema, {
            from: rangeProperties.from,
            to: rangeProperties.to,
            time_zone: rangeProperties.time_zone,
          }),
          { data: [example], next: null, from: null, to: null, time_zone: DEFAULT_ZONE },
          { alsoAs },
        ),
      ],
      async handle(call) {
        const { query } = call;
        const times = requestedTimes(query);
        const filter: PurchaseFilter = { ...(query as Omit<PurchaseFilter, 'from' | 'to'>), ...times };
        refuseUnknownFilter(await unknownPurchaseFilter(events, filter));
        // A list of one buyer's purchases is a look at that person.
        const recorded = filter.buyer === undefined ? {} : { person: filter.buyer };
        const after = query['after'] as string | undefined;
        const format = formatOf(call);
        if (format === 'json') {
          const { rows, next } = await page(deps, filter, after, query['limit'] as number);
          return { body: { data: rows, next, ...times }, shown: rows.length, recorded };
        }
        const { heading, line } = lineWriter<PurchaseRow>(
          format,
          PURCHASE_COLUMNS,
          purchaseCells,
          requestedZone(query),
        );
        return {
          contentType: CONTENT_TYPES[format],
          recorded,
          async *records() {
            yield { text: heading, count: 0, position: null };
            for await (const { rows } of readPurchases(deps, filter, after))
              yield { text: rows.map(line).join(''), count: rows.length, position: null };
          },
        };
      },
    },
  ];
}

async function page(
  deps: PurchaseDeps,
  filter: PurchaseFilter,
  after: string | undefined,
  limit: number,
): Promise<{ readonly rows: readonly PurchaseRow[]; readonly next: string | null }> {
  const startedAt = ticks();
  const found: PurchaseRow[] = [];
  for await (const { rows, next } of readPurchases(deps, filter, after)) {
    found.push(...rows);
    const last = found[limit - 1];
    if (found.length > limit && last !== undefined)
      return { rows: found.slice(0, limit), next: purchasePosition({ at: last.at, id: last.transaction_id }) };
    if (ticks() - startedAt >= PAGE_MS) return { rows: found, next };
  }
  return { rows: found, next: null };
}
