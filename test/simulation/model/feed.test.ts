/** Event feeds, held against histories made by hand. */
import { suite } from 'uvu';
import { checkFeeds } from './feed.js';
import { checkGifts } from './giftHistory.js';
import * as by from './handmade.js';
import { BOUGHT, redeem, refusal, seen } from './handmade.js';
import type { Observation } from './history.js';
import { judgedBy } from './judged.js';
import type { ListEvents } from './operations.js';
import { checkTransactions } from './transactions.js';

const test = suite('the event feed in a history');

const QUIET = { clockMs: 5, quietFrom: by.START + 1_000 };
const feeds = judgedBy((history) => checkFeeds(history, QUIET));
const gifts = judgedBy((history) => checkGifts(history, by.INSTALLATION, QUIET));
const transactions = judgedBy((history) => checkTransactions(history, by.INSTALLATION, QUIET));

/** An event of the feed, at a time in ms after `START`. */
const event = (id: number, type: string, data: object = {}, at = 5): object => {
  const subject = type.startsWith('gift.')
    ? { transaction_id: 't1', gift_id: 'g1' }
    : { transaction_id: 't1', reference_id: 'o1' };
  return { id: `e${id}`, type, created_at: by.iso(at), position: `p${id}`, data: { ...subject, ...data } };
};
const CREATED = event(1, 'transaction.created');
const CHARGED = event(2, 'transaction.charged');
const ISSUED = event(3, 'gift.issued');
const REDEEMED = event(4, 'gift.redeemed', { redemption_id: 'r1', location_id: 'bean-soho' }, 25);
const UNREDEEMED = event(5, 'gift.unredeemed', { redemption_id: 'r1', location_id: 'bean-soho' }, 45);

const FIRST = seen('till', redeem(), [20, 30], by.redeemed('r1', 25));
const REVERSAL = seen('till', by.unredeem('r1'), [40, 50], by.reversed('r1', 25, 45));
const HISTORY = [BOUGHT, FIRST, REVERSAL];
const ALL = [CREATED, CHARGED, ISSUED, REDEEMED, UNREDEEMED];

let time = 1_000;
/** One page, read once all is quiet, or at another time. */
function page(
  client: string,
  data: readonly object[],
  more: Partial<ListEvents> & { at?: number; next?: string } = {},
): Observation {
  const { at = (time += 10), next = 'end', ...parameters } = more;
  const body = { data, next, has_more: next !== 'end' };
  return seen(client, { kind: 'listEvents', ...parameters }, [at, at + 5], { status: 200, body });
}
const whole = (...data: readonly object[]): Observation => page('client:app', data);

test('explains feeds that show all once, in one order', () => {
  const history = [...HISTORY, whole(...ALL), page('ann', ALL), page('bob', ALL.slice(2)), page('till', ALL.slice(3))];
  for (const { explained } of [feeds, gifts, transactions]) explained(...history);
});

test('finds an event that a feed lacks', () => {
  gifts.wrong([...HISTORY, whole(CREATED, CHARGED, ISSUED, REDEEMED)], /event feed of client:app/);
  gifts.wrong([...HISTORY, page('bob', [ISSUED, UNREDEEMED])], /event feed of bob/);
  gifts.wrong([...HISTORY, page('till', [REDEEMED])], /event feed of till/);
  transactions.wrong([...HISTORY, page('ann', [CREATED, ISSUED, REDEEMED, UNREDEEMED])], /ann: the event feed/);
  feeds.wrong([...HISTORY, whole(...ALL), page('ann', ALL.slice(1))], /ann lacks events of own purchases/);
});

