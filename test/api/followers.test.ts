import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Engines } from '../../src/ports/engines.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { type Breakable, breakable, FEED_ERRORS } from '../support/faults/breakable.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { type Service, startService } from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { until } from '../support/assertions/until.js';

interface Context {
  service: Service;
  log: Breakable;
  /** What the read store's next queries fail with. */
  failing: unknown[];
}

/** The longest that there is: the whole wait for a charge whose outcome nobody hears of. */
const CHARGE_WAIT_MS = 60_000;

const test = suite<Context>('followers that fail, over HTTP');

test.before(async (context) => {
  context.failing = [];
  const find: (store: ReadStore) => ReadStore['find'] =
    (store) =>
    async (...requested) => {
      if (requested[0].name === 'catalogue' && context.failing.length > 0) throw context.failing.shift();
      return store.find(...requested);
    };
  const through = (engines: Engines): Engines => {
    context.log = breakable(engines.events);
    return { ...engines, events: context.log.events, store: { ...engines.store, find: find(engines.store) } };
  };
  context.service = await startService({ app: { through }, env: { CHARGE_WAIT_MS: String(CHARGE_WAIT_MS) } });
});
test.after(async ({ service }) => service.close());

/** Buys a gift and waits until it is issued. @returns how long the purchase took to be answered, in ms */
async function buys({ ask, userToken }: Service): Promise<number> {
  const token = await userToken('ann');
  const began = performance.now();
  const bought = await ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte') });
  const took = performance.now() - began;
  assert.is(bought.status, 201, bought.text);
  const gift = bought.json.data.gifts[0] as string;
  await until(
    async () => (await ask('GET', `/api/v2/gifts/${gift}`, { token })).json?.data?.status_code === 'UC',
    'the gift to be issued',
  );
  return took;
}

test('charges, answers, issues and shows the next purchase, whatever a feed ended with', async ({ service, log }) => {
  await buys(service);
  for (const error of FEED_ERRORS) {
    const broken = error();
    await until(() => log.breakFeeds(broken, 3), 'process managers, projector and charge outcomes');
    assert.ok((await buys(service)) < CHARGE_WAIT_MS, String(broken));
  }
  // A follower that has failed is not called well before it has worked for a second.
  await until(async () => (await service.ask('GET', '/readyz')).status === 200, 'readiness');
});

test('whatever the catalogue in memory can not be read for, it shows what is imported next', async ({
  service,
  failing,
}) => {
  const token = await service.clientToken();
  for (const [at, error] of FEED_ERRORS.entries()) {
    failing.push(error());
    const name = `Renamed ${at}`;
    const products = (CATALOGUE as { products: { id: string }[] }).products.map((product) =>
      product.id === 'latte' ? { ...product, name } : product,
    );
    await service.import({ products });
    await until(
      async () => (await service.ask('GET', '/api/v2/products/latte', { token })).json?.data?.name === name,
      name,
    );
  }
  assert.equal(failing, []);
});

test.run();
