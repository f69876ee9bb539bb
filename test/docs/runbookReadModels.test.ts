import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { collectionOf } from '../../src/runtime/readmodels/projection.js';
import { untilReady } from '../support/service/service.js';
import { buyInto, inTrouble, readLog } from '../support/service/trouble.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('runbook, read models');

test('wrong read model: a document that says something else than the log', async () => {
  await inTrouble('Wrong read model', {}, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const gift = await buyInto(trouble, url);
    await eventually(async () => (await readLog(trouble.env['DATA_DIR'] ?? '', gift)) > 0);
    const store = await openEmbeddedReadStore({ dir: trouble.env['DATA_DIR'] ?? '' });
    try {
      await eventually(async () => {
        const served = await store.get(collectionOf(giftsProjection), gift);
        if (served === undefined) return false;
        const [corrected] = await store.correct(collectionOf(giftsProjection), [
          {
            id: gift,
            expected: served.position,
            document: { ...served, body: { ...served.body, message_id: 'falsified' } },
          },
        ]);
        return corrected === true;
      });
    } finally {
      await store.close();
    }
    await trouble.signIn(url);
    await trouble.follow();
  });
});

test('growing lag: the projector is gone, and comes back', async () => {
  await inTrouble('Growing lag', {}, async (trouble) => {
    const first = await trouble.start();
    await untilReady(first.url ?? '');
    await buyInto(trouble, first.url ?? '');
    await first.end();
    const api = await trouble.start({ ROLES: 'api,processor,worker' });
    const gift = trouble.env['GIFT'] ?? '';
    const redeemed = await eventually(async () => {
      const reply = await trouble.ask(api.url ?? '', 'POST', `/api/v2/gifts/${gift}/redemptions`, {
        location_id: 'bean-soho',
      });
      return reply.status === 503 ? undefined : reply;
    });
    assert.equal(redeemed.status, 201, redeemed.text);
    await trouble.follow(/projections status/);
    await trouble.start({ ROLES: 'projector' });
    await trouble.follow();
  });
});

test.run();
