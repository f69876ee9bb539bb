/**
 * A clock that was ahead for a while and was set back: reports by date hold what was decided on it, whatever stands
 * before or after it in the log.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { checkTotals } from '../../../src/ops/totals/checkTotals.js';
import { logRange } from '../../../src/ops/ranges/range.js';
import { readRedemptions } from '../../../src/ops/redemptions/redemptionHistory.js';
import { timeZone } from '../../../src/ops/ranges/times.js';
import { foldTotals } from '../../../src/ops/totals/totals.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import type { TransactionDocument } from '../../../src/projections/transactions.js';

const test = suite<{ dir: string; events: EventStore }>('a clock that was ahead');
const zone = timeZone('UTC');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'ahead-'));
  context.events = await openEmbeddedEventStore({ dir: context.dir });
});
test.after.each(async ({ dir, events }) => {
  await events.close();
  rmSync(dir, { recursive: true });
});

/** Buys and redeems one gift of 350 pence on each of these days, in this order. */
async function redeemedOn(events: EventStore, days: readonly string[]): Promise<void> {
  for (const [n, day] of days.entries()) {
    const id = `t${n}`;
    const seed = String(n).padStart(64, '0');
    const happened = async (stream: string, type: string, data: object): Promise<unknown> =>
      events.append(
        stream,
        [
          {
            id: randomUUID(),
            type,
            at: `${day}T12:00:00.000Z`,
            data,
            metadata: { commandId: 'c', correlationId: 'r', by: { user: 'u' } },
          },
        ],
        'any',
      );
    await happened(`transaction-${id}`, 'GiftsPurchased', {
      transaction_id: id,
      seed,
      brand_id: 'b',
      product_id: 'p',
      sale_price: 350,
      total: 350,
      receivers: [{}],
    });
    await happened(`transaction-${id}`, 'PaymentCharged', { amount: 350, provider: 'p', charge_id: 'c' });
    const [gift] = deriveGiftIds(seed, 1).map((ids) => `gift-${ids.gift_id}`);
    await happened(gift!, 'GiftIssued', { transaction_id: id, brand_id: 'b', product_id: 'p', value: 350 });
    await happened(gift!, 'GiftRedeemed', {
      redemption_id: `r${n}`,
      location_id: 's',
      location_merchant_id: 'm',
      merchant_id: 'm',
      brand_id: 'b',
      product_id: 'p',
      value: 350,
    });
  }
}

test('has all redemptions of a day in its redemptions and totals, and the check agrees', async ({ events }) => {
  const days = ['2026-05-01', '2026-05-02', '2026-07-01', '2026-07-01', '2026-05-02', '2026-05-03'];
  await redeemedOn(events, days);
  const far: EventStore = { ...events };
  delete far.timeBounds;
  const transactions = {
    reached: async () => true,
    find: async ({ where }: { where: { id: { gt: string } } }) =>
      days.map((_, n) => ({ id: `t${n}`, body: {} })).filter(({ id }) => id > where.id.gt),
  } as unknown as ReadModel<TransactionDocument>;
  for (const store of [events, far]) {
    for (const [from, to, wanted] of [
      ['2026-05-02', '2026-05-02', [1, 4]],
      ['2026-05-02', '2026-05-31', [1, 4, 5]],
      ['2026-05-03', undefined, [2, 3, 5]],
      [undefined, '2026-05-02', [0, 1, 4]],
      ['2026-06-01', '2026-06-30', []],
    ] as const) {
      const range = await logRange(store, { zone, from, to });
      const ids: string[] = [];
      for await (const { records } of readRedemptions(store, range, {}))
        ids.push(...records.map(({ redemption }) => redemption.redemption_id));
      assert.equal(
        ids,
        wanted.map((n) => `r${n}`),
        `${from} to ${to}`,
      );
      const rows = await foldTotals(store, range, zone);
      assert.is(
        rows.reduce((sum, row) => sum + row.redeemed, 0),
        wanted.length,
      );
      assert.ok(rows.every(({ day }) => wanted.some((n) => days[n] === day)));
      const check = await checkTotals({ events: store, transactions }, rows, range, zone);
      assert.ok(check.agree, JSON.stringify(check.differences));
      // What the fold of the log leaves out the streams tell of.
      if (wanted.length > 0)
        assert.not.ok((await checkTotals({ events: store, transactions }, rows.slice(1), range, zone)).agree);
    }
  }
});

test.run();
