/** Holds what answers show of each purchase against its own model: one charge, then refunds of its gifts. */
import { requestsType } from './feedActs.js';
import type { Finding, Leeway } from './finding.js';
import { type History, type Observation, describe, grouped, textField, toldBy } from './history.js';
import type { Installation } from './installation.js';
import { type Act, linearize } from './linearizable.js';
import { type Expected, type Pattern, matchValue, matches } from './pattern.js';
import { type KnownPurchase, purchasesOf } from './purchases.js';
import { type KnownRefund, refundsOf } from './refunds.js';
import { error, first } from './refusals.js';
import { explain, smallest } from './smallest.js';
import { type Chain, type WholeList, wholeLists } from './chains.js';
import type { ListEvents, ListTransactions } from './operations.js';

interface TransactionState {
  readonly payment: 'pending' | 'paid' | 'declined';
  /** Ids of the gifts whose price went back, in their order. */
  readonly refunded: readonly string[];
  /** Types of the events that the feed shows of it, without `transaction.`. */
  readonly events: readonly string[];
}

interface TransactionAct extends Act<TransactionState> {
  readonly cut: Act<TransactionState> | undefined;
}

const cutAct = (act: Act<TransactionState>): Act<TransactionState> | undefined =>
  'cut' in act ? (act as TransactionAct).cut : act;

/** Findings about single purchases. */
export function checkTransactions(history: History, installation: Installation, leeway: Leeway): Finding[] {
  const numbers = new Map(history.map((observation, index) => [observation, index]));
  const refunds = grouped(refundsOf(history), ({ transaction }) => transaction);
  const concerning = grouped(history, ({ operation }) => {
    if (operation.kind === 'purchase') return operation.order;
    return operation.kind === 'getTransaction' ? operation.transaction : undefined;
  });
  const lists = wholeLists<ListTransactions>(history, 'listTransactions', leeway, (one) => textField(one, 'id'));
  const wholes = wholeLists<ListEvents>(history, 'listEvents', leeway, (one) =>
    textField(one, 'data', 'transaction_id'),
  );
  return [...purchasesOf(history, installation).values()].flatMap((purchase) => {
    if (purchase.transaction === undefined) return [];
    const acts = [
      ...settlements(purchase),
      ...[...(concerning.get(purchase.order) ?? []), ...(concerning.get(purchase.transaction) ?? [])].flatMap((one) =>
        actsOf(purchase, one, leeway, () => describe(one, numbers.get(one) ?? -1)),
      ),
      ...(refunds.get(purchase.transaction) ?? []).flatMap((one) => refundActs(purchase, one)),
      ...listed(purchase, lists),
      ...feeds(purchase, wholes),
    ];
    const initial: TransactionState = { payment: 'pending', refunded: [], events: ['created'] };
    const verdict = linearize(initial, acts);
    if (verdict.kind === 'ok') return [];
    const subject = `transaction ${purchase.transaction} (${purchase.order}, by ${purchase.buyer})`;
    if (verdict.kind === 'undecided') return [{ rule: 'undecided', text: `${subject}: ${verdict.steps} steps` }];
    const small = smallest(initial, acts, cutAct) ?? { acts, stuck: verdict.stuck };
    return [{ rule: 'transaction', text: explain(subject, small, (state) => JSON.stringify(state)) }];
  });
}

/** Pounds, with two decimals. */
const pounds = (pence: number): string => (pence / 100).toFixed(2);

/** docs/api/purchases.md#transaction-status */
function statusOf(purchase: KnownPurchase, { payment, refunded }: TransactionState): string {
  if (payment !== 'paid') return payment === 'pending' ? 'pending' : 'declined';
  if (refunded.length === 0) return 'charged';
  return refunded.length === giftCount(purchase) ? 'refunded' : 'partially_refunded';
}

/** One gift for each receiver, and one without any. */
export function giftCount({ operation }: KnownPurchase): number {
  return Math.max(1, operation.receivers.length);
}

function shown(purchase: KnownPurchase, state: TransactionState): Pattern {
  const { transaction = '', order, product, boughtOn } = purchase;
  return {
    id: transaction,
    retail: pounds(product.price * giftCount(purchase)),
    purchased_at_date: boughtOn ?? '*',
    reference_id: order,
    gifts: purchase.gifts.length === 0 ? '*' : purchase.gifts,
    status: statusOf(purchase, state),
  };
}

function answerOf(purchase: KnownPurchase, state: TransactionState, status: number): Expected {
  if (state.payment !== 'declined') return first(status, { data: shown(purchase, state) });
  const headers = { 'transaction-id': purchase.transaction ?? '*', 'decline-code': '*', location: '*' };
  return { status: 402, body: { error: 'Payment declined.' }, headers };
}

const changing = (
  from: number,
  to: number | undefined,
  apply: (state: TransactionState) => readonly TransactionState[],
  what: string,
): TransactionAct => {
  const cut = {
    from,
    to: undefined,
    required: false,
    reads: false,
    apply,
    describe: () => what,
    expects: () => 'nothing',
  };
  return { ...cut, to, required: to !== undefined, cut };
};

