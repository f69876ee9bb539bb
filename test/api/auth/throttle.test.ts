import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Attempt, type Throttle, throttle } from '../../../src/api/auth/throttle.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type Clock, type MemoryRecords, clockAt, hash, memoryRecords } from './support.js';

const test = suite('throttle');
const MINUTE = 60_000;

function setUp(): { clock: Clock; records: MemoryRecords; one: Throttle; other: Throttle } {
  const clock = clockAt();
  const records = memoryRecords(clock.now);
  return { clock, records, one: throttle(records, hash, clock.now), other: throttle(records, hash, clock.now) };
}

const by = (name: string, address = '203.0.113.1'): Attempt => ({
  address,
  usernameHash: hash('username', name),
  userId: name.toUpperCase(),
});
const byClient = (clientId: string, address = '203.0.113.1', sessionId?: string): Attempt => ({
  clientId,
  by: { address, sessionId },
});

/** One attempt: `true`, `false`, or how many seconds it has to wait. */
async function tries(counters: Throttle, attempt: Attempt, right = false): Promise<boolean | number> {
  try {
    return await counters.attempt(attempt, async (reserve) => {
      await reserve();
      return right;
    });
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    assert.is(error.code, 'too_many_requests');
    return Number(error.headers['Retry-After']);
  }
}

async function fails(counters: Throttle, attempts: readonly Attempt[]): Promise<void> {
  for (const attempt of attempts) assert.is(await tries(counters, attempt), false);
}

test('ten failures in a row for one username from one address', async () => {
  const { clock, one, other } = setUp();
  for (let count = 0; count < 10; count += 1) await fails(count % 2 === 0 ? one : other, [by('ada')]);
  clock.ms += 5 * MINUTE;
  assert.is(await tries(one, by('ada'), true), 600);
  assert.is(await tries(other, by('ada'), true), 600);
  assert.is(await tries(one, by('bob'), true), true);
  assert.is(await tries(one, by('ada', '203.0.113.2'), true), true);
  clock.ms += 10 * MINUTE - 1;
  assert.is(await tries(one, by('ada'), true), 1);
  clock.ms += 1;
  assert.is(await tries(one, by('ada'), true), true);
});

test('a username’s next user is not known where its former one has logged in', async () => {
  const { one } = setUp();
  const named = (userId: string, address: string): Attempt => ({ ...by('shared', address), userId });
  assert.is(await tries(one, named('former', '203.0.113.1'), true), true);
  for (let count = 0; count < 100; count += 1) await fails(one, [named('next', `198.51.100.${count}`)]);
  assert.is(await tries(one, named('next', '203.0.113.1')), 900, 'counted with the failures from anywhere');
  assert.is(await tries(one, named('former', '203.0.113.1'), true), true, 'who is known there is not kept out');
});

test('a clock that is set back locks no caller out for longer than the window', async () => {
  const { clock, one } = setUp();
  for (let count = 0; count < 10; count += 1) await fails(one, [by('ada')]);
  assert.is(await tries(one, by('ada'), true), 900);
  clock.ms -= 24 * 60 * MINUTE;
  assert.is(await tries(one, by('ada'), true), 900);
  clock.ms += 5 * MINUTE;
  assert.is(await tries(one, by('ada'), true), 600);
  clock.ms += 10 * MINUTE;
  assert.is(await tries(one, by('ada'), true), true);
});

test("a success resets the username's counters", async () => {
  const { one } = setUp();
  for (let round = 0; round < 12; round += 1) {
    await fails(
      one,
      Array.from({ length: 9 }, () => by('ada', `198.51.100.${round}`)),
    );
    assert.is(await tries(one, by('ada', `198.51.100.${round}`), true), true);
  }
});

test('a hundred failures for one username from anywhere', async () => {
  const { one, other } = setUp();
  await fails(
    one,
    Array.from({ length: 100 }, (_, index) => by('ada', `198.51.${index}.1`)),
  );
  assert.is(await tries(other, by('ada', '192.0.2.1'), true), 900);
  assert.is(await tries(other, by('bob', '192.0.2.1'), true), true);
});

