/** Outages: many requests whose outcome is unknown, until later answers say which of them had an effect. */
import { suite } from 'uvu';
import { checkGifts } from './giftHistory.js';
import * as by from './handmade.js';
import { BOUGHT, again, keyIs, lookUp, lost, page, redeem, redemption, refusal, seen } from './handmade.js';
import type { Observation } from './history.js';
import { judgedBy } from './judged.js';

const test = suite('an outage in the history of a gift');

const EFFECT_MS = 200;
const { explained, wrong } = judgedBy((history) =>
  checkGifts(history, by.INSTALLATION, { clockMs: 5, effectMs: EFFECT_MS }),
);

const FIRST = seen('till', redeem({ key: 'k1' }), [20, 30], by.redeemed('r1', 25));
const REFUSED = refusal('gift_already_redeemed');
const KEPT = { status: REFUSED.status, body: REFUSED.body };
const KEYS = Array.from({ length: 2 }, (_, index) => index);

/** Redemptions that were refused, others that never came, and reversals that came to nothing, all without an answer. */
const OUTAGE: readonly Observation[] = KEYS.flatMap((at) => [
  lost('till', redeem({ key: `refused${at}` }), 40 + at),
  lost('till', redeem({ key: `never${at}` }), 60 + at),
  lost('usher', by.unredeem(), 80 + at),
  lost('till', by.unredeem('latest'), 90 + at),
  lost('till', by.unredeem(`key:never${at}`), 100 + at),
]);
const LIST = seen('till', by.listRedemptions, [150, 160], page(redemption('r1', 25)));
const LOOKED_UP: readonly Observation[] = KEYS.flatMap((at) => [
  seen(
    'till',
    lookUp(`refused${at}`),
    [500 + 2 * at, 501 + 2 * at],
    keyIs(`refused${at}`, { status: 'done', answer: KEPT }),
  ),
  seen('till', lookUp(`never${at}`), [600 + 2 * at, 601 + 2 * at], keyIs(`never${at}`, { status: 'unseen' })),
]);

test('is explained by the requests that later answers name', () => {
  explained(BOUGHT, FIRST, ...OUTAGE, LIST, ...LOOKED_UP);
});

test('does not hide what nothing explains', () => {
  const whole = [BOUGHT, FIRST, ...OUTAGE, LIST, ...LOOKED_UP];
  const last = (...data: readonly object[]): Observation => seen('till', by.listRedemptions, [700, 701], page(...data));
  explained(...whole, last(redemption('r1', 25)));
  wrong([...whole, last()], /^linearizable: .*\n[^]*listRedemptions/);
  wrong([...whole, last(redemption('r2', 50), redemption('r1', 25))], /^linearizable: .*\n[^]*listRedemptions/);
  const made = { status: 'done', redemption: { id: 'r2', location_id: 'bean-soho', redeemed: true } };
  wrong(
    [...whole, seen('till', lookUp('never0'), [700, 701], keyIs('never0', made))],
    /^linearizable: .*\n[^]*lookUpKey/,
  );
});

test('lets a redemption happen that only a later list shows', () => {
  const reversed = redemption('r1', 25, { reversed: 95 });
  const list = seen('till', by.listRedemptions, [150, 160], page(redemption('r2', 100), reversed));
  explained(BOUGHT, FIRST, ...OUTAGE, lost('till', redeem(), 110), list);
});

test('ends: long after a request was sent, its key is unseen only if it had no effect', () => {
  const replay = seen('till', redeem({ key: 'k2' }), [60, 70], again(REFUSED));
  const unseen = (at: number): Observation =>
    seen('till', lookUp('k2'), [at, at + 5], keyIs('k2', { status: 'unseen' }));
  const request = lost('till', redeem({ key: 'k2' }), 40);
  explained(BOUGHT, FIRST, request, replay, unseen(100));
  wrong([BOUGHT, FIRST, request, replay, unseen(40 + EFFECT_MS + 1)], /lookUpKey/);
});

test.run();
