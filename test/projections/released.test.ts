/** That a release can be deployed over the last one without a gap: what installations serve by then, this code must be able to keep up to date. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Projection } from '../../src/projections/projection.js';
import { PROJECTIONS } from '../../src/readModels.js';

const test = suite('versions of projections');

/** The versions of the last release: set anew with each (CONTRIBUTING.md). Before the first one: those of the states that somebody may run. What is not there yet was in none. */
const RELEASED: Readonly<Record<string, number>> = { gifts: 2, transactions: 2, accounts: 1, catalogue: 1, voucher_codes: 1, redemptions: 1, parked: 1 };

/** What is wrong with a projection's versions; `undefined`: nothing. */
function fault({ name, version, former = [] }: Projection, released: number | undefined): string | undefined {
  for (const one of former) if (one.name !== name || one.version >= version) return `${name}: a former fold is of ${one.name}@${one.version}`;
  if (new Set(former.map((one) => one.version)).size !== former.length) return `${name}: two former folds are of one version`;
  if (released === undefined || released === version) return undefined;
  if (released > version) return `${name}: version ${released} is released already; a version never goes back`;
  return former.some((one) => one.version === released) ? undefined : `${name}: installations serve version ${released}: leave its fold in \`former\`, as it was (CONTRIBUTING.md), or it is not kept up to date while version ${version} is built`;
}

test('what the last release serves can be kept up to date by this one', () => {
  assert.is(new Set(PROJECTIONS.map(({ name }) => name)).size, PROJECTIONS.length);
  assert.equal(PROJECTIONS.flatMap((projection) => fault(projection, RELEASED[projection.name]) ?? []), []);
});

test('a changed version without its former fold is found out', () => {
  const [one] = PROJECTIONS;
  assert.ok(one);
  const next = { ...one, version: one.version + 1 };
  assert.match(fault(next, one.version) ?? '', /leave its fold in `former`/);
  assert.is(fault({ ...next, former: [one] }, one.version), undefined);
  assert.match(fault({ ...next, former: [next] }, one.version) ?? '', /a former fold is of/);
  assert.match(fault({ ...next, former: [one, one] }, one.version) ?? '', /two former folds/);
  assert.match(fault(one, one.version + 1) ?? '', /never goes back/);
  assert.is(fault(next, undefined), undefined, 'a new one was in no release');
});

test.run();
