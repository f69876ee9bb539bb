/** What clients read at the end of a run: everything that they know of, and the first pages of all lists. */
import { nextPage } from './chains.js';
import type { Observation } from './history.js';
import type { Cast, Choice, Known } from './known.js';
import { type Redeem, isList } from './operations.js';

/** Looks up what became of a redemption. */
export function lookUp(client: string, { gift, shortcode, key = '' }: Redeem): Choice {
  return { client, operation: { kind: 'lookUpKey', gift, shortcode, of: key } };
}

/** Each gift and its redemptions, each purchase, and each key of a redemption. */
export function readsOfKnown({ gifts, keyed }: Known): Choice[] {
  const own = gifts.flatMap(({ id, shortcode, buyer }): Choice[] => [
    { client: buyer, operation: { kind: 'getGift', gift: id } },
    { client: buyer, operation: { kind: 'listRedemptions', gift: id, shortcode } },
  ]);
  const transactions = [...buyersOf(gifts)].map(([transaction, client]): Choice => ({
    client,
    operation: { kind: 'getTransaction', transaction },
  }));
  return [...own, ...transactions, ...keyed.map(({ client, operation }) => lookUp(client, operation as Redeem))];
}

const buyersOf = (gifts: Known['gifts']): Map<string, string> =>
  new Map(gifts.map(({ transaction, buyer }) => [transaction, buyer]));

/** Reads a list to its end, anything else once. */
export async function readWhole(choice: Choice, send: (choice: Choice) => Promise<Observation>): Promise<void> {
  for (let { client, operation } = choice; ;) {
    const observation = await send({ client, operation });
    const next = isList(operation) ? nextPage(operation, observation) : undefined;
    if (next === undefined) return;
    operation = next;
  }
}

/** First pages of all lists, for `readWhole`. Sizes of pages differ, so that some lists have several. */
export function firstPages(
  { gifts }: Known,
  { customers, tills, auditors }: Cast,
  readers: readonly string[],
): Choice[] {
  const numbered = [...buyersOf(gifts)].map(([transaction, client], index): Choice => ({
    client,
    operation: { kind: 'listTransactionGifts', transaction, page: 1 + (index % 2), perPage: 2 },
  }));
  const lists = customers.flatMap((client, index): Choice[] => [
    { client, operation: { kind: 'listTransactions', limit: 7 } },
    { client, operation: { kind: 'listGifts', limit: 7 } },
    { client, operation: { kind: 'listGifts', limit: 100, as: index % 2 === 0 ? 'holder' : 'sender' } },
    { client, operation: { kind: 'listGifts', limit: 100, status: ['sent', 'redeemed', 'cancelled'][index % 3] } },
  ]);
  const shops = tills.map((client): Choice => ({ client, operation: { kind: 'listMerchantRedemptions', limit: 5 } }));
  const feeds = readers.map((client, index): Choice => ({
    client,
    operation: { kind: 'listEvents', limit: [30, 100, 500][index % 3] },
  }));
  const some = readers.slice(0, 2).map((client): Choice => ({
    client,
    operation: { kind: 'listEvents', types: ['gift.redeemed', 'transaction.created'] },
  }));
  const totals = auditors.map((client): Choice => ({ client, operation: { kind: 'totals' } }));
  return [...numbered, ...lists, ...shops, ...feeds, ...some, ...totals];
}
