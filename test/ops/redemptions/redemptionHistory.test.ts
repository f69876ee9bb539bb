import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generateHistory } from '../../../bench/support/history.js';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { logRange, readRange } from '../../../src/ops/ranges/range.js';
import { readRedemptions, type RedemptionRecord, unknownTo } from '../../../src/ops/redemptions/redemptionHistory.js';
import { timeZone } from '../../../src/ops/ranges/times.js';
import { foldTotals, sumOf } from '../../../src/ops/totals/totals.js';
import type { EventStore } from '../../../src/ports/eventStore.js';

const test = suite('audit/redemptions');
const zone = timeZone('UTC');
let dir = '';
let events: EventStore;
let made: ReturnType<typeof generateHistory>;

test.before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'redemptions-'));
  made = generateHistory({ dir, events: 12_000 });
  events = await openEmbeddedEventStore({ dir });
});
test.after(async () => {
  await events.close();
  rmSync(dir, { recursive: true });
});

async function all(
  words: { readonly from?: string; readonly to?: string; readonly after?: string } = {},
): Promise<RedemptionRecord[]> {
  const found: RedemptionRecord[] = [];
  for await (const { records } of readRedemptions(events, await logRange(events, { zone, ...words }), {}))
    found.push(...records);
  return found;
}

test('a whole history comes once and in order, each reversal with what it reverses', async () => {
  const found = await all();
  assert.is(found.filter(({ type }) => type === 'GiftRedeemed').length, made.redeemed);
  assert.is(found.filter(({ type }) => type === 'GiftUnredeemed').length, made.unredeemed);
  assert.ok(made.unredeemed > 50);
  assert.ok(found.every(({ position }, index) => index === 0 || position > (found[index - 1]?.position ?? '')));
  const byId = new Map(
    found.filter(({ type }) => type === 'GiftRedeemed').map((record) => [record.redemption.redemption_id, record]),
  );
  for (const record of found) assert.equal(record.redemption, byId.get(record.redemption.redemption_id)?.redemption);
});

test('makes the whole of parts, with reversals whose redemption is in an earlier part', async () => {
  const whole = await all();
  const middle = whole[Math.floor(whole.length / 2)];
  const before = await all({ to: middle?.at ?? '' });
  const after = await all({ after: before.at(-1)?.position ?? '' });
  assert.equal(
    [...before, ...after].map(({ id }) => id),
    whole.map(({ id }) => id),
  );
  const known = new Set(
    after.filter(({ type }) => type === 'GiftRedeemed').map(({ redemption }) => redemption.redemption_id),
  );
  const strangers = after.filter(
    ({ type, redemption }) => type === 'GiftUnredeemed' && !known.has(redemption.redemption_id),
  );
  assert.ok(strangers.length > 0);
  assert.ok(strangers.every(({ redemption }) => redemption.value > 0));
});

test('totals of all and of parts add up', async () => {
  const whole = sumOf(await foldTotals(events, await logRange(events, { zone }), zone));
  assert.equal([whole.issued, whole.redeemed, whole.unredeemed], [made.gifts, made.redeemed, made.unredeemed]);
  const [middle] = (await all()).slice(-20);
  const parts = [
    await logRange(events, { zone, to: middle?.at }),
    await logRange(events, { zone, after: (await logRange(events, { zone, to: middle?.at })).through ?? '' }),
  ];
  const sums = await Promise.all(parts.map(async (range) => sumOf(await foldTotals(events, range, zone))));
  assert.equal(
    sums.map(({ redeemed_value: value }) => value).reduce((one, other) => one + other),
    whole.redeemed_value,
  );
  assert.equal(
    sums.map(({ issued_value: value }) => value).reduce((one, other) => one + other),
    whole.issued_value,
  );
});

test('a range that holds nothing reads nothing', async () => {
  const end = await events.end();
  for (const words of [{ to: '1999-01-01' }, { after: end ?? '' }, { from: '2100-01-01' }]) {
    let batches = 0;
    for await (const _ of readRange(events, await logRange(events, { zone, ...words }), {})) batches += 1;
    assert.is(batches, 0, JSON.stringify(words));
  }
});

test('finds what was done on the command line, whose callers have no account', async () => {
  const user = 'cli:desk@host';
  const [redeemed] = await all();
  await events.append(
    redeemed?.stream ?? '',
    [
      {
        id: randomUUID(),
        type: 'GiftUnredeemed',
        at: '2026-02-01T10:00:00.000Z',
        data: { redemption_id: redeemed?.redemption.redemption_id, by_support: true },
        metadata: { commandId: 'c', correlationId: 'r', by: { user } },
      },
    ],
    'any',
  );
  assert.is(await unknownTo(events, { user }), undefined);
  assert.is((await unknownTo(events, { user: 'nobody' }))?.name, 'user');
  const found: RedemptionRecord[] = [];
  for await (const { records } of readRedemptions(events, await logRange(events, { zone }), { user }))
    found.push(...records);
  assert.equal(
    found.map(({ type, stream }) => [type, stream]),
    [['GiftUnredeemed', redeemed?.stream]],
  );
});

test('fails on a reversal of a redemption that its gift does not have', async () => {
  const stream = `gift-${'0'.repeat(20)}`;
  await events.append(
    stream,
    [
      {
        id: randomUUID(),
        type: 'GiftUnredeemed',
        at: new Date().toISOString(),
        data: { redemption_id: 'none' },
        metadata: { commandId: 'c', correlationId: 'r', by: {} },
      },
    ],
    'any',
  );
  await all({ from: '2026-06-01' }).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /reverses the redemption none, which it does not have/),
  );
});

test.run();
