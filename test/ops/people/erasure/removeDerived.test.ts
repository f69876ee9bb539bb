import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { removeDerived } from '../../../../src/ops/people/erasure/derivedData.js';
import type { ReadStore } from '../../../../src/ports/readStore.js';
import { at, rejectionOf } from '../../../support/engines/readStoreDocuments.js';

const test = suite('what an erasure removes from read models');

/** Every read model has one build, which serves and reaches nothing. */
const stopped = {
  versions: async () => [3],
  reached: async () => false,
  records: { put: async () => 1 },
} as unknown as ReadStore;

for (const [what, accounts, names] of [
  ['the accounts', false, 'accounts'],
  ['a build in use', true, 'accounts@3'],
] as const)
  test(`says that the projector must run where ${what} does not reach the erasure`, async () => {
    const reached = async (): Promise<boolean> => accounts;
    const error = await rejectionOf(removeDerived(stopped, { accounts: { reached } as never }, at(7)));
    assert.is(error.name, 'UnavailableError');
    assert.match(error.message, `it has not reached ${names}`);
    assert.match(error.message, 'a process with the role projector must run');
  });

test.run();
