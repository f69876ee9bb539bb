import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { reversalsProjection } from '../../src/projections/reversals.js';
import { foldDocument } from '../../src/runtime/readmodels/foldDocument.js';

const test = suite('projections/reversals');

test('holds what was given back of a purchase, and nothing of one that only was charged', () => {
  const event = (type: string, data: object): RecordedEvent =>
    ({ type, stream: 'transaction-t1', data }) as RecordedEvent;
  const charged = event('PaymentCharged', { amount: 350, provider: 'simulated', charge_id: 'ch' });
  assert.is(foldDocument(reversalsProjection, [charged], 't1'), undefined);
  const history = [
    charged,
    event('GiftsRefunded', { refund_id: 'a', gift_ids: ['g1'], amount: 350 }),
    event('DisputeOpened', { dispute_id: 'd' }),
  ];
  assert.equal(foldDocument(reversalsProjection, history, 't1'), {
    refunds: { a: { amount: 350, gifts: 1 } },
    external: 0,
    disputes: { d: 'open' },
  });
});

test.run();
