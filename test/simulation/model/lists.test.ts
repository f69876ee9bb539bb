/** Lists in pages, held against histories made by hand. */
import { suite } from 'uvu';
import { checkGifts } from './giftHistory.js';
import * as by from './handmade.js';
import { BOUGHT, BOUGHT_OPEN, gift, redeem, redemption, seen } from './handmade.js';
import type { Observation } from './history.js';
import { judgedBy } from './judged.js';
import { checkLists, checkStrangers } from './lists.js';
import type { ListOperation } from './operations.js';
import { checkTransactions } from './transactions.js';

const test = suite('lists in a history');

const QUIET = { clockMs: 5, quietFrom: by.START + 1_000 };
const lists = judgedBy((history) => checkLists(history, by.INSTALLATION, QUIET));
const strangers = judgedBy((history) => checkStrangers(history, by.INSTALLATION, QUIET));
const gifts = judgedBy((history) => checkGifts(history, by.INSTALLATION, QUIET));
const transactions = judgedBy((history) => checkTransactions(history, by.INSTALLATION, QUIET));

let time = 1_000;
/** One page, read once all is quiet, or at another time. */
function page(
  client: string,
  operation: ListOperation,
  data: readonly unknown[],
  next: string | null = null,
  at = (time += 10),
): Observation {
  return seen(client, operation, [at, at + 5], { status: 200, body: { data, next, has_more: next !== null } });
}

const dataOf = (said: by.Said): object => (said.body as { readonly data: object }).data;
const FIRST = seen('till', redeem(), [20, 30], by.redeemed('r1', 25));
const T1 = dataOf(by.transaction());
const T2 = dataOf(by.transaction({ id: 't2', reference_id: 'o2', gifts: ['g2'] }));
const SECOND = seen(
  'ann',
  by.purchase({ order: 'o2' }),
  [70, 80],
  by.transaction({ id: 't2', reference_id: 'o2', gifts: ['g2'] }),
);
const bought: ListOperation = { kind: 'listTransactions', limit: 2 };

test('explains pages that show each entry once, the latest first', () => {
  const history = [BOUGHT, SECOND, page('ann', bought, [T2], 'c1'), page('ann', { ...bought, after: 'c1' }, [T1])];
  lists.explained(...history);
  transactions.explained(...history);
});

test('finds pages that break their own rules', () => {
  lists.wrong([BOUGHT, SECOND, page('ann', { ...bought, limit: 1 }, [T2, T1])], /has 2 entries, not 1/);
  lists.wrong([BOUGHT, page('ann', bought, [T1], 'c1'), page('ann', { ...bought, after: 'c1' }, [T1])], /there twice/);
  const contrary = { status: 200, body: { data: [], next: 'c1', has_more: false } };
  lists.wrong([seen('ann', bought, [1_000, 1_001], contrary)], /has_more is false, next is c1/);
  lists.wrong([BOUGHT, SECOND, page('ann', bought, [T1, T2])], /the later one comes after the earlier one/);
});

test('finds a purchase that its buyer is not shown, or another user is', () => {
  transactions.wrong([BOUGHT, page('ann', bought, [])], /listTransactions/);
  transactions.wrong([BOUGHT, page('bob', bought, [T1])], /listTransactions/);
  transactions.wrong([BOUGHT, page('ann', bought, [{ ...T1, status: 'pending' }])], /listTransactions/);
  strangers.explained(BOUGHT, page('ann', bought, [T1]));
  strangers.wrong([BOUGHT, page('ann', bought, [T1, { id: 't9', retail: '1.00' }])], /what no request made/);
});

test('lets lists be late until all is quiet, but for their own write', () => {
  lists.explained(BOUGHT, page('ann', bought, [], null, 40));
  transactions.explained(BOUGHT, page('ann', bought, [], null, 40));
  const write = seen('ann', by.purchase(), [0, 10], { ...by.transaction(), headers: { 'gift-position': 'log:1' } });
  const own: ListOperation = { ...bought, position: 'log:1' };
  lists.explained(write, page('ann', own, [T1], null, 40));
  lists.wrong([write, page('ann', own, [], null, 40)], /with Gift-Position lacks t1/);
  lists.explained(write, page('bob', own, [], null, 40));
});

/** The gift as ann, who bought it, is shown it. */
const shown = (more: object = {}): object => dataOf(gift(more));
const mine = (more: object = {}): ListOperation => ({ kind: 'listGifts', limit: 100, ...more });

test('lists a gift to its buyer and its holder', () => {
  gifts.explained(BOUGHT, page('ann', mine(), [shown()]), page('bob', mine({ as: 'holder' }), [shown()]));
  gifts.explained(
    BOUGHT,
    page('ann', mine({ as: 'holder' }), []),
    page('bob', mine({ as: 'sender' }), []),
    page('dan', mine(), []),
  );
  gifts.explained(
    BOUGHT,
    page('ann', mine({ status: 'sent' }), [shown()]),
    page('ann', mine({ status: 'redeemed' }), []),
  );
  gifts.wrong([BOUGHT, page('ann', mine(), [])], /listGifts/);
  gifts.wrong([BOUGHT, page('bob', mine(), [])], /listGifts/);
  gifts.wrong([BOUGHT, page('dan', mine(), [shown({ receiver_id: '' })])], /listGifts/);
  gifts.wrong([BOUGHT, page('ann', mine({ status: 'redeemed' }), [shown()])], /listGifts/);
  gifts.wrong([BOUGHT, FIRST, page('ann', mine(), [shown()])], /listGifts/);
});

