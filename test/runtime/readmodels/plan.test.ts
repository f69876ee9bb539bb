import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { StoredRecord } from '../../../src/ports/readStore.js';
import type { Rebuild } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { type BuildState, enter } from '../../../src/runtime/readmodels/runningBuild.js';
import type { RepairOrder } from '../../../src/runtime/readmodels/maintenance/repairOrders.js';
import { type Orders, plan, type PlannedBuild } from '../../../src/runtime/readmodels/plan.js';

const test = suite('plan of the leading process');
const STATES: readonly BuildState[] = ['catching-up', 'ready', 'serving', 'retiring', 'gone'];
/** The second build of version 1, and the first of version 2. */
const REBUILT = 1_000_001;
const NEWER = 2;

const build = (version: number, state: BuildState, more: Partial<PlannedBuild> = {}): PlannedBuild => ({
  projection: { name: 'gifts', version },
  state,
  requested: false,
  caughtUp: false,
  stored: '5',
  place: 'together',
  ...more,
});
const rebuild = (state: Rebuild['state'], more: Partial<Rebuild> = {}): Rebuild => ({
  target: REBUILT,
  from: 1,
  kind: 'rebuild',
  state,
  by: 'sue',
  at: '2026-05-04T00:00:00.000Z',
  ...more,
});
const repair = (through: string | null, name = 'gifts'): StoredRecord<RepairOrder> => ({
  key: `repair/${name}/1`,
  version: 1,
  value: { name, build: 1, documents: [], through },
});

/** The plan where version 1 serves by default: each step with the number that it is about. */
function planned(builds: readonly PlannedBuild[], orders: Partial<Orders> = {}): string[] {
  return plan(builds, {
    inUse: new Map([['gifts', 1]]),
    versions: new Map([['gifts', 1]]),
    rebuilds: new Map(),
    opening: new Set(),
    repairs: [],
    ...orders,
  }).map((step) => {
    if ('rebuild' in step) return `${step.do} ${step.rebuild.target}`;
    return 'build' in step ? `${step.do} ${step.build.projection.version}` : step.do;
  });
}
const withRebuild = (...given: Parameters<typeof rebuild>): Partial<Orders> => ({
  rebuilds: new Map([['gifts', rebuild(...given)]]),
});
const END = { place: 'log end' } as const;

test('a build changes state as its life allows, and in no other way', () => {
  const allowed = STATES.flatMap((from) =>
    STATES.filter((to) => {
      const one = { state: from, checkpoint: 'gifts@1' };
      try {
        enter(one, to);
      } catch {
        assert.is(one.state, from);
        return false;
      }
      assert.is(one.state, to);
      return true;
    }).map((to) => `${from} > ${to}`),
  );
  assert.equal(allowed, [
    'catching-up > ready',
    'catching-up > gone',
    'ready > serving',
    'ready > gone',
    'serving > retiring',
    'retiring > ready',
    'retiring > gone',
  ]);
  assert.throws(
    () => enter({ state: 'gone', checkpoint: 'gifts@1' }, 'serving'),
    /gifts@1 is gone: it can't be serving/,
  );
});

test('nothing is planned for builds on their way, nor for those that have caught up', () => {
  for (const state of STATES)
    for (const place of ['apart', 'together'] as const) assert.equal(planned([build(1, state, { place })]), [], state);
  for (const state of STATES) assert.equal(planned([build(1, state, { ...END, caughtUp: true })]), [], state);
  assert.equal(planned([build(1, 'gone', END)]), []);
});

test("at the log's end a ready build is swapped in, and a serving build settles", () => {
  assert.equal(planned([build(1, 'serving', END), build(NEWER, 'ready', END)]), ['settle 1', 'swap in 2']);
  assert.equal(planned([build(1, 'ready', END)], { inUse: new Map() }), ['swap in 1']);
});

test('a previous version settles if another version serves, and else serves', () => {
  const previous = build(1, 'retiring', END);
  assert.equal(planned([previous], { inUse: new Map([['gifts', NEWER]]) }), ['settle 1']);
  assert.equal(planned([previous], { inUse: new Map([['gifts', undefined]]) }), ['swap in 1']);
});

test('a rebuild that is ready is opened once, by a process whose code makes its version', () => {
  const serving = build(1, 'serving');
  for (const state of ['ready', 'swapping'] as const) {
    assert.equal(planned([serving], withRebuild(state)), [`open ${REBUILT}`]);
    assert.equal(planned([serving], { ...withRebuild(state), opening: new Set(['gifts']) }), []);
    for (const other of ['catching-up', 'ready'] as const)
      assert.equal(planned([serving, build(REBUILT, other, { requested: true })], withRebuild(state)), []);
  }
  for (const versions of [new Map([['gifts', NEWER]]), new Map<string, number>()])
    assert.equal(planned([serving], { ...withRebuild('ready'), versions }), []);
});

