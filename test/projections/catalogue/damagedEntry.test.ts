import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';
import { READ_STORE_FILE } from '../../../src/adapters/embedded/readStore/file.js';
import { layoutOf } from '../../../src/adapters/embedded/readStore/layout.js';
import type { Product } from '../../../src/domain/catalogue.js';
import { catalogueProjection } from '../../../src/projections/catalogue/catalogue.js';
import { openCatalogueView, type PolledCatalogueView } from '../../../src/projections/catalogue/view.js';
import { collectionOf } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { until } from '../../support/assertions/until.js';
import { append, type Installation, installed, settled, silent } from '../../support/fixtures/projecting.js';

const test = suite('catalogue entry that is damaged in the read store');
const LATTE: Product = {
  id: 'latte',
  brand_id: 'bean',
  name: 'Latte',
  description: '',
  sale_price: 350,
  image_url: '',
  active: true,
  segments: [],
  valid_days: 365,
};
const PROJECTIONS = { projections: [catalogueProjection] };

/** The catalogue of another process. */
function openView({ events, store }: Installation): PolledCatalogueView {
  return openCatalogueView({
    model: openReadModel(store, catalogueProjection),
    events,
    pollMs: 20,
    followers: followers({ logger: silent }),
  });
}

test(
  'is retired in processes that run and in those that start',
  installed(async (installation) => {
    const { dir, events, project } = installation;
    await append(events, 'product-latte', 'ProductAdded', LATTE);
    const first = await project(PROJECTIONS);
    await settled(first, events);
    await first.close();
    const running = openView(installation);
    await running.refresh();
    assert.ok(running.current().products.get('latte')?.active);

    const file = new Sqlite(join(dir, READ_STORE_FILE));
    file.prepare(`UPDATE ${layoutOf(collectionOf(catalogueProjection)).table} SET body = '{"retired":fal'`).run();
    file.close();
    await append(events, 'product-latte', 'ProductRetired', { reason: 'pruned' });
    await settled(await project(PROJECTIONS), events);
    const started = openView(installation);
    await started.refresh();
    for (const view of [running, started]) {
      await until(() => view.current().retired('product', 'latte'), 'the product to be retired');
      assert.is(view.current().products.get('latte')?.active, false);
      await view.close();
    }
  }),
);

test.run();
