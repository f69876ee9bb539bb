import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { pipelined, requestText } from '../support/service/rawHttp.js';
import { missingIn } from '../support/service/runbook.js';
import { request, type ServiceProcess, untilReady, userTokenOf } from '../support/service/service.js';
import { buyInto, inTrouble, type Installation, openInstallation, RUNBOOK } from '../support/service/trouble.js';

const test = suite('runbook');
/** Of chapters that need no settings, and count nothing: each has its own gifts, and they share a process. */
let ordinary: Installation;
test.before(async () => {
  const opened = await openInstallation({});
  let served: Promise<ServiceProcess> | undefined;
  ordinary = { ...opened, start: async () => (served ??= opened.start()) };
});
test.after(() => ordinary.close());

test('first of all', async () => {
  await inTrouble('', ordinary, async ({ start, signIn, follow }) => {
    const { url = '' } = await start();
    await untilReady(url);
    await signIn(url);
    await follow();
  });
});

test('a ticket about one gift', async () => {
  await inTrouble('A ticket about one gift', ordinary, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    Object.assign(trouble.env, { PHONE: '07700 900002', USERNAME: 'ann@test.example' });
    await buyInto(trouble, url, [{ phone_number: '07700 900002' }]);
    await trouble.follow();
  });
});

test('a gift that somebody else used', async () => {
  await inTrouble('A gift that somebody else used', ordinary, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const gift = await buyInto(trouble, url);
    const till = { token: await userTokenOf(url, 'till-coffee'), body: { location_id: 'bean-soho' } };
    assert.equal((await request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', till)).status, 201);
    await trouble.follow();
  });
});

test('a person asks for their data', async () => {
  await inTrouble('A person asks for their data', ordinary, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    trouble.env['USERNAME'] = 'ann@test.example';
    await buyInto(trouble, url);
    await trouble.follow();
  });
});

test('questions of an auditor', async () => {
  await inTrouble('Questions of an auditor', ordinary, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    trouble.env['DAY'] = new Date().toISOString().slice(0, 10);
    const gift = await buyInto(trouble, url);
    const till = { token: await userTokenOf(url, 'till-coffee'), body: { location_id: 'bean-soho' } };
    assert.equal((await request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', till)).status, 201);
    await trouble.follow();
  });
});

test('a gift redeemed by mistake', async () => {
  await inTrouble('A gift redeemed by mistake', ordinary, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    trouble.env['USERNAME'] = 'ann@test.example';
    const gift = await buyInto(trouble, url);
    const till = { token: await userTokenOf(url, 'till-coffee'), body: { location_id: 'bean-soho' } };
    assert.equal((await request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', till)).status, 201);
    await trouble.follow();
  });
});

test('purchases that were sold at a wrong price', async () => {
  await inTrouble('Purchases that were sold at a wrong price', {}, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const day = new Date().toLocaleDateString('sv-SE', { timeZone: 'Europe/London' });
    Object.assign(trouble.env, { PRODUCT: 'latte', PRICE: '350', DAY: day });
    for (let n = 0; n < 3; n++) await buyInto(trouble, url);
    await trouble.follow();
  });
});

test('guessed gifts: a caller that looks for gifts that there are not', async () => {
  await inTrouble('Guessed gifts', { UNKNOWN_GIFTS_PER_CALLER: '3' }, async ({ start, ask, follow }) => {
    const { url = '' } = await start();
    await untilReady(url);
    const statuses: number[] = [];
    for (let n = 0; n < 5; n++) statuses.push((await ask(url, 'GET', `/api/v2/gifts/${String(n).repeat(20)}`)).status);
    assert.deepEqual(statuses, [404, 404, 404, 429, 429]);
    await follow();
  });
});

test('support at a limit: a user of support who reads too much and requests an erasure', async () => {
  await inTrouble('Support at a limit', { PERSONAL_READS_PER_DAY: '1' }, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    await trouble.signIn(url);
    const because = { reason: 'a test' };
    const ask = async (method: string, path: string, body?: object): Promise<number> =>
      (await request(url + path, method, { token: await userTokenOf(url, 'sue'), ...(body && { body }) })).status;
    const statuses = [
      await ask('GET', '/ops/people/bob?reason=a%20test'),
      await ask('GET', '/ops/people/ann?reason=a%20test'),
    ];
    assert.deepEqual([...statuses, await ask('POST', '/ops/people/bob/erasure', because)], [200, 429, 202]);
    await trouble.follow();
  });
});

test('gifts for staff: support reassigns a gift to a colleague', async () => {
  await inTrouble('Gifts for staff', ordinary, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const gift = await buyInto(trouble, url, [{ phone_number: '07700 900002' }]);
    const answer = await request(`${url}/ops/gifts/${gift}/reassign`, 'POST', {
      token: await userTokenOf(url, 'sue'),
      body: { user_id: 'aud', reason: 'a test' },
    });
    assert.equal(answer.status, 403, answer.text);
    await trouble.follow();
  });
});

test('overload', async () => {
  await inTrouble('Overload', { REQUEST_WAIT_MS: '1' }, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const lookUp = requestText('GET', '/api/v2/products', { Connection: 'keep-alive' });
    await pipelined(url, Array<string>(1_000).fill(lookUp));
    await trouble.follow();
  });
});

test('every chapter has its trouble', () => {
  const folder = fileURLToPath(new URL('../../../test/docs/', import.meta.url));
  const tests = readdirSync(folder)
    .filter((name) => name.startsWith('runbook'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
  const chapters = [...RUNBOOK].filter(([, commands]) => commands.length > 0).map(([chapter]) => chapter);
  assert.ok(chapters.length > 8);
  assert.deepEqual(
    chapters.filter((chapter) => !tests.includes(`await inTrouble('${chapter}', `)),
    [],
  );
});

test('the check sees what is missing', () => {
  const command = { expected: ['a … c', 'd.'], exitCode: 0 };
  assert.equal(missingIn('x\na b c\ny\nd.\n', command, 0), undefined);
  assert.equal(missingIn('d.\na b c\n', command, 0), 'd.');
  assert.equal(missingIn('a b c\ndx\n', command, 0), 'd.');
  assert.match(missingIn('a b c\nd.\n', command, 1) ?? '', /exit code 0, not 1/);
});

test.run();
