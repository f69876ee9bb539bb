import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Engines } from '../src/engines.js';
import { checkpointName, collectionOf } from '../src/projections/projection.js';
import { readinessOf } from '../src/readiness.js';
import { PROJECTIONS } from '../src/readModels.js';
import { buy, installed, type Installation, redeem, settled } from './support/projecting.js';

const test = suite('whether a process is ready');

/** What is said of each read model. */
async function told({ events, store }: Installation): Promise<Readonly<Record<string, { readonly ready: boolean; readonly detail: string }>>> {
  const bus = { engine: 'none', ping: async () => undefined } as unknown as Engines['bus'];
  const { parts } = await readinessOf({ events, store, bus }, { payments: 'simulated', notifications: 'simulated' }, PROJECTIONS)();
  return Object.fromEntries(Object.entries(parts).flatMap(([part, health]) => (part.startsWith('projection ') ? [[part.slice('projection '.length), health]] : [])));
}

test('not before what every route answers from is built; what only some routes answer from keeps none of the others waiting', installed(async (house) => {
  const parts = await told(house);
  const some = ['parked', 'redemptions', 'voucher_codes'];
  assert.equal(Object.keys(parts).filter((name) => parts[name]?.ready).sort(), some);
  assert.is(parts['gifts']?.detail, 'is being built for the first time');
  assert.is(parts['redemptions']?.detail, 'is being built for the first time: what is answered from it is refused meanwhile, and nothing else');
}));

test('not while any read model that is built is behind', installed(async (house) => {
  const { events, project } = house;
  const { gifts: [id = ''] } = await buy(events, [{}]);
  const projector = await project({ projections: PROJECTIONS });
  await settled(projector, events);
  assert.equal(Object.values(await told(house)).filter(({ ready }) => !ready), []);
  await projector.close();
  await redeem(events, id);
  assert.equal(new Set(Object.values(await told(house)).map(({ ready, detail }) => `${ready} ${detail}`)), new Set(['false is behind']));
}));

test('not while what is stored of a read model in use is no place in the log, whatever it compares to', installed(async (house) => {
  const { events, store, project } = house;
  await buy(events);
  const projector = await project({ projections: PROJECTIONS });
  await settled(projector, events);
  await projector.close();
  const gifts = PROJECTIONS.find(({ name }) => name === 'gifts')!;
  for (const position of ['0000000000999999', '18446744073709551615']) {
    await store.write([{ collection: collectionOf(gifts), documents: [], checkpoint: { projection: checkpointName(gifts), position } }]);
    const parts = await told(house);
    assert.equal(parts['gifts'], { ready: false, detail: `its stored position, ${position}, is no place in the log: it is built anew` });
    assert.ok(parts['transactions']?.ready);
  }
}));

test.run();
