/** The purchases of a history: what their answers and later reads say of them, joined by order reference. */
import { type History, type Observation, field, listField, textField } from './history.js';
import type { Purchase } from './operations.js';
import type { Installation, Product } from './installation.js';
import type { GiftFacts } from './giftState.js';

/** A purchase, and what became of it as far as any client saw. */
export interface KnownPurchase {
  readonly order: string;
  readonly buyer: string;
  readonly product: Product;
  readonly operation: Purchase;
  /** When the first of its requests was sent, ms. */
  readonly sent: number;
  /** Its requests, repeats with the key too. */
  readonly requests: readonly Observation[];
  /** `undefined` while no answer named it. */
  readonly transaction: string | undefined;
  /** Ids, in the order of the receivers. Empty while no answer named them. */
  readonly gifts: readonly string[];
  /** `YYYY-MM-DD`. */
  readonly boughtOn: string | undefined;
  /** When the first answer that says so came, ms. */
  readonly charged: number | undefined;
  readonly declined: number | undefined;
}

/** Statuses of a transaction that was paid for (docs/api/purchases.md#transaction-status). */
const PAID = ['charged', 'disputed', 'partially_refunded', 'refunded'];

/** A transaction in an answer. */
interface Shown {
  readonly answered: number;
  readonly transaction: unknown;
}

/** All transactions that answers show. Those of replacements have the order reference of what they replace. */
function shownTransactions(history: History): Shown[] {
  const shown = history.flatMap(({ operation, answer, answered }): Shown[] => {
    if (answer === undefined || answered === undefined || answer.status >= 300) return [];
    if (operation.kind === 'listTransactions')
      return listField(answer.body, 'data').map((transaction) => ({ answered, transaction }));
    if (operation.kind !== 'purchase' && operation.kind !== 'getTransaction') return [];
    return [{ answered, transaction: field(answer.body, 'data') }];
  });
  return shown.filter(({ transaction }) => field(transaction, 'replaces') === undefined);
}

/** Ids of transactions that are declined, each with the time at which the first answer said so. */
function declinedTransactions(history: History): Map<string, number> {
  const found = new Map<string, number>();
  for (const { answer, answered } of history) {
    const id = answer?.headers['transaction-id'];
    if (id === undefined || answered === undefined || answer?.status !== 402) continue;
    if (textField(answer.body, 'error') !== 'Payment declined.') continue;
    found.set(id, Math.min(answered, found.get(id) ?? Infinity));
  }
  return found;
}

/** All purchases that were requested, by order reference. Those of products that are not sold are left out. */
export function purchasesOf(history: History, { products }: Installation): Map<string, KnownPurchase> {
  const shown = new Map<string, Shown[]>();
  for (const one of shownTransactions(history)) {
    const order = textField(one.transaction, 'reference_id');
    if (order !== undefined) shown.set(order, [...(shown.get(order) ?? []), one]);
  }
  const declined = declinedTransactions(history);
  const purchases = new Map<string, KnownPurchase>();
  for (const [order, requests] of requestsByOrder(history)) {
    const [first] = requests;
    const operation = first?.operation;
    if (first === undefined || operation?.kind !== 'purchase') continue;
    const product = products.get(operation.product);
    if (product === undefined) continue;
    const answers = shown.get(order) ?? [];
    const known = answers[0]?.transaction;
    const refused = requests.map(({ answer }) => answer?.headers['transaction-id']).find((id) => id !== undefined);
    const transaction = textField(known, 'id') ?? refused;
    const firstSaying = (...statuses: readonly string[]): number | undefined =>
      least(answers.filter((one) => statuses.includes(textField(one.transaction, 'status') ?? '')));
    purchases.set(order, {
      order,
      buyer: first.client,
      product,
      operation,
      sent: first.sent,
      requests,
      transaction,
      gifts: listField(known, 'gifts').map(String),
      boughtOn: textField(known, 'purchased_at_date'),
      charged: firstSaying(...PAID),
      declined: firstSaying('declined') ?? (transaction === undefined ? undefined : declined.get(transaction)),
    });
  }
  return purchases;
}

const least = (some: readonly Shown[]): number | undefined =>
  some.length === 0 ? undefined : Math.min(...some.map(({ answered }) => answered));

function requestsByOrder(history: History): Map<string, Observation[]> {
  const found = new Map<string, Observation[]>();
  for (const observation of history) {
    const { operation } = observation;
    if (operation.kind !== 'purchase') continue;
    found.set(operation.order, [...(found.get(operation.order) ?? []), observation]);
  }
  return found;
}

/** What is fixed of each gift of a purchase. */
export function giftsOf(purchase: KnownPurchase): GiftFacts[] {
  const { transaction, boughtOn, gifts, product, buyer, operation } = purchase;
  if (transaction === undefined || boughtOn === undefined) return [];
  return gifts.map((id, index) => ({
    id,
    transaction,
    product,
    buyer,
    receiver: operation.receivers[index] ?? {},
    boughtOn,
  }));
}
