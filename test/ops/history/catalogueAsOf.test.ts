import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { catalogueAsOf } from '../../../src/ops/history/giftAsOf.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { CatalogueDocument } from '../../../src/projections/catalogue/catalogue.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';

const test = suite('audit/catalogueAsOf');

const unavailable = async (): Promise<never> => Promise.reject(new UnavailableError('no'));
const model = (of: Partial<ReadModel<CatalogueDocument>>): ReadModel<CatalogueDocument> =>
  of as ReadModel<CatalogueDocument>;

test('a read model that is behind, still being built or out of reach is done without', async () => {
  const events = memoryEvents();
  const merchant = (name: string): object => ({ id: 'm', name, adjustment_codes: [] });
  events.given('merchant-m', { type: 'MerchantAdded', data: merchant('then') });
  const { position, at: time } = events.log.at(-1)!;
  const then = { time, position, stampedLater: 0 };
  events.given('merchant-m', { type: 'MerchantChanged', data: { name: 'now' } });
  for (const without of [
    model({ reached: async () => false }),
    model({ reached: async () => true, find: unavailable }),
    model({ reached: unavailable }),
  ]) {
    assert.is((await catalogueAsOf(events, without, then)).merchants.get('m')?.name, 'then');
  }
  const faulty = model({ reached: async () => Promise.reject(new TypeError('a fault')) });
  assert.instance(await catalogueAsOf(events, faulty, then).catch((error: unknown) => error), TypeError);
});

test.run();
