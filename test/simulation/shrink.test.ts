import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type DrawnFault, faultId, type Outcome, type Plan, plannedFaults, shrink } from './shrink.js';
import { seededChance } from './world/chance.js';
import { drawnFaults } from './world/faults.js';

const test = suite('simulation/shrink');

const WHOLE: Plan = { forMs: 60_000, clients: 6, interlude: true, off: new Set(), dropped: new Set() };

/** A run in which one fault of each kind is drawn every second; `needs` says what its finding needs. */
function madeUp(needs: (plan: Plan, faults: readonly DrawnFault[]) => boolean): (plan: Plan) => Promise<Outcome> {
  return async (plan) => {
    const drawn = Array.from({ length: Math.floor(plan.forMs / 1_000) }, (_, n) =>
      ['a crash', 'a delay', 'a loss'].map((kind) => ({ kind, number: n + 1 })),
    ).flat();
    const faults = drawn.filter((fault) => !plan.off.has(fault.kind) && !plan.dropped.has(faultId(fault)));
    return { found: needs(plan, faults), faults };
  };
}

test('leaves only what the finding needs', async () => {
  const run = madeUp(
    ({ clients }, faults) =>
      clients >= 2 && ['a loss #3', 'a delay #7'].every((id) => faults.some((fault) => faultId(fault) === id)),
  );
  const small = await shrink(WHOLE, run);
  assert.equal(small?.outcome.faults.map(faultId), ['a loss #3', 'a delay #7']);
  assert.ok((small?.plan.forMs ?? 0) < 8_000, String(small?.plan.forMs));
  assert.is(small?.plan.clients, 2);
  assert.is(small?.plan.interlude, false);
});

test('leaves no fault where the finding needs none', async () => {
  const small = await shrink(
    WHOLE,
    madeUp(({ interlude }) => interlude),
  );
  assert.equal(small?.outcome.faults, []);
  assert.is(small?.plan.interlude, true);
  assert.is(small?.plan.clients, 1);
});

test('says so where the whole run has no finding', async () => {
  assert.is(
    await shrink(
      WHOLE,
      madeUp(() => false),
    ),
    undefined,
  );
});

test('leaves the draws of other faults as they were', () => {
  const rates = { loss: 0.5, crash: 0.5 };
  const drawsOf = (dropped: ReadonlySet<string>): string => {
    const faults = plannedFaults(
      drawnFaults(seededChance(7), rates),
      { off: new Set(['crash']), dropped },
      () => undefined,
    );
    return Array.from({ length: 40 }, () =>
      [faults.happens('loss'), faults.happens('crash')].map(Number).join(''),
    ).join(' ');
  };
  const all = drawsOf(new Set());
  assert.not.match(all, /\b.1\b/);
  const first = all.indexOf('1');
  assert.is(drawsOf(new Set(['loss #1'])), `${all.slice(0, first)}0${all.slice(first + 1)}`);
});

test.run();
