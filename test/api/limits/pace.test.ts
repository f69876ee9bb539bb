/** The figures of docs/limits.md, with the default settings and a clock that the test moves. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { LimitedRequest } from '../../../src/api/pipeline/limitedRequest.js';
import { type LimitSettings, openLimits } from '../../../src/api/limits/limits.js';
import type { RequestState } from '../../../src/api/pipeline/requestState.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import type { UserDocument } from '../../../src/projections/accounts.js';
import type { Records } from '../../../src/ports/readStore.js';
import { loadConfig } from '../../../src/service/config.js';
import { until } from '../../support/assertions/until.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { hash } from '../auth/support.js';

const test = suite('the pace that limits allow');
const DAY_S = 86_400;
const ADDRESS = '203.0.113.9';

interface World {
  readonly limits: ReturnType<typeof openLimits>;
  readonly records: Records;
  readonly refused: string[];
  /** Seconds go by. */
  pass(seconds: number): void;
}

function world(settings: Partial<LimitSettings> = {}): World {
  let now = Date.parse('2026-03-01T12:00:00Z');
  const records = memoryRecords(() => now);
  const refused: string[] = [];
  const closing = new AbortController();
  const limits = openLimits({
    settings: { ...loadConfig({}), ...settings },
    records,
    hash,
    followers: {
      start(_part, run) {
        const running = run({ signal: closing.signal, well: () => undefined, onTrouble: () => undefined });
        return {
          async close() {
            closing.abort();
            await running;
          },
        };
      },
    },
    onLimited: (limit) => refused.push(limit),
    now: () => now,
  });
  return { limits, records, refused, pass: (seconds) => void (now += seconds * 1_000) };
}

function request(
  user: string | undefined,
  address = ADDRESS,
): LimitedRequest & { readonly ctx: { state: RequestState } } {
  const principal: LimitedRequest['principal'] =
    user === undefined
      ? { kind: 'anonymous' }
      : { kind: 'user', clientId: 'pos', sessionId: '', user: { id: user } as UserDocument };
  return { principal, address, ctx: { state: { requestId: '1' } } };
}

/** @returns whether the limits let it */
function may(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    assert.is(error.code, 'too_many_requests');
    return false;
  }
}

test('a till is never limited that takes a code every 5 s for a day, each of them mistyped', async () => {
  const { limits, refused, pass } = world();
  for (let second = 0; second < DAY_S; second += 5) {
    limits.takeRequest(request('till'));
    limits.refuseGuesser(request('till'));
    limits.takeUnknownGift(request('till'));
    limits.takeRequest(request('till'));
    pass(5);
  }
  assert.equal(refused, []);
  await limits.close();
});

test('ninety tills of one user are never limited with a customer every 22 s, one in twenty mistyped', async () => {
  const { limits, refused, pass } = world();
  let customers = 0;
  for (let second = 0; second < 2 * 3_600; second += 22) {
    for (let till = 0; till < 90; till++) {
      limits.takeRequest(request('chain', `192.0.2.${till}`));
      if (++customers % 20 === 0) limits.takeUnknownGift(request('chain', `192.0.2.${till}`));
    }
    pass(22);
  }
  assert.equal(refused, []);
  await limits.close();
});

test('an address gets 38,400 guesses a day, an account 19,200, however fast it asks', async () => {
  const { limits, pass } = world();
  const got = { address: 0, account: 0 };
  for (let second = 0; second < DAY_S; second += 9) {
    for (let guess = 0; guess < 5; guess++) {
      if (may(() => limits.takeUnknownGift(request(undefined)))) got.address++;
      if (guess % 2 === 0 && may(() => limits.takeUnknownGift(request('ann', `192.0.2.${guess}`)))) got.account++;
    }
    pass(9);
  }
  // A first window is cut short, so there may be one more.
  assert.ok(got.address >= 38_400 - 400 && got.address <= 38_400 + 400, `${got.address}`);
  assert.ok(got.account >= 19_200 - 200 && got.account <= 19_200 + 200, `${got.account}`);
  await limits.close();
});

test('guessers that change their accounts are held by their address, others there go on', async () => {
  const { limits, refused } = world();
  let answered = 0;
  for (let account = 0; account < 50; account++)
    for (let guess = 0; guess < 50; guess++)
      if (may(() => limits.takeUnknownGift(request(`stolen-${account}`)))) answered++;
  // The eight accounts that fill the address, and a tenth of its limit for each of the others.
  assert.is(answered, 400 + 42 * 20);
  assert.equal([...new Set(refused)], ['unknown-gifts-address']);
  assert.ok(may(() => limits.refuseGuesser(request('till'))));
  assert.not.ok(may(() => limits.refuseGuesser(request(undefined))));
  assert.ok(may(() => limits.refuseGuesser(request(undefined, '203.0.113.10'))));
  await limits.close();
});

test('has no limit, and no header, where a setting is 0', async () => {
  const none = { clientRateLimit: 0, userRateLimit: 0, unknownGiftsPerCaller: 0, unknownGiftsPerAddress: 0 };
  const { limits } = world(none);
  for (let count = 0; count < 2_000; count++) {
    const one = request('ann');
    limits.takeRequest(one);
    limits.takeUnknownGift(one);
    assert.equal(one.ctx.state, { requestId: '1' });
  }
  await limits.close();
  const { limits: byUser } = world({ ...none, userRateLimit: 2 });
  const one = request('ann');
  byUser.takeRequest(one);
  assert.is(one.ctx.state.rateLimitPolicy, '"user";q=2;w=60');
  await byUser.close();
});

test('names no address in the records that processes share', async () => {
  const { limits, records } = world();
  for (let count = 0; count < 30; count++) limits.takeUnknownGift(request('ann'));
  await until(async () => (await records.list('limits/')).length > 0);
  const [record] = await records.list('limits/');
  const text = JSON.stringify(record);
  assert.ok(text.includes(hash('address', ADDRESS)) && text.includes('pos ann'));
  assert.not.ok(text.includes(ADDRESS));
  await limits.close();
});

test.run();
