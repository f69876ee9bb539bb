import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { readinessOfAll } from '../../../src/service/processes/member.js';
import type { ProcessAnswer } from '../../../src/service/processes/messages.js';

const test = suite('readiness of several processes');

const works = { ready: true, detail: 'works' };

function serving(number: number, parts: object): ProcessAnswer {
  return { number, state: 'serving', hasServed: true, deaths: 0, value: { parts, simulated: ['payments'] } };
}

test('shows a part once where all processes say the same of it', () => {
  assert.deepEqual(readinessOfAll([serving(1, { bus: works }), serving(2, { bus: works })]), {
    parts: { processes: { ready: true, detail: '2 of 2 serve' }, bus: works },
    simulated: ['payments'],
  });
});

test('is not ready where a part of one process is not, and names the process', () => {
  const { parts } = readinessOfAll([
    serving(1, { bus: works }),
    serving(2, { bus: { ready: false, detail: 'cannot be reached' }, limits: works }),
  ]);
  assert.deepEqual(parts['bus'], { ready: false, detail: 'process 1: works; process 2: cannot be reached' });
  assert.deepEqual(parts['limits'], { ready: true, detail: 'process 2: works' });
});

test('is ready without a process that has died, and says so', () => {
  const died: ProcessAnswer = { number: 2, state: 'waiting', hasServed: true, deaths: 3, value: undefined };
  assert.deepEqual(readinessOfAll([serving(1, { bus: works }), died]).parts, {
    processes: { ready: true, detail: '1 of 2 serve, process 2 has died (3 times) and is started again' },
    bus: works,
  });
});

test('is not ready before all processes have served, nor while one does not answer', () => {
  const starts: ProcessAnswer = { number: 2, state: 'starting', hasServed: false, deaths: 0, value: undefined };
  assert.deepEqual(readinessOfAll([serving(1, {}), starts]).parts, {
    processes: { ready: false, detail: '1 of 2 serve, process 2 starts' },
  });
  const silent: ProcessAnswer = { number: 2, state: 'serving', hasServed: true, deaths: 0, value: undefined };
  assert.deepEqual(readinessOfAll([serving(1, {}), silent]).parts, {
    processes: { ready: false, detail: '1 of 2 serve, process 2 does not answer' },
  });
});

test.run();