test("another release's rebuild whose swap was left unfinished is ended where it serves, and else put back", () => {
  for (const versions of [new Map([['gifts', NEWER]]), new Map<string, number>()]) {
    const orders = { ...withRebuild('swapping'), versions };
    assert.equal(planned([build(1, 'serving')], orders), [`put back ${REBUILT}`]);
    assert.equal(planned([], { ...orders, inUse: new Map([['gifts', REBUILT]]) }), [`finish ${REBUILT}`]);
  }
});

test('a rebuild or rollback of another release is aborted once the own version is in use', () => {
  const [serving, retiring] = [build(NEWER, 'serving'), build(1, 'retiring')];
  const own = { inUse: new Map([['gifts', NEWER]]), versions: new Map([['gifts', NEWER]]) };
  for (const kind of ['rebuild', 'rollback'] as const)
    for (const state of ['building', 'ready'] as const)
      assert.equal(planned([serving, retiring], { ...withRebuild(state, { kind }), ...own }), [`abort ${REBUILT}`]);
  assert.equal(planned([serving, retiring], { ...withRebuild('aborting'), ...own }), [], 'it is aborted already');
  const orders = { ...withRebuild('building'), versions: own.versions };
  assert.equal(planned([build(1, 'serving')], orders), [], 'a process of its release may finish it');
});

test('a rebuild that is being built or aborted by its builder is left to it', () => {
  for (const state of ['building', 'aborting'] as const)
    assert.equal(planned([build(1, 'serving')], withRebuild(state)), []);
});

test('the record of a rebuild that serves is ended', () => {
  const inUse = new Map([['gifts', REBUILT]]);
  assert.equal(planned([build(REBUILT, 'serving')], { ...withRebuild('swapping'), inUse }), [`finish ${REBUILT}`]);
});

test('a rollback brings back the build that readers have just left', () => {
  const inUse = new Map([['gifts', REBUILT]]);
  const orders = { ...withRebuild('ready', { target: 1, from: REBUILT, kind: 'rollback' }), inUse };
  assert.equal(planned([build(REBUILT, 'serving'), build(1, 'retiring')], orders), ['bring back 1']);
  assert.equal(planned([build(REBUILT, 'serving')], orders), ['open 1']);
});

test('an aborted rebuild is taken out first, and dropped once it is gone', () => {
  const orders = withRebuild('leaving');
  const [serving, requested] = [build(1, 'serving'), { requested: true }];
  for (const state of ['catching-up', 'ready'] as const)
    assert.equal(planned([serving, build(REBUILT, state, requested)], orders), [`take out ${REBUILT}`]);
  assert.equal(planned([serving, build(REBUILT, 'ready', { ...requested, ...END })], orders), [`take out ${REBUILT}`]);
  assert.equal(planned([serving, build(REBUILT, 'gone', requested)], orders), []);
  assert.equal(planned([serving], { ...orders, opening: new Set(['gifts']) }), []);
  assert.equal(planned([serving], orders), [`discard ${REBUILT}`]);
  assert.equal(
    planned([serving], { ...orders, versions: new Map() }),
    [`discard ${REBUILT}`],
    'of a version unknown here',
  );
});

test('an aborted rollback keeps the previous build', () => {
  const orders = withRebuild('leaving', { target: 1, kind: 'rollback' });
  assert.equal(planned([build(REBUILT, 'serving'), build(1, 'retiring')], orders), ['discard 1']);
});

test('a repair waits until the build that serves stands where its documents do', () => {
  const repairs = (through: string | null): Partial<Orders> => ({ repairs: [repair(through)] });
  for (const through of [null, '4', '5']) assert.equal(planned([build(1, 'serving')], repairs(through)), ['repair 1']);
  assert.equal(planned([build(1, 'serving')], repairs('6')), ['check']);
  assert.equal(planned([build(1, 'serving', { stored: undefined })], repairs('1')), ['check']);
  assert.equal(planned([build(1, 'serving', { stored: undefined })], repairs(null)), ['repair 1']);
});

test('a repair waits for the common feed, and for a build that serves', () => {
  const orders = { repairs: [repair('5')] };
  assert.equal(planned([build(1, 'serving', { place: 'apart' })], orders), []);
  for (const state of STATES.filter((one) => one !== 'serving')) assert.equal(planned([build(1, state)], orders), []);
  assert.equal(planned([build(1, 'serving')], { repairs: [repair('5', 'transactions')] }), []);
});

test('each read model has its own plan', () => {
  const other = { ...build(1, 'ready', END), projection: { name: 'parked', version: 1 } };
  assert.equal(planned([build(1, 'serving', END), other], withRebuild('ready')), [
    `open ${REBUILT}`,
    'settle 1',
    'swap in 1',
  ]);
});

test.run();
