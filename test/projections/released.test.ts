/** A release can be deployed over the last one without a gap: this code can keep up to date what is in use by then. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PARKED_NAMES } from '../../src/domain/parked.js';
import type { Projection } from '../../src/runtime/readmodels/projection.js';
import { isReadBySome, PROJECTIONS } from '../../src/projections/index.js';
import { foldHash, HISTORY_TYPES } from '../support/fixtures/releasedHistory.js';

const test = suite('versions of projections');

/** A projection of a release: its version, and what its fold makes of the recorded history. */
interface Released {
  readonly version: number;
  readonly fold: string;
}

/** The versions of the last release, set with each (docs/extending.md#a-release); before the first one, the present. */
const RELEASED: Readonly<Record<string, Released>> = {
  gifts: { version: 1, fold: 'e3d113e64d9e6e17' },
  transactions: { version: 1, fold: '9dadd59b108bfa35' },
  accounts: { version: 1, fold: '47e6aa95c1fe21a3' },
  catalogue: { version: 1, fold: 'e7baa0b5663dc1e4' },
  voucher_codes: { version: 1, fold: '030d936bf6a209ef' },
  redemptions: { version: 1, fold: '09a1545fdea923c8' },
  parked: { version: 1, fold: 'c2d474ed383b89ca' },
};

/** The process managers whose parked work the last release could fold. */
const RELEASED_PARKED: readonly string[] = ['purchase', 'notification', 'refund', 'dispute'];

/** What is wrong with a projection's versions. */
function fault(projection: Projection, released: Released | undefined): string | undefined {
  const { name, version, previous = [] } = projection;
  for (const one of previous)
    if (one.name !== name || one.version >= version) return `${name}: a previous fold is of ${one.name}@${one.version}`;
  if (new Set(previous.map((one) => one.version)).size !== previous.length)
    return `${name}: two previous folds are of one version`;
  if (released === undefined) return undefined;
  if (released.version > version)
    return `${name}: version ${released.version} is released already; a version never goes back`;
  const kept = [projection, ...previous].find((one) => one.version === released.version);
  if (kept === undefined)
    return `${name}: installations serve version ${released.version}: leave its fold in \`previous\`, as it was (docs/extending.md), or it is not kept up to date while version ${version} is built`;
  const fold = foldHash(kept);
  return fold === released.fold
    ? undefined
    : `${name}: the fold of version ${released.version} makes ${fold} of the history, and made ${released.fold} when it was released: raise \`version\`, and leave the previous fold as it was in \`previous\` (docs/extending.md)`;
}

test('this release can keep up to date what the last one serves', () => {
  assert.is(new Set(PROJECTIONS.map(({ name }) => name)).size, PROJECTIONS.length);
  assert.equal(
    PROJECTIONS.flatMap((projection) => fault(projection, RELEASED[projection.name]) ?? []),
    [],
  );
});

/**
 * Whether all that is parked under these names comes into `parked`, of this version. A leader of the last release
 * passes over names that it doesn't know.
 */
function foldsParked(names: readonly string[], version: number | undefined): boolean {
  return names.every((name) => RELEASED_PARKED.includes(name)) || (version ?? 0) > (RELEASED['parked']?.version ?? 0);
}

test('work parked while the last release led is not missing once that has ended', () => {
  const version = PROJECTIONS.find(({ name }) => name === 'parked')?.version;
  assert.ok(
    foldsParked(PARKED_NAMES, version),
    'raise the version of `parked`: its released fold does not know a new name',
  );
  assert.not(foldsParked([...PARKED_NAMES, 'another'], RELEASED['parked']?.version));
  assert.ok(foldsParked([...PARKED_NAMES, 'another'], (version ?? 0) + 1));
});

test('a read model that no release had is read by some routes only', () => {
  assert.equal(
    PROJECTIONS.filter((one) => RELEASED[one.name] === undefined && !isReadBySome(one)).map(
      ({ name }) =>
        `${name}: name it in BY_SOME (src/projections/index.ts), and in the \`reads\` of its routes, for one release at least`,
    ),
    [],
  );
});

test('the released history holds every event type that a released fold knows', () => {
  const released = PROJECTIONS.filter(({ name, version }) => RELEASED[name]?.version === version);
  assert.equal(
    released.flatMap(({ types }) => types.filter((type) => !HISTORY_TYPES.has(type))),
    [],
  );
});

test('a changed version without its previous fold is found out', () => {
  const [one] = PROJECTIONS;
  assert.ok(one);
  const released = { version: one.version, fold: foldHash(one) };
  const next = { ...one, version: one.version + 1 };
  assert.match(fault(next, released) ?? '', /leave its fold in `previous`/);
  assert.is(fault({ ...next, previous: [one] }, released), undefined);
  assert.match(fault({ ...next, previous: [next] }, released) ?? '', /a previous fold is of/);
  assert.match(fault({ ...next, previous: [one, one] }, released) ?? '', /two previous folds/);
  assert.match(fault(one, { ...released, version: one.version + 1 }) ?? '', /never goes back/);
  assert.is(fault(next, undefined), undefined, 'a new one was in no release');
});

test('a changed fold without a raised version is found out, also among the previous ones', () => {
  // The history has the event types that were released; a new projection may fold others.
  for (const one of PROJECTIONS.filter(({ name }) => RELEASED[name] !== undefined)) {
    const released = { version: one.version, fold: foldHash(one) };
    const changed: Projection = { ...one, evolve: (...event) => ({ ...one.evolve(...event), added: true }) };
    const widened: Projection = { ...one, types: [...one.types, 'LogRestored'] };
    for (const other of [changed, widened]) {
      assert.match(fault(other, released) ?? '', /raise `version`/, one.name);
      assert.match(
        fault({ ...other, version: one.version + 1, previous: [other] }, released) ?? '',
        /raise `version`/,
        one.name,
      );
      assert.is(fault({ ...other, version: one.version + 1, previous: [one] }, released), undefined);
    }
  }
});

test.run();
