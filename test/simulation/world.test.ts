import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { after, endTimer, every, randomUUID, sleep, systemMs, ticks } from '../../src/lib/world.js';
import { noFaults } from './world/faults.js';
import { openSimulation, perform, SimulationError } from './world/simulatedWorld.js';
import type { Simulation } from './world/simulation.js';
import { startProcess } from './world/simulatedProcess.js';

const test = suite('simulation/world');

const HOUR_MS = 3_600_000;
const opened = (seed: number | string = 1): Simulation => openSimulation({ seed, faults: noFaults() });

test('lets an hour pass without waiting, by the clock of the process', async () => {
  const simulation = opened();
  const process = startProcess(simulation, { name: 'one', skewMs: 5_000 });
  const began = performance.now();
  const seen = await perform(
    simulation,
    process,
    'sleep',
    async () => {
      const before = [systemMs(), Date.now(), new Date().getTime(), ticks(), performance.now()];
      await sleep(HOUR_MS);
      return { before, now: systemMs(), ticks: ticks() };
    },
    2 * HOUR_MS,
  );
  assert.deepEqual(seen.before, [simulation.now() - HOUR_MS + 5_000, seen.before[0], seen.before[0], 0, 0]);
  assert.equal(seen.now - seen.before[0]!, HOUR_MS);
  assert.equal(seen.ticks, HOUR_MS);
  assert.ok(performance.now() - began < 60_000, 'the real clock is back');
});

test('runs timers in the order of their times, and none that was ended', async () => {
  const simulation = opened();
  const process = startProcess(simulation, { name: 'one' });
  const called: string[] = [];
  process.start('timers', async () => {
    after(20, () => called.push('20'));
    const ended = after(15, () => called.push('ended'));
    const repeated = every(6, () => {
      called.push('every 6');
      if (called.length > 2) endTimer(repeated);
    });
    setTimeout(() => endTimer(ended), 10);
    setImmediate(() => called.push('soon'));
    await pause(5);
    called.push('5');
  });
  await simulation.run(1_000);
  assert.deepEqual(called, ['soon', '5', 'every 6', '20']);
  assert.equal(simulation.ms(), 1_000);
});

test('never runs anything of a process that has crashed', async () => {
  const simulation = opened();
  const [one, other] = [startProcess(simulation, { name: 'one' }), startProcess(simulation, { name: 'other' })];
  const called: string[] = [];
  for (const process of [one, other]) process.start('beat', () => void every(10, () => called.push(process.name)));
  await simulation.run(55);
  one.crash();
  one.start('after the crash', () => void called.push('never'));
  await simulation.run(105);
  assert.equal(called.filter((name) => name === 'one').length, 5);
  assert.equal(called.filter((name) => name === 'other').length, 10);
  assert.ok(!called.includes('never'));
  assert.equal(one.alive, false);
});

test('lets a frozen process go on late, and its wall clock jump', async () => {
  const simulation = opened();
  const process = startProcess(simulation, { name: 'one' });
  const called: number[] = [];
  process.start('beat', () => void every(100, () => called.push(ticks())));
  await simulation.run(150);
  process.freeze(1_000);
  await simulation.run(1_100);
  assert.deepEqual(called, [100]);
  await simulation.run(1_300);
  assert.deepEqual(called, [100, 1_150, 1_250]);
  process.setSkew(-HOUR_MS);
  assert.equal(process.world.now(), Math.floor(simulation.now()) - HOUR_MS);
});

test('ends an entry only once its work on other threads has ended', async () => {
  const simulation = opened();
  const process = startProcess(simulation, { name: 'one' });
  const order: string[] = [];
  process.start('file', async () => {
    const files = [1, 2, 3].map(async (n) => {
      const read = await readFile(fileURLToPath(import.meta.url));
      order.push(`file ${n} of ${read.length > 0}`);
    });
    await Promise.all(files);
    await crypto.subtle.digest('SHA-256', Buffer.from('a'));
    order.push(`digest at ${ticks()}`);
  });
  process.start('next', () => void order.push('next'));
  await simulation.run(1);
  assert.deepEqual(order, ['file 1 of true', 'file 2 of true', 'file 3 of true', 'digest at 0', 'next']);
});

/** Processes that do things by chance for a while. */
async function busy(seed: number): Promise<Simulation> {
  const simulation = opened(seed);
  for (const name of ['a', 'b', 'c']) {
    const process = startProcess(simulation, { name });
    process.start('work', async () => {
      for (;;) await sleep(Number.parseInt(randomUUID().slice(0, 2), 16));
    });
    if (name === 'b') process.freeze(500);
  }
  await simulation.run(20_000);
  return simulation;
}

test('does the same for the same seed, and something else for another', async () => {
  const [one, again, other] = [await busy(11), await busy(11), await busy(12)];
  assert.ok(one.entries() > 300);
  assert.deepEqual([one.hash(), one.entries()], [again.hash(), again.entries()]);
  assert.notEqual(one.hash(), other.hash());
});

test('the order of processes at one time depends on the seed', async () => {
  const orders = new Set<string>();
  for (let seed = 0; seed < 20; seed++) {
    const simulation = opened(seed);
    const called: string[] = [];
    for (const name of ['a', 'b']) {
      const process = startProcess(simulation, { name });
      process.start('once', () => void after(10, () => called.push(name)));
    }
    await simulation.run(10);
    orders.add(called.join(''));
  }
  assert.deepEqual([...orders].sort(), ['ab', 'ba']);
});

test('fails with seed and latest entries when an error is handled by nothing', async () => {
  for (const fail of [
    () => Promise.reject(new Error('lost')),
    () =>
      void after(5, () => {
        throw new Error('lost');
      }),
  ]) {
    const simulation = opened('the seed');
    startProcess(simulation, { name: 'one' }).start('failing', fail);
    await assert.rejects(simulation.run(10), (error: SimulationError) => {
      assert.ok(error instanceof SimulationError);
      assert.match(error.message, /seed the seed failed.*lost\n.*one start failing/s);
      return true;
    });
  }
});

test.run();
