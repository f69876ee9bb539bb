/** Support's totals, held against the event feed: of each merchant, and to the penny. */
import { entriesOf } from './chains.js';
import { wholeFeeds } from './feedActs.js';
import type { Finding, Leeway } from './finding.js';
import { type History, field, listField, textField, toldBy } from './history.js';
import type { Installation, Product } from './installation.js';
import { purchasesOf } from './purchases.js';

const COUNTED = ['issued', 'replaced', 'redeemed', 'unredeemed', 'unredeemed_by_support', 'refunded'] as const;

type Column = (typeof COUNTED)[number];

/** Numbers and pence by merchant and column. */
type Sums = Map<string, Record<string, number>>;

function add(sums: Sums, merchant: string, column: string, count: number, value: number): void {
  const row = sums.get(merchant) ?? {};
  row[column] = (row[column] ?? 0) + count;
  row[`${column}_value`] = (row[`${column}_value`] ?? 0) + value;
  sums.set(merchant, row);
}

/** Findings about totals that were read once nothing was written any more. */
export function checkTotals(history: History, installation: Installation, leeway: Leeway): Finding[] {
  const { quietFrom = Infinity } = leeway;
  const feed = wholeFeeds(history, leeway).find(
    ({ client, operation }) => client.startsWith('client:') && operation.types === undefined,
  );
  if (feed === undefined) return [];
  const expected = sumsOf(entriesOf(feed), history, installation);
  return history.flatMap((observation) => {
    const answer = toldBy(observation);
    if (observation.operation.kind !== 'totals' || observation.sent < quietFrom || answer?.status !== 200) return [];
    const actual: Sums = new Map();
    for (const row of listField(answer.body, 'data'))
      for (const column of COUNTED)
        add(
          actual,
          textField(row, 'merchant_id') ?? '',
          column,
          numberOf(row, column),
          numberOf(row, `${column}_value`),
        );
    return [...difference(expected, actual), ...sumOfRows(answer.body, actual)];
  });
}

const numberOf = (row: unknown, column: string): number => Number(field(row, column) ?? 0);

function difference(expected: Sums, actual: Sums): Finding[] {
  return [...new Set([...expected.keys(), ...actual.keys()])].flatMap((merchant) =>
    COUNTED.flatMap((column) => [column, `${column}_value`]).flatMap((column) => {
      const [there, here] = [expected, actual].map((sums) => sums.get(merchant)?.[column] ?? 0);
      if (there === here) return [];
      return [{ rule: 'totals', text: `${merchant}: ${column} is ${here} by the totals, ${there} by the event feed.` }];
    }),
  );
}

function sumOfRows(body: unknown, actual: Sums): Finding[] {
  return COUNTED.flatMap((column) => {
    const sum = [...actual.values()].reduce((all, row) => all + (row[column] ?? 0), 0);
    const shown = numberOf(field(body, 'sums'), column);
    return sum === shown ? [] : [{ rule: 'totals', text: `sums: ${column} is ${shown}, the rows have ${sum}.` }];
  });
}

/** What the events of the feed add up to: gifts by the merchant of their brand, redemptions by that of the location. */
function sumsOf(events: readonly unknown[], history: History, installation: Installation): Sums {
  const products = new Map<string, Product>();
  for (const { gifts, product } of purchasesOf(history, installation).values())
    for (const gift of gifts) products.set(gift, product);
  const replacements = new Set<string>();
  for (const event of events) {
    const [gift, by] = [textField(event, 'data', 'gift_id') ?? '', textField(event, 'data', 'replaced_by')];
    const product = products.get(gift);
    if (by === undefined || product === undefined) continue;
    products.set(by, product);
    replacements.add(by);
  }
  const sums: Sums = new Map();
  const count = (event: unknown, column: Column, merchant: (product: Product) => string): void => {
    const product = products.get(textField(event, 'data', 'gift_id') ?? '');
    if (product !== undefined) add(sums, merchant(product), column, 1, product.price);
  };
  const atLocation = (event: unknown) => (): string =>
    installation.locations.get(textField(event, 'data', 'location_id') ?? '') ?? '';
  for (const event of events) {
    switch (textField(event, 'type')) {
      case 'gift.issued':
        if (!replacements.has(textField(event, 'data', 'gift_id') ?? ''))
          count(event, 'issued', ({ merchant }) => merchant);
        break;
      case 'gift.replaced':
        count(event, 'replaced', ({ merchant }) => merchant);
        break;
      case 'gift.redeemed':
        count(event, 'redeemed', atLocation(event));
        break;
      case 'gift.unredeemed':
        count(event, 'unredeemed', atLocation(event));
        if (field(event, 'data', 'by_support') === true) count(event, 'unredeemed_by_support', atLocation(event));
        break;
      case 'gift.cancelled':
        count(event, 'refunded', ({ merchant }) => merchant);
        break;
      default:
        break;
    }
  }
  return sums;
}
