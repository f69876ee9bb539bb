import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buyOne, redeem, refused } from '../support/service/giftFlow.js';
import { startService } from '../support/service/service.js';

const test = suite('api: a sealed log');

test('during a running service: writes are 503 from then on, reads and tokens go on', async () => {
  const service = await startService();
  try {
    const gift = await buyOne(service);
    const first = await redeem(service, gift, 'till-coffee', 'bean-soho', { key: 'k1' });
    assert.is(first.status, 201);
    const logPart = async (): Promise<unknown> => (await service.ask('GET', '/readyz')).json['parts']['event store'];
    const open = (await logPart()) as { readonly detail: string };
    await service.events.seal();
    assert.equal(await logPart(), {
      ready: true,
      detail: `${open.detail}, sealed: it was copied to another engine, which takes the writes`,
    });
    const decided = await redeem(service, gift, 'till-coffee', 'bean-soho', { key: 'k2' });
    refused(decided, 405, 'gift already redeemed.');
    const unredeemed = await service.ask('PATCH', `/api/v2/gifts/${gift}/redemptions/latest`, {
      token: await service.userToken('till-coffee'),
      body: { redeemed: false },
    });
    refused(unredeemed, 503, 'Service unavailable.');
    assert.is(unredeemed.headers.get('retry-after'), '1');
    const bought = await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      key: 'k3',
      body: { payment: { method: 'card', reference: 'pm_card_visa' }, purchase: { type: 'gift', reference: 'latte' } },
    });
    refused(bought, 503, 'Service unavailable.');
    const again = await redeem(service, gift, 'till-coffee', 'bean-soho', { key: 'k1' });
    assert.equal(
      [again.status, again.headers.get('idempotent-replayed'), again.text],
      [201, 'true', first.text],
      'what was answered before is answered again',
    );
    const read = await service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken('ann') });
    assert.is(read.status, 200);
    if (service.log.length > 0)
      assert.ok(
        service.log.some((line) => line.includes('the event log is sealed since it was copied')),
        'the log says why',
      );
  } finally {
    await service.close();
  }
});

test.run();