test('lists an open gift to its buyer only, until a user claims it', () => {
  const open = { receiver_id: '', status: 12, status_code: 'UC' };
  const claimed = seen('dan', by.claim('CODE1'), [20, 30], gift({ receiver_id: 'dan' }));
  gifts.explained(BOUGHT_OPEN, page('ann', mine(), [shown(open)]), page('ann', mine({ as: 'holder' }), []));
  gifts.explained(BOUGHT_OPEN, claimed, page('dan', mine({ as: 'holder' }), [shown({ receiver_id: 'dan' })]));
  gifts.wrong([BOUGHT_OPEN, claimed, page('dan', mine({ as: 'holder' }), [])], /listGifts/);
  const later = seen(
    'dan',
    by.purchase({ order: 'o2' }),
    [70, 80],
    by.transaction({ id: 't2', reference_id: 'o2', gifts: ['g2'] }),
  );
  lists.wrong(
    [BOUGHT_OPEN, claimed, later, page('dan', mine(), [{ id: 'g1' }, { id: 'g2' }])],
    /the later one comes after/,
  );
});

test('lets a gift leave a page that is still to be read, where it is given to another user', () => {
  const write = { ...by.transaction(), headers: { 'gift-position': 'log:1' } };
  const first = seen('ann', by.purchase(), [0, 10], { ...write, headers: { 'gift-position': 'log:0' } });
  const more = by.transaction({ id: 't2', reference_id: 'o2', gifts: ['g2'] });
  const second = seen('ann', by.purchase({ order: 'o2' }), [70, 80], {
    ...more,
    headers: { 'gift-position': 'log:1' },
  });
  const own = mine({ limit: 1, position: 'log:1' });
  const pages = [page('ann', own, [{ id: 'g2' }], 'c1'), page('ann', { ...own, after: 'c1' }, [])];
  const given = seen('sue', { kind: 'reassign', gift: 'g1', user: 'ann' }, [1_000, 1_001], { status: 200, body: {} });
  lists.wrong([first, second, ...pages], /with Gift-Position lacks g1/);
  lists.explained(first, second, given, ...pages);
});

const count: ListOperation = { kind: 'listMerchantRedemptions', limit: 5 };
const entry = (more: object = {}): object => ({
  ...redemption('r1', 25),
  product_id: 'latte',
  value: 350,
  user_id: 'till',
  reversible: true,
  ...more,
});

test('lists the redemptions that count for a merchant', () => {
  gifts.explained(BOUGHT, FIRST, page('till', count, [entry()]), page('usher', count, []));
  gifts.explained(BOUGHT, FIRST, page('redeemer', count, [entry({ reversible: false })]));
  for (const wrong of [
    [],
    [entry({ value: 351 })],
    [entry({ user_id: null })],
    [entry({ reversible: false })],
    [entry(), entry()],
  ])
    gifts.wrong([BOUGHT, FIRST, page('till', count, wrong)], /listMerchantRedemptions/);
  gifts.wrong([BOUGHT, FIRST, page('usher', count, [entry({ user_id: null, reversible: false })])], /usher/);
  const reversal = seen('till', by.unredeem(), [40, 50], by.reversed('r1', 25, 45));
  gifts.wrong([BOUGHT, FIRST, reversal, page('till', count, [entry()])], /listMerchantRedemptions/);
  strangers.wrong([page('till', count, [entry()])], /what no request made/);
});

test("counts a redemption for the location's merchant, whoever made it", () => {
  const own: ListOperation = { ...count, position: 'log:1' };
  const write = seen('usher', redeem(), [20, 30], { ...by.redeemed('r1', 25), headers: { 'gift-position': 'log:1' } });
  lists.explained(BOUGHT, write, page('usher', own, []));
  lists.wrong([BOUGHT, write, page('till', own, [])], /with Gift-Position lacks r1/);
});

/** A page of the gifts of the transaction. */
function numbered(pageNumber: number, perPage: number, body: object): Observation {
  const operation = { kind: 'listTransactionGifts', transaction: 't1', page: pageNumber, perPage } as const;
  return seen('ann', operation, [90, 95], { status: 200, body });
}
const three = seen(
  'ann',
  by.purchase({ receivers: [{}, {}, {}] }),
  [0, 10],
  by.transaction({ gifts: ['g1', 'g2', 'g3'], retail: '10.50' }),
);
const secondPage = {
  current_page: 2,
  data: [{ id: 'g3' }],
  from: 3,
  to: 3,
  last_page: 2,
  next_page_url: null,
  prev_page_url: 'https://x/?page=1',
  per_page: 2,
  total: 3,
};

test('numbers the pages of the gifts of a transaction', () => {
  lists.explained(three, numbered(2, 2, secondPage));
  lists.explained(three, numbered(3, 2, { ...secondPage, current_page: 3, data: [], from: 0, to: 0 }));
  const faults = [
    { data: [{ id: 'g2' }] },
    { data: [] },
    { from: 2 },
    { to: 2 },
    { last_page: 3 },
    { next_page_url: 'x' },
    { prev_page_url: null },
    { total: 2 },
  ];
  for (const fault of faults) lists.wrong([three, numbered(2, 2, { ...secondPage, ...fault })], /not as its gifts say/);
});

test.run();
