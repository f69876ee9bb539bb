/**
 * The history of one gift, and a gift as it stood at a time, in a log of 1,000,000 events or more: as `/ops` and
 * `gift history` find them. Gifts are picked at random, so that nothing of them is in any memory of ours. `--gifts=N`
 * makes a log of so many gifts (3.66 events each).
 */
import { parseArgs } from 'node:util';
import { openLog } from '../src/service/engines.js';
import { openEmbeddedReadStore } from '../src/adapters/embedded/readStore/readStore.js';
import { ALL_RELATIONS, giftAsOf } from '../src/ops/history/giftAsOf.js';
import { eventView } from '../src/ops/history/eventView.js';
import { giftHistory, namedGifts } from '../src/ops/history/giftHistory.js';
import { asOf as logAsOf } from '../src/ops/ranges/timeBounds.js';
import { keyedHash } from '../src/domain/keyedHash.js';
import { loadKeys } from '../src/service/keys.js';
import { openReadModels } from '../src/projections/index.js';
import { historyOf } from './support/data.js';
import { median, table, verdict } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({
  options: { gifts: { type: 'string', default: '275000' }, runs: { type: 'string', default: '500' } },
});
const data = historyOf(Number(values.gifts));
// Once, so that the read models stand there.
await (await startService(data.dir)).stop();

const { events, subjects } = await openLog({ dataDir: data.dir });
const store = await openEmbeddedReadStore({ dir: data.dir });
const models = openReadModels(store, events);
const deps = {
  events,
  models,
  subjects,
  catalogue: models.catalogue,
  hash: keyedHash(loadKeys({ dataDir: data.dir }).hashKey),
  publicUrl: 'http://localhost',
};
const any = (): string => data.gifts[Math.floor(Math.random() * data.gifts.length)]?.id ?? '';

async function history(identifier: string): Promise<string[]> {
  const found = await namedGifts(deps, identifier);
  if (found === undefined) throw new Error(`${identifier} is not found`);
  const life = await giftHistory(deps, found);
  return life.map((event) => JSON.stringify(eventView(event, { personal: false })));
}

/** A redemption of some gift: its event's data names it. */
async function redemptionId(): Promise<string> {
  for (;;) {
    const redeemed = (await events.read(`gift-${any()}`)).find(({ type }) => type === 'GiftRedeemed');
    if (redeemed !== undefined) return (redeemed.data as { readonly redemption_id: string }).redemption_id;
  }
}

async function asOf(giftId: string): Promise<void> {
  const found = await namedGifts(deps, giftId);
  const last = (await events.read(`gift-${giftId}`)).at(-1);
  if (found === undefined || last === undefined) throw new Error(`${giftId} is not found`);
  const then = await logAsOf(events, last.at);
  if (
    (await giftAsOf(deps, {
      giftId,
      purchase: found.purchase,
      moment: then,
      embeds: ALL_RELATIONS,
      personal: false,
    })) === undefined
  )
    throw new Error(`${giftId} was not there`);
}

async function measured(
  prepare: () => Promise<string>,
  run: (id: string) => Promise<unknown>,
): Promise<{ p50: number; p99: number; most: number }> {
  const took: number[] = [];
  for (let n = 0; n < Number(values.runs); n++) {
    const id = await prepare();
    const began = performance.now();
    await run(id);
    took.push(performance.now() - began);
  }
  const sorted = took.toSorted((one, other) => one - other);
  return { p50: median(took), p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0, most: sorted.at(-1) ?? 0 };
}

const byGift = await measured(async () => any(), history);
const byRedemption = await measured(redemptionId, history);
const then = await measured(async () => any(), asOf);
await store.close();
await events.close();

const row = (what: string, { p50, p99, most }: typeof byGift): Record<string, string | number> => ({
  'one gift': what,
  'p50 ms': p50,
  'p99 ms': p99,
  'most ms': most,
});
console.log(`${data.events.toLocaleString('en')} events, ${values.runs} gifts each`);
table([
  row('history by its id', byGift),
  row('history by a redemption', byRedemption),
  row('as of a time, embeds included', then),
]);
verdict('history of one gift, 99th percentile', Math.max(byGift.p99, byRedemption.p99), { atMost: 20 }, ' ms');
