import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPool } from '../../../src/processors/runner/pool.js';
import { until } from '../../support/assertions/until.js';

const test = suite('pool');

test('runs at most its limit of tasks at once, and all in the end', async () => {
  const pool = openPool(3);
  let running = 0;
  let most = 0;
  let done = 0;
  for (let n = 0; n < 20; n++) {
    pool.add(`g${n}`, async () => {
      most = Math.max(most, ++running);
      await sleep(1);
      running--;
      done++;
    });
  }
  while (done < 20) await sleep(1);
  assert.is(most, 3);
  await pool.stop();
});

test('groups take turns', async () => {
  const pool = openPool(1);
  const order: string[] = [];
  const add = (group: string, name: string): void =>
    pool.add(group, async () => {
      await sleep(0);
      order.push(name);
    });
  for (const n of [1, 2, 3, 4]) add('bulk', `bulk${n}`);
  add('small', 'small1');
  add('small', 'small2');
  while (order.length < 6) await sleep(1);
  assert.equal(order, ['bulk1', 'bulk2', 'small1', 'bulk3', 'small2', 'bulk4']);
});

test('drops queued tasks on stop and waits for running ones', async () => {
  const pool = openPool(1);
  const done: string[] = [];
  const add = (name: string): void =>
    pool.add('g', async () => {
      await sleep(10);
      done.push(name);
    });
  add('runs');
  add('waits');
  await pool.stop();
  add('late');
  await sleep(30);
  assert.equal(done, ['runs']);
});

test('starts nothing while it may not, and asks once for all that wait', async () => {
  let may = false;
  let requested = 0;
  const pool = openPool(4, () => (requested++, may));
  let done = 0;
  for (let n = 0; n < 1_000; n++) pool.add('g', async () => void done++);
  const added = requested;
  await sleep(100);
  assert.is(done, 0);
  assert.ok(requested - added <= 6, `asked ${requested - added} times in 100 ms`);
  may = true;
  await until(() => done === 1_000, 'all to be done');
  assert.is(done, 1_000);
  may = false;
  pool.add('g', async () => void done++);
  await pool.stop();
  may = true;
  await sleep(60);
  assert.is(done, 1_000);
});

test.run();
