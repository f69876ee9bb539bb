import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore.js';
import { gifts } from '../../src/projections/gifts.js';
import { collectionOf } from '../../src/projections/projection.js';
import { missingIn } from '../support/runbook.js';
import { eventually, untilReady } from '../support/service.js';
import { buyInto, inTrouble, readLog, RUNBOOK } from '../support/trouble.js';

const test = suite('runbook');

test('first of all', async () => {
  await inTrouble('', {}, async ({ start, follow }) => {
    const { url = '' } = await start();
    await untilReady(url);
    await follow();
  });
});

test('wrong read model: a document that says something else than the log', async () => {
  await inTrouble('Wrong read model', {}, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const gift = await buyInto(trouble, url);
    await eventually(async () => ((await readLog(trouble.env['DATA_DIR'] ?? '', gift)) > 0 ? true : undefined));
    const store = await openEmbeddedReadStore({ dir: trouble.env['DATA_DIR'] ?? '' });
    try {
      await eventually(async () => {
        const served = await store.get(collectionOf(gifts), gift);
        if (served === undefined) return undefined;
        const [corrected] = await store.correct(collectionOf(gifts), [{ id: gift, expected: served.position, document: { ...served, body: { ...served.body, message_id: 'falsified' } } }]);
        return corrected === true ? true : undefined;
      });
    } finally {
      await store.close();
    }
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
      const reply = await trouble.ask(api.url ?? '', 'POST', `/api/v2/gifts/${gift}/redemptions`, { location_id: 'bean-soho' });
      return reply.status === 503 ? undefined : reply;
    });
    assert.equal(redeemed.status, 201, redeemed.text);
    await trouble.follow(/projections status/);
    await trouble.start({ ROLES: 'projector' });
    await trouble.follow();
  });
});

test('a ticket about one gift', async () => {
  await inTrouble('A ticket about one gift', {}, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    await buyInto(trouble, url, [{ phone_number: '07700 900002' }]);
    await trouble.follow();
  });
});

test('every chapter has its trouble', () => {
  const folder = fileURLToPath(new URL('../../../test/docs/', import.meta.url));
  const tests = readdirSync(folder).filter((name) => name.startsWith('runbook')).map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  const chapters = [...RUNBOOK].filter(([, commands]) => commands.length > 0).map(([chapter]) => chapter);
  assert.ok(chapters.length > 8);
  assert.deepEqual(chapters.filter((chapter) => !tests.includes(`await inTrouble('${chapter}', `)), []);
});

test('the check sees what is missing', () => {
  const command = { expected: ['a … c', 'd.'], exitCode: 0 };
  assert.equal(missingIn('x\na b c\ny\nd.\n', command, 0), undefined);
  assert.equal(missingIn('d.\na b c\n', command, 0), 'd.');
  assert.equal(missingIn('a b c\ndx\n', command, 0), 'd.');
  assert.match(missingIn('a b c\nd.\n', command, 1) ?? '', /exit code 0, not 1/);
});

test.run();
