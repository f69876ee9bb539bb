import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gifts } from '../src/projections/gifts.js';
import type { Projection } from '../src/projections/projection.js';
import { standings } from '../src/standing.js';
import { buy, installed, settled } from './support/projecting.js';

const test = suite('standing');

test('who has died since the last look does not look alive', installed(async ({ events, store, project }) => {
  await buy(events);
  const projector = await project();
  await settled(projector, events);
  const look = standings({ events, store, projections: [gifts as unknown as Projection] });
  const holder = async (): Promise<string | null | undefined> => (await look.look()).find(({ name }) => name === 'gifts')?.holder;
  assert.is(await holder(), 'projector 1');
  const kept = (await store.records.get<{ holder: string; fence: number }>('lease/projector'))?.value;
  await projector.close();
  // Renewed once more since the look, and then no more: killed, so that it gave nothing up.
  await store.records.put('lease/projector', kept);
  await sleep(3_000);
  const began = performance.now();
  assert.is(await holder(), null);
  assert.ok(performance.now() - began < 1_500, 'who looks again need not wait');
  await look.close();
}));

test.run();
