/**
 * Lists in pages: what holds for every list, and that a list with `Gift-Position` shows that write. What lists show of
 * each gift and purchase once nothing is written any more is held against their models (giftActs.ts, transactions.ts).
 */
import { type Chain, chainsOf, entriesOf } from './chains.js';
import type { Finding, Leeway } from './finding.js';
import { type History, type Observation, describe, field, grouped, listField, textField, toldBy } from './history.js';
import type { Installation } from './installation.js';
import { Makers } from './makers.js';
import type { ListOperation } from './operations.js';
import { type KnownPurchase, purchasesOf } from './purchases.js';

const finding = (text: string, ...lines: readonly string[]): Finding => ({
  rule: 'list',
  text: [text, ...lines.slice(0, 10)].join('\n'),
});

const LISTS: readonly ListOperation['kind'][] = ['listTransactions', 'listGifts', 'listMerchantRedemptions'];

/** Findings about lists. */
export function checkLists(history: History, installation: Installation, leeway: Leeway): Finding[] {
  const purchases = grouped([...purchasesOf(history, installation).values()], ({ transaction }) => transaction);
  const makers = new Makers(history);
  return [
    ...LISTS.flatMap((kind) => chainsOf(history, kind)).flatMap((chain) => [
      ...checkPages(chain),
      ...checkOrder(chain, makers, leeway),
      ...checkOwnWrite(chain, makers, installation),
    ]),
    ...history.flatMap((observation, index) => checkNumbered(observation, index, purchases)),
  ];
}

const idOf = (entry: unknown): string => textField(entry, 'id') ?? '';
const nameOf = ({ client, operation }: Chain): string => `${operation.kind} of ${client}`;

/** docs/api/conventions.md#pages-by-cursor */
function checkPages(chain: Chain): Finding[] {
  const findings: Finding[] = [];
  const seen = new Set<string>();
  for (const { data, hasMore, next, limit = 20 } of chain.pages) {
    if (data.length > limit)
      findings.push(finding(`${nameOf(chain)}: a page has ${data.length} entries, not ${limit}.`));
    if (hasMore !== (next !== null))
      findings.push(finding(`${nameOf(chain)}: has_more is ${hasMore}, next is ${next}.`));
    for (const entry of data) {
      if (seen.has(idOf(entry)))
        findings.push(finding(`${nameOf(chain)}: an entry is there twice.`, JSON.stringify(entry)));
      seen.add(idOf(entry));
    }
  }
  return findings;
}

/** The latest first. */
function checkOrder(chain: Chain, makers: Makers, leeway: Leeway): Finding[] {
  const { skewMs = 0 } = leeway;
  let earliest: Observation | undefined;
  for (const entry of entriesOf(chain)) {
    const maker = makers.inOrder(chain, idOf(entry), leeway);
    if (maker === undefined) continue;
    if (earliest?.answered !== undefined && earliest.answered + skewMs < maker.sent) {
      const lines = describeAll([earliest, maker], makers);
      return [finding(`${nameOf(chain)}: the later one comes after the earlier one.`, ...lines)];
    }
    if (earliest?.answered === undefined || (maker.answered ?? Infinity) < earliest.answered) earliest = maker;
  }
  return [];
}

const describeAll = (some: readonly Observation[], { numbers }: Makers): string[] =>
  some.map((one) => describe(one, numbers.get(one) ?? -1));

/** A list with `Gift-Position` shows that write, and all that were answered before it was sent. */
function checkOwnWrite(chain: Chain, makers: Makers, installation: Installation): Finding[] {
  const { position } = chain.operation;
  const write = position === undefined ? undefined : makers.positions.get(position);
  if (!chain.complete || write === undefined) return [];
  const shown = new Set(entriesOf(chain).map(idOf));
  const status = chain.operation.kind === 'listGifts' ? chain.operation.status : undefined;
  if (status !== undefined || (chain.operation.kind === 'listGifts' && chain.operation.as === 'holder')) return [];
  return belonging(chain, makers, installation).flatMap(([id, maker]) => {
    const before = maker === write || (maker.answered ?? Infinity) < write.sent;
    if (!before || shown.has(id) || makers.mayHaveMoved(chain, id)) return [];
    return [finding(`${nameOf(chain)} with Gift-Position lacks ${id}.`, ...describeAll([write, maker], makers))];
  });
}

