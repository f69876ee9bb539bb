/**
 * Lists in pages: what holds for every list, and that a list with `Gift-Position` shows that write. What lists show of
 * each gift and purchase once nothing is written any more is held against their models (giftActs.ts, transactions.ts).
 */
import { type Chain, chainsOf, entriesOf } from './chains.js';
import type { Finding, Leeway } from './finding.js';
import { type History, type Observation, describe, field, listField, textField, toldBy } from './history.js';
import type { Installation } from './installation.js';
import type { ListOperation } from './operations.js';
import { type KnownPurchase, purchasesOf } from './purchases.js';

const finding = (text: string, ...lines: readonly string[]): Finding => ({
  rule: 'list',
  text: [text, ...lines.slice(0, 10)].join('\n'),
});

const LISTS: readonly ListOperation['kind'][] = ['listTransactions', 'listGifts', 'listMerchantRedemptions'];

/** Findings about lists. */
export function checkLists(history: History, installation: Installation, leeway: Leeway): Finding[] {
  const purchases = [...purchasesOf(history, installation).values()];
  return [
    ...LISTS.flatMap((kind) => chainsOf(history, kind)).flatMap((chain) => [
      ...checkPages(chain),
      ...checkOrder(chain, history, leeway),
      ...checkOwnWrite(chain, history, installation),
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

/** The request that made an entry, or by which the reader got the gift, where an answer names it. */
function makersOf(history: History, { client, operation: { kind } }: Chain): Map<string, Observation> {
  const makers = new Map<string, Observation>();
  const reassigned = new Set(history.flatMap((one) => (one.operation.kind === 'reassign' ? [one.operation.gift] : [])));
  for (const observation of history) {
    const { operation, answered } = observation;
    const answer = toldBy(observation);
    if (answer === undefined || answered === undefined || answer.headers['idempotent-replayed'] !== undefined) continue;
    const data = field(answer.body, 'data');
    if (operation.kind === 'purchase' && answer.status === 201 && kind !== 'listMerchantRedemptions')
      for (const id of kind === 'listGifts' ? listField(data, 'gifts').map(String) : [idOf(data)])
        makers.set(id, makers.get(id) ?? observation);
    if (operation.kind === 'redeem' && answer.status === 201 && kind === 'listMerchantRedemptions')
      makers.set(idOf(data), observation);
    // A second claim by the same user changes nothing, and another user's list is not concerned.
    const claimed = operation.kind === 'claim' && answer.status === 200 && observation.client === client;
    if (
      claimed &&
      !reassigned.has(operation.gift) &&
      kind === 'listGifts' &&
      makers.get(operation.gift)?.operation.kind !== 'claim'
    )
      makers.set(operation.gift, observation);
  }
  return makers;
}

/** The latest first. */
function checkOrder(chain: Chain, history: History, { quietFrom = Infinity, skewMs = 0 }: Leeway): Finding[] {
  const { operation } = chain;
  // A buyer's list has a gift at its purchase; the list of both has it where its buyer holds it where they got it.
  const bought = operation.kind === 'listGifts' && operation.as === 'sender';
  const makers = makersOf(bought ? history.filter((one) => one.operation.kind === 'purchase') : history, chain);
  // When support gave a gift, and whether a second claim was the first one that had an effect, is not known.
  for (const one of history) if (one.operation.kind === 'reassign') makers.delete(one.operation.gift);
  const late = chain.sent < quietFrom;
  for (const one of history)
    if (one.operation.kind === 'claim' && (late || (toldBy(one) === undefined && !bought)))
      makers.delete(one.operation.gift);
  let earliest: Observation | undefined;
  for (const entry of entriesOf(chain)) {
    const maker = makers.get(idOf(entry));
    if (maker === undefined) continue;
    if (earliest?.answered !== undefined && earliest.answered + skewMs < maker.sent) {
      const lines = [earliest, maker].map((one) => describe(one, history.indexOf(one)));
      return [finding(`${nameOf(chain)}: the later one comes after the earlier one.`, ...lines)];
    }
    if (earliest?.answered === undefined || (maker.answered ?? Infinity) < earliest.answered) earliest = maker;
  }
  return [];
}

/** A list with `Gift-Position` shows that write, and all that were answered before it was sent. */
function checkOwnWrite(chain: Chain, history: History, installation: Installation): Finding[] {
  const { position } = chain.operation;
  const write = history.find((one) => position !== undefined && one.answer?.headers['gift-position'] === position);
  if (!chain.complete || write === undefined) return [];
  const shown = new Set(entriesOf(chain).map(idOf));
  const status = chain.operation.kind === 'listGifts' ? chain.operation.status : undefined;
  if (status !== undefined || (chain.operation.kind === 'listGifts' && chain.operation.as === 'holder')) return [];
  return [...makersOf(history, chain)].flatMap(([id, maker]) => {
    const before = maker === write || (maker.answered ?? Infinity) < write.sent;
    if (!before || shown.has(id) || !concerns(chain, maker, installation)) return [];
    const lines = [write, maker].map((one) => describe(one, history.indexOf(one)));
    return [finding(`${nameOf(chain)} with Gift-Position lacks ${id}.`, ...lines)];
  });
}

/** Whether what the request made belongs in the list. A merchant's users redeem only gifts that count for it. */
function concerns({ client, operation }: Chain, maker: Observation, { users }: Installation): boolean {
  if (operation.kind !== 'listMerchantRedemptions') return maker.client === client;
  const merchant = users.get(client)?.merchant;
  return merchant !== undefined && users.get(maker.client)?.merchant === merchant;
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
function checkNumbered(observation: Observation, index: number, purchases: readonly KnownPurchase[]): Finding[] {
  const { operation } = observation;
  const answer = toldBy(observation);
  if (operation.kind !== 'listTransactionGifts' || answer?.status !== 200) return [];
  const { transaction, page, perPage } = operation;
  const gifts = purchases.find((one) => one.transaction === transaction)?.gifts ?? [];
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