test('refuses users after a hundred failures of users from one address; successes are not counted', async () => {
  const { one, other } = setUp();
  for (let count = 0; count < 100; count += 1) {
    assert.is(await tries(one, by(`new ${count}`), true), true);
    await fails(one, [by(`user ${count}`)]);
  }
  assert.is(await tries(other, by('ada'), true), 900);
  assert.is(await tries(other, by('ada', '203.0.113.2'), true), true);
});

test('keeps out no user who has logged in from there, save for failures of their own there', async () => {
  const { clock, one, other } = setUp();
  assert.is(await tries(one, by('ada'), true), true);
  clock.ms += 89 * 24 * 60 * MINUTE;
  for (let count = 0; count < 100; count += 1)
    await fails(one, [by(`user ${count}`), by('ada', `198.51.100.${count}`)]);
  assert.is(await tries(one, by('bob'), true), 900);
  assert.is(await tries(one, by('ada', '198.51.100.200'), true), 900);
  assert.is(await tries(other, by('ada'), true), true);
  await fails(
    one,
    Array.from({ length: 10 }, () => by('ada')),
  );
  assert.is(await tries(other, by('ada'), true), 900);
});

test('counts failures of clients by client and address, and apart from those of users', async () => {
  const { one, other } = setUp();
  await fails(
    one,
    Array.from({ length: 10 }, () => byClient('app')),
  );
  assert.is(await tries(other, byClient('app'), true), 900);
  assert.is(await tries(other, byClient('app', '203.0.113.2'), true), true);
  for (let count = 0; count < 90; count += 1) {
    assert.is(await tries(other, byClient('pos'), true), true);
    await fails(one, [byClient(`client ${count}`)]);
  }
  assert.is(await tries(other, byClient('pos'), true), 900);
  assert.is(await tries(other, by('ada'), true), true);
});

test("counts failures of a token's holder by its session alone", async () => {
  const { one } = setUp();
  await fails(
    one,
    Array.from({ length: 100 }, (_, count) => byClient(`client ${count}`)),
  );
  await fails(
    one,
    Array.from({ length: 10 }, () => byClient('app', '203.0.113.1', 'a')),
  );
  assert.is(await tries(one, byClient('app', '203.0.113.2', 'a'), true), 900);
  assert.is(await tries(one, byClient('app', '203.0.113.1', 'b'), true), true);
});

test('nothing is checked where a counter is full, and the wait is for the last of those that are', async () => {
  const { clock, one } = setUp();
  for (let count = 0; count < 90; count += 1) await fails(one, [by('ada', `192.0.2.${count}`)]);
  clock.ms += 5 * MINUTE;
  for (let count = 0; count < 10; count += 1) await fails(one, [by('ada')]);
  assert.is(await tries(one, by('ada', '198.51.100.1')), 600);
  assert.is(await tries(one, by('ada')), 900);
  let checked = false;
  const refused = one.attempt(by('ada'), async () => (checked = true));
  await refused.then(
    () => assert.unreachable(),
    (error) => assert.is((error as HttpError).code, 'too_many_requests'),
  );
  assert.not.ok(checked);
});

test('an IPv6 address counts with its /64', async () => {
  const { one } = setUp();
  await fails(
    one,
    Array.from({ length: 10 }, (_, index) => by('ada', `2001:db8::${index + 1}`)),
  );
  assert.is(await tries(one, by('ada', '2001:db8::ffff'), true), 900);
  assert.is(await tries(one, by('ada', '2001:db8:0:1::1'), true), true);
});

test('guesses side by side, in several processes, do not outrun the counters', async () => {
  const { records, one, other } = setUp();
  const results = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => tries(index % 2 === 0 ? one : other, by('ada'))),
  );
  assert.is(results.filter((result) => result === false).length, 10);
  assert.is(results.filter((result) => result === 900).length, 30);
  const counters = await records.list<{ points: number }>('throttle-address');
  assert.equal(
    counters.map(({ value }) => value.points),
    [10],
  );
});