test('finds an event that nothing explains, or that its reader must not see', () => {
  gifts.wrong([BOUGHT, FIRST, whole(...ALL)], /event feed of client:app/);
  gifts.wrong([...HISTORY, page('usher', [REDEEMED])], /event feed of usher/);
  gifts.wrong([...HISTORY, page('dan', [ISSUED])], /event feed of dan/);
  transactions.wrong([...HISTORY, page('bob', [CREATED])], /bob: the event feed/);
  feeds.wrong([...HISTORY, whole(...ALL), page('ann', [...ALL, event(9, 'gift.expired')])], /lacks/);
});

test('finds an event that is shown twice, or happens twice', () => {
  feeds.wrong([whole(CREATED, CREATED)], /shows an event twice/);
  feeds.wrong([whole(CREATED, event(9, 'transaction.created'))], /a second time/);
  feeds.wrong(
    [page('ann', [CREATED], { at: 10, next: 'c1' }), page('ann', [CREATED], { at: 20, after: 'c1' })],
    /shows an event twice/,
  );
});

test('finds another order', () => {
  feeds.wrong([whole(...ALL), page('bob', [REDEEMED, ISSUED, UNREDEEMED])], /has another order/);
  gifts.wrong([...HISTORY, whole(CREATED, CHARGED, ISSUED, UNREDEEMED, REDEEMED)], /event feed of client:app/);
  const second = seen(
    'ann',
    by.purchase({ order: 'o2' }),
    [70, 80],
    by.transaction({ id: 't2', reference_id: 'o2', gifts: ['g2'] }),
  );
  const later = event(9, 'transaction.created', { transaction_id: 't2', reference_id: 'o2' }, 75);
  feeds.explained(...HISTORY, second, whole(CREATED, later));
  feeds.wrong([...HISTORY, second, whole(later, CREATED)], /in the other order/);
});

test('finds an event at another time than its request', () => {
  const late = event(4, 'gift.redeemed', { redemption_id: 'r1', location_id: 'bean-soho' }, 400);
  feeds.wrong([...HISTORY, whole(CREATED, late)], /another time/);
});

test('finds an event that two feeds show otherwise', () => {
  const other = { ...REDEEMED, created_at: by.iso(26) };
  feeds.wrong([whole(...ALL), page('till', [other, UNREDEEMED])], /shows an event otherwise/);
});

test('finds an event that was skipped while the feed was read', () => {
  const end = page('till', [REDEEMED, UNREDEEMED]);
  feeds.explained(page('till', [], { at: 10, next: 'c1' }), page('till', [REDEEMED], { at: 40, after: 'c1' }), end);
  feeds.wrong([page('till', [UNREDEEMED], { at: 60 }), end], /skipped an event/);
  feeds.wrong(
    [
      page('till', [REDEEMED], { at: 35, next: 'c1' }),
      page('till', [event(8, 'gift.redeemed')], { at: 60, after: 'c1' }),
      end,
    ],
    /skipped an event/,
  );
});

test('finds a field that tells more than the documents say, and a page that is too long', () => {
  feeds.wrong([whole(event(1, 'gift.issued', { receiver_id: 'bob' }))], /a field that the documents don't name/);
  feeds.wrong([page('ann', [CREATED, CHARGED], { limit: 1 })], /more than 1 events/);
});

test('shows only the requested types', () => {
  const types = ['gift.redeemed', 'transaction.charged'];
  for (const { explained } of [gifts, transactions]) explained(...HISTORY, page('ann', [CHARGED, REDEEMED], { types }));
  gifts.wrong([...HISTORY, page('ann', [CHARGED], { types })], /event feed of ann/);
});

test('does not hold a declined purchase for one with gifts', () => {
  const declined = seen('ann', by.purchase(), [0, 10], {
    ...refusal('payment_declined'),
    headers: {
      'error-code': 'payment_declined',
      'transaction-id': 't1',
      'decline-code': 'generic_decline',
      location: '/',
    },
  });
  const events = [CREATED, event(2, 'transaction.declined')];
  transactions.explained(declined, page('ann', events));
  transactions.wrong([declined, page('ann', [CREATED, CHARGED])], /ann: the event feed/);
});

test.run();