/** What belongs in a list, with the request that made it. A redemption counts for the location's merchant. */
function belonging(
  chain: Chain,
  makers: Makers,
  { users, locations }: Installation,
): (readonly [string, Observation])[] {
  if (chain.operation.kind !== 'listMerchantRedemptions') return makers.by(chain);
  const merchant = users.get(chain.client)?.merchant;
  return [...makers.redemptions].filter(
    ([, { operation }]) => operation.kind === 'redeem' && locations.get(operation.location) === merchant,
  );
}

/** Lists that show what no request made, once all is quiet. */
export function checkStrangers(
  history: History,
  installation: Installation,
  { quietFrom = Infinity }: Leeway,
): Finding[] {
  const purchases = [...purchasesOf(history, installation).values()];
  const transactions = new Set(purchases.map(({ transaction }) => transaction));
  const gifts = new Set(purchases.flatMap((purchase) => purchase.gifts));
  const replacedBy = new Set(history.flatMap(({ answer }) => textField(answer?.body, 'data', 'replaced_by') ?? []));
  const replaces = history.some(({ operation }) => operation.kind === 'replace');
  const known = ({ operation: { kind } }: Chain, entry: unknown): boolean => {
    if (kind === 'listMerchantRedemptions') return gifts.has(textField(entry, 'gift_id') ?? '');
    if (kind === 'listGifts') return gifts.has(idOf(entry)) || replacedBy.has(idOf(entry)) || replaces;
    return transactions.has(idOf(entry)) || gifts.has(textField(entry, 'replaces') ?? '');
  };
  const chains = LISTS.flatMap((kind) => chainsOf(history, kind)).filter((chain) => chain.sent >= quietFrom);
  return chains.flatMap((chain) => {
    const strangers = entriesOf(chain).filter((entry) => !known(chain, entry));
    if (strangers.length === 0) return [];
    return [finding(`${nameOf(chain)} shows what no request made.`, ...strangers.map((one) => JSON.stringify(one)))];
  });
}

/** docs/api/conventions.md#pages, of the gifts of a transaction */
function checkNumbered(
  observation: Observation,
  index: number,
  purchases: ReadonlyMap<string, readonly KnownPurchase[]>,
): Finding[] {
  const { operation } = observation;
  const answer = toldBy(observation);
  if (operation.kind !== 'listTransactionGifts' || answer?.status !== 200) return [];
  const { transaction, page, perPage } = operation;
  const gifts = purchases.get(transaction)?.[0]?.gifts ?? [];
  // Those of a declined purchase are named by lists only.
  if (gifts.length === 0) return [];
  const slice = gifts.slice((page - 1) * perPage, page * perPage);
  const lastPage = Math.max(1, Math.ceil(gifts.length / perPage));
  const from = slice.length === 0 ? 0 : (page - 1) * perPage + 1;
  const expected = {
    current_page: page,
    data: slice,
    from,
    to: slice.length === 0 ? 0 : from + slice.length - 1,
    last_page: lastPage,
    next: page < lastPage,
    previous: page > 1,
    per_page: perPage,
    total: gifts.length,
  };
  const { body } = answer;
  const actual = {
    current_page: field(body, 'current_page'),
    data: listField(body, 'data').map(idOf),
    from: field(body, 'from'),
    to: field(body, 'to'),
    last_page: field(body, 'last_page'),
    next: field(body, 'next_page_url') !== null,
    previous: field(body, 'prev_page_url') !== null,
    per_page: field(body, 'per_page'),
    total: field(body, 'total'),
  };
  if (JSON.stringify(actual) === JSON.stringify(expected)) return [];
  return [
    finding(
      'A page of the gifts of a transaction is not as its gifts say.',
      `expected ${JSON.stringify(expected)}`,
      `actual   ${JSON.stringify(actual)}`,
      describe(observation, index),
    ),
  ];
}