const settled = (state: TransactionState, payment: 'paid' | 'declined'): TransactionState => ({
  ...state,
  payment,
  events: [...state.events, payment === 'paid' ? 'charged' : 'declined'],
});

function settlements({ sent, charged, declined }: KnownPurchase): TransactionAct[] {
  const settle = (payment: 'paid' | 'declined', to: number | undefined): TransactionAct =>
    changing(
      sent,
      to,
      (state) => (state.payment === 'pending' ? [settled(state, payment)] : []),
      `happens: ${payment}`,
    );
  return [
    ...(declined === undefined ? [settle('paid', charged)] : []),
    ...(charged === undefined ? [settle('declined', declined)] : []),
  ];
}

function actsOf(
  purchase: KnownPurchase,
  observation: Observation,
  { mayBeStale = () => false }: Leeway,
  describeIt: () => string,
): TransactionAct[] {
  const { operation, client, sent, answered } = observation;
  const answer = toldBy(observation);
  const bought = operation.kind === 'purchase' && operation.order === purchase.order;
  const lookedUp = operation.kind === 'getTransaction' && operation.transaction === purchase.transaction;
  if ((!bought && !lookedUp) || answer === undefined || answered === undefined) return [];
  if (lookedUp && mayBeStale(sent, answered)) return [];
  // A repeat, or a refusal before the purchase.
  if (bought && (answer.headers['idempotent-replayed'] !== undefined || ![201, 402].includes(answer.status))) return [];
  const expected = (state: TransactionState): Expected =>
    client === purchase.buyer ? answerOf(purchase, state, bought ? 201 : 200) : NOT_FOUND;
  return [
    {
      from: sent,
      to: answered,
      required: true,
      reads: true,
      apply: (state) => (matches(expected(state), answer) === undefined ? [] : [state]),
      describe: describeIt,
      expects: (state) => JSON.stringify(expected(state)),
      cut: undefined,
    },
  ];
}

const NOT_FOUND = error(404, 'transaction not found');

/** A refund gives the price of its gifts back; of one without an answer that of any of them may have gone back. */
function refundActs(
  purchase: KnownPurchase,
  { requested, gifts, sent, answered, accepted, text }: KnownRefund,
): TransactionAct[] {
  const giveBack =
    (some: readonly string[]) =>
    (state: TransactionState): TransactionState[] => {
      if (some.some((gift) => state.refunded.includes(gift)) || state.payment !== 'paid') return [];
      const refunded = purchase.gifts.filter((gift) => [...state.refunded, ...some].includes(gift));
      return [{ ...state, refunded, events: [...state.events, 'refunded'] }];
    };
  if (gifts !== undefined)
    return gifts.length === 0 ? [] : [changing(sent, accepted ? answered : undefined, giveBack(gifts), text)];
  const some = requested.length === 0 ? purchase.gifts : requested;
  return subsets(some).map((subset) => changing(sent, undefined, giveBack(subset), `${text} (${subset.join(', ')})`));
}

/** All parts of a short list; of a longer one each entry, and the whole. */
function subsets(some: readonly string[]): string[][] {
  if (some.length > 4) return [[...some], ...some.map((one) => [one])];
  return Array.from({ length: 2 ** some.length - 1 }, (_, bits) =>
    some.filter((_one, index) => ((bits + 1) >> index) & 1),
  );
}

/** The buyer's list shows the purchase once, as it is, once read models are current. */
function listed(purchase: KnownPurchase, lists: readonly WholeList<ListTransactions>[]): TransactionAct[] {
  return lists.map(({ chain, entries: all }) => {
    const entries = all.get(purchase.transaction ?? '') ?? [];
    const expected = (state: TransactionState): Pattern =>
      chain.client === purchase.buyer ? [shown(purchase, state)] : [];
    return seen(chain, entries, expected, 'listTransactions');
  });
}

/** The feeds of its buyer and its client show all that happened to it, in order. */
function feeds(purchase: KnownPurchase, lists: readonly WholeList<ListEvents>[]): TransactionAct[] {
  return lists.map(({ chain: feed, entries: all }) => {
    const entries = (all.get(purchase.transaction ?? '') ?? []).filter((one) => {
      const [kind, type = ''] = (textField(one, 'type') ?? '').split('.');
      return kind === 'transaction' && ['created', 'charged', 'declined', 'refunded'].includes(type);
    });
    const reads = feed.client.startsWith('client:') || feed.client === purchase.buyer;
    const expected = (state: TransactionState): Pattern =>
      state.events
        .map((type) => `transaction.${type}`)
        .filter((type) => reads && requestsType(feed, type))
        .map((type) => ({ type, data: { reference_id: purchase.order, gift_id: '!' } }));
    return seen(feed, entries, expected, 'the event feed');
  });
}

/** A read of something that follows from the state. */
function seen(
  { sent, answered, client }: Chain,
  value: unknown,
  expected: (state: TransactionState) => Pattern,
  where: string,
): TransactionAct {
  return {
    from: sent,
    to: answered,
    required: true,
    reads: true,
    apply: (state) => (matchValue(expected(state), value) === undefined ? [] : [state]),
    describe: () => `${client}: ${where} shows ${JSON.stringify(value)}`,
    expects: (state) => JSON.stringify(expected(state)),
    cut: undefined,
  };
}
