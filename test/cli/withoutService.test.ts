import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { type Ran, gift } from '../support/service/cli.js';
import { buy, redeem } from '../support/service/giftFlow.js';
import { type Json, startService } from '../support/service/service.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('the command line without a service');
let dir = '';
let gifts: string[] = [];
let pending = '';
let transaction = '';
let shortcode: string;
let redemption = '';

const ran = async (...args: readonly string[]): Promise<Ran> => {
  const found = await gift(dir, args);
  assert.is(found.code, 0, `${args.join(' ')}: ${found.err}`);
  return found;
};
/** As after a restore, or on a machine where only the log was brought. */
const forgetReadModels = (): void => {
  for (const name of readdirSync(dir)) if (name.startsWith('read.db')) rmSync(join(dir, name));
};

test.before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'without-service-'));
  const service = await startService({ dataDir: dir, engines: EMBEDDED, catalogue: CATALOGUE, split: false });
  gifts = await buy(service, 'latte', [{ user_id: 'bob' }, {}]);
  redemption = (await redeem(service, gifts[0] ?? '')).json.data.id as string;
  transaction = (await service.ask('GET', `/api/v2/gifts/${gifts[0] ?? ''}`, { token: await service.userToken('ann') }))
    .json.data.transaction_id as string;
  shortcode = service.shortcodeOf(gifts[0] ?? '');
  await service.close();
  // One that is bought and not issued: nothing but its purchase names it.
  const api = await startService({
    dataDir: dir,
    engines: EMBEDDED,
    split: false,
    env: { ROLES: 'api,projector', CHARGE_WAIT_MS: '0' },
  });
  [pending = ''] = await buy(api, 'ticket', [{ user_id: 'dan' }]);
  await eventually(async () => (await api.events.read(`gift-${pending}`)).length === 0);
  await api.close();
});
test.after(() => rmSync(dir, { recursive: true }));
test.before.each(forgetReadModels);

test('a history is found by whatever names the gift, from the log alone', async () => {
  const own = (await ran('history', gifts[0] ?? '', '--json')).records() as Json[];
  assert.equal(
    own.filter(({ type }) => type === 'GiftRedeemed').map(({ data }) => data.redemption_id),
    [redemption],
  );
  for (const name of [shortcode, redemption]) {
    forgetReadModels();
    assert.equal((await ran('history', name, '--json')).records(), own, name);
  }
  const all = (await ran('history', transaction, '--json')).records() as Json[];
  assert.is(all.filter(({ type }) => type === 'GiftIssued').length, 2);
  assert.equal(
    (await ran('history', pending, '--json')).records().map(({ type }) => type),
    ['GiftsPurchased'],
  );
  const unknown = await gift(dir, ['history', '0'.repeat(20)]);
  assert.equal([unknown.code, unknown.out], [1, '']);
  assert.match(unknown.err, /^gift: nothing is known of "0{20}"/);
});

test('purchases, and gifts of a person, are found in the log alone', async () => {
  const purchases = (await ran('purchases', 'list', '--json')).records() as Json[];
  assert.equal(
    purchases.map(({ product_id, status, count }) => [product_id, status, count]),
    [
      ['ticket', 'pending', 1],
      ['latte', 'charged', 2],
    ],
  );
  assert.is(purchases[1]?.transaction_id, transaction);
  const found = async (who: string): Promise<unknown[]> =>
    ((await ran('gifts', 'find', '--person', who, '--json', '--reason', 'a test')).records() as Json[]).map(
      ({ gift_id, as, gift_status }) => [gift_id, as, gift_status],
    );
  assert.equal(await found('bob'), [[gifts[0], 'receiver', 'redeemed']]);
  assert.equal(await found('dan'), [[pending, 'receiver', 'pending']]);
  assert.not(readdirSync(dir).includes('read.db'));
});

test('read models that are behind do not hide what the log has', async () => {
  await (await startService({ dataDir: dir, engines: EMBEDDED, split: false })).close();
  const [, second = ''] = gifts;
  const data = {
    redemption_id: 'later',
    location_id: 'bean-soho',
    location_merchant_id: 'coffee',
    merchant_id: 'coffee',
    brand_id: 'bean',
    product_id: 'latte',
    value: 350,
  };
  const events = await openEmbeddedEventStore({ dir });
  await events.append(
    `gift-${second}`,
    [
      {
        id: randomUUID(),
        type: 'GiftRedeemed',
        at: new Date().toISOString(),
        data,
        metadata: { commandId: 'c', correlationId: 'r', by: { user: 'till-coffee' } },
      },
    ],
    'any',
  );
  await events.close();
  assert.equal((await ran('history', 'later', '--json')).records().at(-1)?.['data'], data);
  assert.is((await gift(dir, ['history', 'never'])).code, 1);
});

test('the gift as it stood, embeds included', async () => {
  const [then] = (
    await ran('history', gifts[0] ?? '', '--as-of', new Date().toISOString(), '--json')
  ).records() as Json[];
  assert.equal(
    [then.data.gift_status, then.embedded.redemptions[0].id, then.embedded.stores.length > 0, then.viewer],
    ['redeemed', redemption, true, 'bob'],
  );
  const addressed = await gift({ DATA_DIR: dir, HOST: '::1', PORT: '4000' }, [
    'history',
    gifts[0] ?? '',
    '--as-of',
    new Date().toISOString(),
    '--json',
  ]);
  assert.equal(
    (addressed.records()[0] as Json).data.launch_url,
    'http://[::1]:4000/g/***',
    'as the service makes its links, without what opens the gift',
  );
});

test('redemptions, totals with their check, who saw what, a backup', async () => {
  assert.is((await ran('audit', 'redemptions')).out.trimEnd().split('\n').length, 3);
  const totals = await ran('audit', 'totals', '--check', '--json');
  const done = totals.records().at(-1) as Json;
  assert.equal([done.check.agree, done.check.transactions >= 2, done.sums.redeemed_value], [true, true, 700]);
  assert.match(totals.err, /the read model of transactions is behind: the log says which there are/);
  assert.match((await ran('audit', 'access')).out, /gift audit totals/);
  assert.match((await ran('backup', join(dir, 'all.log'))).out, /events of log/);
});

test('a search of the log that is interrupted says so', async () => {
  const interrupted = new AbortController();
  interrupted.abort();
  const found = await gift(dir, ['history', 'no-such-redemption'], { signal: interrupted.signal });
  assert.equal([found.code, found.out, found.err], [130, '', 'gift: interrupted; nothing was shown\n']);
});

test.run();
