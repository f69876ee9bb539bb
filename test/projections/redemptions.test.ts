import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { redemptionsProjection } from '../../src/projections/redemptions.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';

const test = suite('projections/redemptions');

test('each redemption leads to its gift, whatever else happened', () => {
  const event = {
    type: 'GiftRedeemed',
    stream: 'gift-0123',
    data: { redemption_id: 'r1' },
  } as RecordedEvent;
  assert.equal(redemptionsProjection.documentIds(event), ['r1']);
  assert.equal(redemptionsProjection.evolve(undefined, event, 'r1', 0), { gift_id: '0123' });
  assert.equal([redemptionsProjection.types, redemptionsProjection.creates], [['GiftRedeemed'], ['GiftRedeemed']]);
});

test.run();
