import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import type { Engines } from '../../../src/ports/engines.js';
import type { EventBatch, EventFilter } from '../../../src/ports/eventStore.js';
import { buy, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/ops/redemptions');
let service: Service;
let gift = '';

const ask = async (path: string, user = 'aud', headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
  service.ask('GET', path, { token: await service.userToken(user), headers });
const last = async (): Promise<Json> => (await service.events.read(accessStream(new Date().toISOString()))).at(-1);

test.before(async () => {
  service = await startService();
  const gifts = await buy(service, 'latte', Array(5).fill({}));
  gift = gifts[0] ?? '';
  for (const gift of gifts) assert.equal((await redeem(service, gift)).status, 201);
  assert.equal((await unredeem(service, gifts[0] ?? '')).status, 200);
});
test.after(() => service.close());

test('pages follow one another by position, and end', async () => {
  const found: Json[] = [];
  let after = '';
  let pages = 0;
  for (let next: string | null = ''; next !== null; pages++) {
    const reply = await ask(`/ops/redemptions?limit=2${after}`);
    assert.equal(reply.status, 200, reply.text);
    assert.ok(reply.json.data.length <= 2);
    found.push(...(reply.json.data as Json[]));
    next = reply.json.next as string | null;
    after = `&after=${next}`;
  }
  assert.deepEqual([found.length, pages], [6, 3]);
  assert.deepEqual(
    found.map(({ type }) => type),
    [...Array<string>(5).fill('GiftRedeemed'), 'GiftUnredeemed'],
  );
  assert.equal(new Set(found.map(({ id }) => id)).size, 6);
  const record = await last();
  assert.deepEqual(
    [record.type, record.data.what, record.data.count, record.metadata.by.user],
    ['RecordsShown', 'GET /ops/redemptions', 2, 'aud'],
  );
});

test('filters hold, and the range is shown', async () => {
  const of = async (query: string): Promise<Json[]> => (await ask(`/ops/redemptions?${query}`)).json.data;
  assert.equal((await of('merchant=coffee&location=bean-soho&user=till-coffee')).length, 6);
  const { data } = await last();
  assert.equal(data.asked.person, 'till-coffee', 'a list of what a user did is a look at that person');
  assert.deepEqual(await of('merchant=cinema'), []);
  // As the CSV names them.
  assert.equal(
    (await of(`merchant_id=coffee&location_id=bean-soho&brand_id=bean&product_id=latte&gift_id=${gift}`)).length,
    2,
  );
  assert.equal((await of('location_merchant_id=coffee&brand=bean')).length, 6);
  assert.deepEqual(await of(`gift=${service.shortcodeOf(gift).toLowerCase()}`), await of(`gift=${gift}`));
  assert.deepEqual(await of('product=mocha'), []);
  refused(await ask('/ops/redemptions?merchant_id=coffee&merchant=coffee'), 422, 'merchant must be given only once');
  refused(
    await ask('/ops/redemptions?merchantid=coffee'),
    422,
    'merchantid is not a parameter here; known are from, to, time_zone, merchant, location, user, gift, brand, product, after, limit, format',
  );
  for (const name of ['merchant', 'location', 'user', 'gift', 'brand', 'product']) {
    const refused = await ask(`/ops/redemptions?${name}=mistyped`);
    assert.deepEqual(
      [refused.status, refused.json],
      [422, { error: `${name}: the log knows no ${name} "mistyped"` }],
      'an empty answer would look like a fact',
    );
  }
  const none = (await ask('/ops/redemptions?to=1999-01-01')).json;
  assert.deepEqual(
    [none.data, none.next, none.to, none.time_zone],
    [[], null, '1999-01-01T23:59:59.999Z', 'Europe/London'],
  );
  // A log that can't tell where times stand was read to its end.
  if (service.events.timeBounds === undefined) assert.ok(service.events.isPosition(none.through), String(none.through));
  else assert.equal(none.through, null);
});

test('a stream has all of it, recorded at both ends', async () => {
  const csv = await ask('/ops/redemptions?limit=1', 'aud', { accept: 'text/csv' });
  assert.deepEqual([csv.status, csv.text.trimEnd().split('\n').length], [200, 7]);
  const ndjson = await ask('/ops/redemptions?format=ndjson');
  const records = ndjson.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Json);
  assert.deepEqual(records, (await ask('/ops/redemptions')).json.data);
  const [begun, ended] = (await service.events.read(accessStream(new Date().toISOString()))).slice(-3) as Json[];
  assert.deepEqual(
    [begun.type, ended.type, ended.data.count, ended.data.complete],
    ['OperationStarted', 'OperationEnded', 6, true],
  );
});

test('weighs Accept for the preferred type, in any case; JSON where it takes none of ours', async () => {
  const rows: [accept: string, type: string][] = [
    ['application/json, text/csv;q=0.1', 'application/json'],
    ['text/csv;q=0.5, application/json;q=0.4', 'text/csv'],
    ['text/csv;q=0', 'application/json'],
    ['TEXT/CSV', 'text/csv'],
    ['text/*', 'text/csv'],
    ['*/*', 'application/json'],
    ['text/html, application/xhtml+xml, */*;q=0.8', 'application/json'],
    ['image/png', 'application/json'],
    ['Application/X-NDJSON, text/csv', 'application/x-ndjson'],
    ['text/csv, application/x-ndjson', 'text/csv'],
    ['text/csvx', 'application/json'],
    ['text/csv; charset=utf-8', 'text/csv'],
    ['text/csv;header=present, application/json;q=0.9', 'text/csv'],
    ['text/csv;header=absent', 'application/json'],
    ['application/x-ndjson;charset=UTF-8', 'application/x-ndjson'],
    ['application/json;q=0, */*', 'application/x-ndjson'],
  ];
  for (const path of ['/ops/redemptions', '/ops/totals', `/ops/gifts/${gift}/history`]) {
    for (const [accept, type] of rows)
      assert.equal(
        (await ask(path, 'aud', { accept })).headers.get('content-type')?.split(';')[0],
        type,
        `${path} ${accept}`,
      );
  }
  assert.equal(
    (await ask('/ops/totals?format=json', 'aud', { accept: 'text/csv' })).headers.get('content-type')?.split(';')[0],
    'application/json',
  );
});

test('totals, with the check', async () => {
  const reply = await ask('/ops/totals?check=1&time_zone=UTC');
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.json.data, [
    {
      day: new Date().toISOString().slice(0, 10),
      merchant_id: 'coffee',
      issued: 5,
      issued_value: 1750,
      redeemed: 5,
      redeemed_value: 1750,
      replaced: 0,
      replaced_value: 0,
      unredeemed: 1,
      unredeemed_value: 350,
      refunded: 0,
      refunded_value: 0,
      unredeemed_by_support: 0,
      unredeemed_by_support_value: 0,
      charged_back: 0,
      charged_back_value: 0,
    },
  ]);
  assert.deepEqual([reply.json.check.agree, reply.json.check.gifts, reply.json.sums.redeemed_value], [true, 5, 1750]);
  const cinema = (await ask('/ops/totals?merchant_id=cinema&check=1')).json;
  assert.deepEqual([cinema.data, cinema.sums.redeemed, cinema.check.agree, cinema.check.gifts], [[], 0, true, 5]);
  assert.deepEqual((await ask('/ops/totals?merchant=coffee&time_zone=UTC')).json.data, reply.json.data);
  refused(await ask('/ops/totals?merchant=mistyped'), 422, 'merchant: the log knows no merchant "mistyped"');
  assert.equal((await ask('/ops/totals')).json.check, undefined);
  const unchecked = 'check is answered in JSON only: give format=json, or leave it out';
  refused(await ask('/ops/totals?check=1&format=csv'), 422, unchecked);
  refused(await ask('/ops/totals?check=1', 'aud', { accept: 'text/csv' }), 422, unchecked);
  assert.equal((await ask('/ops/totals?format=csv')).text.trimEnd().split('\n').length, 2);
  assert.match((await ask('/ops/totals?format=ndjson')).text, /^\{"day":.*\}\n$/);
});

