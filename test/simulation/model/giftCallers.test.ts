/** Who may do and see what of a gift, held against histories made by hand. */
import { suite } from 'uvu';
import { checkGifts } from './giftHistory.js';
import type { Observation } from './history.js';
import * as by from './handmade.js';
import { BOUGHT, BOUGHT_OPEN, getGift, gift, redeem, refusal, seen } from './handmade.js';
import { judgedBy } from './judged.js';

const test = suite('the callers of the model of a gift');

const check = (history: readonly Observation[]) => checkGifts(history, by.INSTALLATION, { clockMs: 5 });
const { explained, wrong } = judgedBy(check);

const MADE = by.redeemed('r1', 25);
const FIRST = seen('till', redeem({ key: 'k1' }), [20, 30], MADE);

test('finds a reversal by somebody who may not', () => {
  const denied = refusal('cannot_unredeem');
  for (const user of ['ann', 'bob', 'redeemer', 'usher']) {
    explained(BOUGHT, FIRST, seen(user, by.unredeem(), [40, 50], denied));
    wrong([BOUGHT, FIRST, seen(user, by.unredeem(), [40, 50], by.reversed('r1', 25, 45))], /Cannot unredeem this gift/);
  }
});

test('lets only the merchant of the location reverse a redemption there', () => {
  const bought = seen('ann', by.purchase({ product: 'any' }), [0, 10], by.transaction());
  const atCinema = seen('usher', redeem({ location: 'screen-soho' }), [20, 30], by.redeemed('r1', 25, 'screen-soho'));
  explained(bought, atCinema, seen('till', by.unredeem(), [40, 50], refusal('cannot_unredeem')));
  wrong([bought, atCinema, seen('usher', by.unredeem(), [40, 50], refusal('cannot_unredeem'))], /#2 .*unredeem/);
});

test('finds a redemption by somebody who may not, or elsewhere than they may', () => {
  for (const user of ['ann', 'dan', 'usher']) {
    explained(BOUGHT, seen(user, redeem(), [20, 30], refusal('cannot_redeem')));
    wrong([BOUGHT, seen(user, redeem(), [20, 30], MADE)], /Cannot redeem this gift/);
  }
  const elsewhere = redeem({ location: 'screen-soho' });
  explained(BOUGHT, seen('till', elsewhere, [20, 30], refusal('invalid_location')));
  wrong([BOUGHT, seen('till', elsewhere, [20, 30], by.redeemed('r1', 25, 'screen-soho'))], /Invalid location/);
  explained(BOUGHT, seen('bob', elsewhere, [20, 30], by.redeemed('r1', 25, 'screen-soho')));
  explained(BOUGHT, seen('bob', redeem({ location: 'nowhere' }), [20, 30], refusal('invalid_location')));
});

test('opens a gift by its id only to those who have to do with it', () => {
  const notFound = refusal('gift_not_found');
  for (const user of ['dan', 'usher']) {
    explained(BOUGHT, seen(user, getGift(), [20, 30], notFound), seen(user, by.listRedemptions, [20, 30], notFound));
    wrong([BOUGHT, seen(user, getGift(), [20, 30], gift({ receiver_id: '' }))], /gift not found/);
    explained(BOUGHT, seen(user, getGift('CODE1'), [20, 30], gift({ receiver_id: '' })));
  }
  for (const user of ['ann', 'bob', 'till']) wrong([BOUGHT, seen(user, getGift(), [20, 30], notFound)], /#1 .*getGift/);
});

test('shows the receiver to owner and namer only', () => {
  explained(
    BOUGHT,
    seen('bob', getGift(), [20, 30], gift()),
    seen('till', getGift(), [20, 30], gift({ receiver_id: '' })),
  );
  wrong([BOUGHT, seen('till', getGift(), [20, 30], gift())], /#1 .*getGift/);
  const byNumber = seen(
    'ann',
    by.purchase({ receivers: [{ phone_number: '07700 900002' }] }),
    [0, 10],
    by.transaction(),
  );
  explained(
    byNumber,
    seen('ann', getGift(), [20, 30], gift({ receiver_id: '' })),
    seen('bob', getGift(), [20, 30], gift()),
  );
  wrong([byNumber, seen('ann', getGift(), [20, 30], gift())], /#1 .*getGift/);
});

const OPEN = { receiver_id: '', status: 12, status_code: 'UC' };

test('gives an open gift to the first who claims it', () => {
  const dans = seen('dan', by.claim('CODE1'), [20, 30], gift({ receiver_id: 'dan' }));
  explained(
    BOUGHT_OPEN,
    seen('ann', getGift(), [11, 15], gift(OPEN)),
    dans,
    seen('bob', by.claim('CODE1'), [31, 40], refusal('gift_already_claimed')),
  );
  explained(BOUGHT_OPEN, dans, seen('dan', by.claim(), [31, 40], gift({ receiver_id: 'dan' })));
  explained(BOUGHT_OPEN, seen('dan', by.claim(), [20, 30], refusal('gift_not_found')));
  wrong([BOUGHT_OPEN, dans, seen('bob', by.claim('CODE1'), [25, 40], gift())], /None of these/);
  explained(BOUGHT, seen('dan', by.claim('CODE1'), [20, 30], refusal('cannot_claim')));
  wrong([BOUGHT, seen('dan', by.claim('CODE1'), [20, 30], gift({ receiver_id: 'dan' }))], /Cannot claim this gift/);
  explained(BOUGHT_OPEN, dans, seen('ann', redeem(), [31, 40], refusal('cannot_redeem')));
  wrong([BOUGHT_OPEN, dans, seen('ann', redeem(), [31, 40], by.redeemed('r1', 35))], /Cannot redeem this gift/);
});

test.run();
