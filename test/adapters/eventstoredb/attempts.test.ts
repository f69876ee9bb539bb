import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { withRetries } from '../../../src/adapters/eventstoredb/attempts.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';

const test = suite('attempts of a call to EventStoreDB');

test('keep what anyone may see of the last failure where an earlier one left the outcome unknown', async () => {
  const publicReason = 'holds another log than before, or none';
  let tries = 0;
  const attempt = async (): Promise<never> => {
    throw new UnavailableError('down', { outcomeUnknown: ++tries === 1, publicReason });
  };
  const error = (await rejectionOf(withRetries(attempt, () => tries === 2))) as UnavailableError;
  assert.equal([error.outcomeUnknown, error.publicReason], [true, publicReason]);
});

test.run();