test('stops folding totals when the caller leaves, and records that nothing was shown', async () => {
  let told: () => void = () => undefined;
  const requested = new Promise<void>((resolve) => {
    told = resolve;
  });
  let stopped = false;
  // A log of any length: the totals' reading of it ends only when it is told to.
  async function* endless(signal: AbortSignal | undefined): AsyncGenerator<EventBatch> {
    told();
    while (signal?.aborted !== true) {
      await sleep(5);
      yield { events: [], position: '0', caughtUp: false };
    }
    stopped = true;
  }
  const isOfTotals = (filter?: EventFilter): boolean =>
    ['GiftUnredeemed', 'RefundedAtProvider'].every((type) => filter?.types?.includes(type) === true);
  const through = (engines: Engines): Engines => ({
    ...engines,
    events: {
      ...engines.events,
      readAll: (after, filter, options) =>
        isOfTotals(filter) ? endless(options?.signal) : engines.events.readAll(after, filter, options),
    },
  });
  const other = await startService({ app: { through } });
  try {
    const token = await other.userToken('aud');
    const leaving = new AbortController();
    const asking = fetch(`${other.url}/ops/totals`, {
      headers: { authorization: `Bearer ${token}` },
      signal: leaving.signal,
    });
    await requested;
    leaving.abort();
    await assert.rejects(asking, { name: 'AbortError' });
    const line = await eventually(async () => other.log.find((one) => one.includes('"status":499')));
    assert.match(line, /"route":"\/ops\/totals"/);
    assert.ok(stopped);
    assert.deepEqual(await other.events.read(accessStream(new Date().toISOString())), []);
  } finally {
    await other.close();
  }
});

