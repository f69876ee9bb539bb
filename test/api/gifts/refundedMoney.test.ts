import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { refundedMoneyOf } from '../../../src/api/gifts/refundedMoney.js';
import type { RefundedMoney } from '../../../src/domain/purchase/status.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';

const test = suite('api/gifts/givenBack');

const inModel: RefundedMoney = { refunds: {}, external: 100, disputes: {} };
const reversals = { get: async () => inModel } as unknown as ReadModel<RefundedMoney>;
const reading = (read: () => Promise<RecordedEvent[]>) => ({ events: { read }, reversals });

test('believes the log before the read model, which may be behind', async () => {
  const refund = { type: 'RefundedAtProvider', stream: 'transaction-t', data: { total: 350 } };
  const found = await refundedMoneyOf(
    reading(async () => [refund] as RecordedEvent[]),
    't',
  );
  assert.is(found?.external, 350);
  assert.is(
    await refundedMoneyOf(
      reading(async () => []),
      't',
    ),
    undefined,
  );
});

test('asks the read model while the log fails or hangs, and hides no other fault', async () => {
  const down = reading(async () => {
    throw new UnavailableError('down');
  });
  const hanging = reading(async () => new Promise(() => undefined));
  for (const deps of [down, hanging]) assert.is(await refundedMoneyOf(deps, 't'), inModel);
  const broken = reading(async () => {
    throw new TypeError('a fault');
  });
  await refundedMoneyOf(broken, 't').then(
    () => assert.unreachable(),
    (error: unknown) => assert.instance(error, TypeError),
  );
});

test.run();