test('no count is lost under contention', async () => {
  const { records, one, other } = setUp();
  await Promise.all(
    Array.from({ length: 60 }, async (_, index) => tries(index % 2 === 0 ? one : other, by(`user ${index}`))),
  );
  assert.is((await records.list<{ points: number }>('throttle-address'))[0]?.value.points, 60);
});

test('right passwords sent side by side are no failures to each other', async () => {
  const { one } = setUp();
  await fails(
    one,
    Array.from({ length: 9 }, () => by('ada')),
  );
  const results = await Promise.all(Array.from({ length: 30 }, async () => tries(one, by('ada'), true)));
  assert.ok(results.every((result) => result === true));
});

test('so many wait for their turn at most', async () => {
  const { one } = setUp();
  const results = await Promise.all(Array.from({ length: 60 }, async () => tries(one, by('ada'), true)));
  assert.is(results.filter((result) => result === true).length, 51);
  assert.is(results.filter((result) => result === 1).length, 9);
});

test('an attempt that could not be decided is not counted', async () => {
  const { records, one } = setUp();
  for (let count = 0; count < 12; count += 1) {
    const broken = one.attempt(by('ada'), async (reserve) => {
      await reserve();
      throw new UnavailableError('down');
    });
    await broken.then(
      () => assert.unreachable(),
      (error) => assert.instance(error, UnavailableError),
    );
  }
  assert.is(await tries(one, by('ada'), true), true);
  records.down = true;
  await tries(one, by('ada')).then(
    () => assert.unreachable(),
    (error) => assert.instance(error, UnavailableError),
  );
});

test('a store that never takes a count is unavailable, not endless', async () => {
  const { clock, records } = setUp();
  const stubborn = throttle({ ...records, put: async () => undefined, get: async () => undefined }, hash, clock.now);
  await tries(stubborn, by('ada')).then(
    () => assert.unreachable(),
    (error) => assert.instance(error, UnavailableError),
  );
});

test('a reservation that finds a counter full gives the others back', async () => {
  const { records, one } = setUp();
  // The address is used up between the check and the reservation.
  const late = one.attempt(by('ada'), async (reserve) => {
    await Promise.all(Array.from({ length: 100 }, async (_, index) => tries(one, by(`user ${index}`))));
    await reserve();
    return true;
  });
  await late.then(
    () => assert.unreachable(),
    (error) => assert.is((error as HttpError).code, 'too_many_requests'),
  );
  const counters = [
    ...(await records.list<{ points: number }>(`throttle-pair:${hash('username', 'ada')}`)),
    ...(await records.list<{ points: number }>(`throttle-username:${hash('username', 'ada')}`)),
  ];
  assert.equal(
    counters.map(({ value }) => value.points),
    [0, 0],
  );
});

test('what is given back after its window has ended changes nothing', async () => {
  const { clock, records, one } = setUp();
  const slow = one.attempt(by('ada'), async (reserve) => {
    await reserve();
    clock.ms += 16 * MINUTE;
    return true;
  });
  assert.is(await slow, true);
  assert.equal(await records.list('throttle-'), []);
});

test('what is given back after a success has cleared its counter takes no later failure with it', async () => {
  const { records, one } = setUp();
  const ends: (() => void)[] = [];
  const undecided = ['192.0.2.1', '192.0.2.2'].map(async (address) =>
    one
      .attempt(by('ada', address), async (reserve) => {
        await reserve();
        await new Promise<void>((_, reject) => ends.push(() => reject(new UnavailableError('down'))));
        return false;
      })
      .catch((error: unknown) => assert.instance(error, UnavailableError)),
  );
  while (ends.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.is(await tries(one, by('ada'), true), true);
  await fails(one, [by('ada', '192.0.2.3')]);
  for (const end of ends) end();
  await Promise.all(undecided);
  const [counter] = await records.list<{ points: number }>('throttle-username');
  assert.is(counter?.value.points, 0);
});

test('no key or counter shows a username or an address', async () => {
  const { records, one } = setUp();
  await fails(one, [by('ada'), by('ada', '2001:db8::1'), byClient('app')]);
  assert.is(await tries(one, by('ada', '203.0.113.7'), true), true);
  assert.not.match(records.text(), /ada|203\.0|2001:|db8/);
});

test.run();