test('only auditors, and only what makes sense', async () => {
  for (const path of ['/ops/redemptions', '/ops/totals']) {
    for (const user of ['sue', 'ann']) refused(await ask(path, user), 403, 'Forbidden.');
    refused(
      await ask(`${path}?from=soon`),
      422,
      'from: "soon" is not a time: give one such as 2026-05-04, 2026-05-04T12:30 or 2026-05-04T12:30:00Z',
    );
    refused(
      await ask(`${path}?from=2026-05-04&to=2026-05-03`),
      422,
      'from (2026-05-03T23:00:00.000Z) is later than to (2026-05-03T22:59:59.999Z)',
    );
    refused(
      await ask(`${path}?time_zone=Mars`),
      422,
      '"Mars" is not a time zone: give one such as Europe/London or UTC',
    );
  }
  // One that no event stands at is no end of an export.
  for (const after of ['nothing', '12', '9'.repeat(16)]) {
    const wrong = await ask(`/ops/redemptions?after=${after}`);
    assert.equal(wrong.status, 422, after);
    assert.match(wrong.json.error as string, /^after must be a position of this log, such as \d+$/);
  }
  refused(await ask('/ops/redemptions?limit=0'), 422, 'limit must be at least 1');
});

test('sums by the merchant of the location are the totals, also of a gift that was not valid there', async () => {
  const [elsewhere = ''] = await buy(service, 'latte', [{}]);
  assert.equal((await redeem(service, elsewhere, 'ann', 'screen-soho')).status, 201);
  const rows = (await ask('/ops/redemptions?merchant_id=cinema')).json.data as Json[];
  assert.deepEqual(
    rows.map(({ gift_id, redemption }) => [gift_id, redemption.location_merchant_id, redemption.merchant_id]),
    [[elsewhere, 'cinema', null]],
  );
  const { redeemed, redeemed_value } = (await ask('/ops/totals?merchant=cinema')).json.sums as Json;
  assert.deepEqual([redeemed, redeemed_value], [1, 350]);
});

test.run();
