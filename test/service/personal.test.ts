/** Personal data over the whole service: where it stands, and what goes on without the key store. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { Sqlite } from '../../src/adapters/embedded/driver.js';
import { loadConfig } from '../../src/service/config.js';
import { openStoredEvents } from '../../src/service/engines.js';
import { eventually } from '../support/assertions/until.js';
import { testWhere } from '../support/assertions/testWhere.js';
import { EMBEDDED, openTestEngines } from '../support/engines/engines.js';
import { mongoMissing, startMongo } from '../support/engines/mongoServer.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { gift, type Ran } from '../support/service/cli.js';
import { buyOne, purchaseOf, redeem } from '../support/service/giftFlow.js';
import { runs } from '../support/service/mainProcess.js';
import { type Json, type Service, startService } from '../support/service/service.js';

const test = suite<{ dir: string }>('personal data');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-personal-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

const NUMBER = '+447700900123';
const MESSAGE = 'Happy birthday, dear Personal-Message';
const [SOMEBODY] = CATALOGUE.users as { readonly password_hash: string }[];
const PERSON = {
  id: 'person',
  username: 'Personal.Username@test.example',
  password_hash: SOMEBODY?.password_hash,
  name: 'Personal-Name',
  phone_number: '07700 900124',
  device_tokens: ['personal-device-token'],
};
const FILE = {
  users: [PERSON],
  payment_methods: [{ reference: 'pm_person', kind: 'card', users: ['person'], customer: 'cus_personal' }],
};
const CLEAR = [
  '7700900123',
  '7700 900123',
  '7700900124',
  'Personal-Message',
  'ersonal.',
  'Personal-Name',
  'personal-device-token',
  'cus_personal',
];

/** Buys for the number, with the message; once the gift is issued. */
async function bought(service: Service): Promise<string> {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{ phone_number: NUMBER }], { message: MESSAGE }),
  });
  assert.equal(reply.status, 201, reply.text);
  const id = (reply.json['data']['gifts'] as string[])[0] ?? '';
  await eventually(async () => (await shown(service, id)).data.gift_status === 'sent');
  return id;
}

async function shown(service: Service, id: string): Promise<Json> {
  const reply = await service.ask('GET', `/api/v2/gifts/${id}?embed[]=message`, {
    token: await service.userToken('ann'),
  });
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

const sumsOf = (totals: Ran): unknown[] => totals.records().map(({ sums, ...line }) => sums ?? line);

const holdsNothing = (text: string, where: string): void => {
  for (const clear of CLEAR) assert.ok(!text.includes(clear), `${clear} in ${where}`);
};

test('stands nowhere in the log and its files and backups, and is shown where it should be', async ({ dir }) => {
  const engines = await openTestEngines();
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir);
  try {
    const service = await startService({ dataDir, engines, catalogue: CATALOGUE });
    try {
      await service.import(FILE);
      const id = await bought(service);
      assert.equal((await shown(service, id)).embedded.messages[0].message, MESSAGE);
      const stored = await openStoredEvents(loadConfig(service.settings));
      let events = 0;
      for await (const batch of stored.readAll(undefined)) {
        events += batch.events.length;
        holdsNothing(JSON.stringify(batch.events), 'the log');
      }
      assert.ok(events > 50);
      await stored.close();
      const life = await gift(service.settings, ['history', id, '--json', '--personal', '--reason', 'a test']);
      assert.ok(life.out.includes(NUMBER) && life.out.includes(MESSAGE), life.out + life.err);
    } finally {
      await service.close();
    }
    for (const name of readdirSync(dataDir).filter((one) => /^(events|keys)\.db/.test(one)))
      holdsNothing(readFileSync(join(dataDir, name), 'latin1'), name);
    if (!engines.servers.has('eventstoredb')) {
      assert.equal((await gift(dataDir, ['backup', join(dir, 'backup')])).code, 0);
      holdsNothing(readFileSync(join(dir, 'backup'), 'utf8'), 'the backup');
    }
  } finally {
    await engines.close();
  }
});

test('keeps gifts, redemptions and money when the key store is lost for good', async ({ dir }) => {
  const [data, fresh] = [join(dir, 'data'), join(dir, 'fresh')];
  mkdirSync(data);
  const service = await startService({ dataDir: data, engines: EMBEDDED, catalogue: CATALOGUE });
  const [open, redeemed] = [await bought(service), await bought(service)];
  assert.equal((await redeem(service, redeemed)).status, 201);
  await service.close();
  const totals = await gift(data, ['audit', 'totals', '--json']);

  const without = join(dir, 'without');
  cpSync(data, without, { recursive: true });
  for (const name of readdirSync(without).filter((one) => one.startsWith('keys.db'))) rmSync(join(without, name));
  const refused = await runs({ PORT: '0', DATA_DIR: without });
  assert.equal(refused.code, 1);
  assert.match(refused.errors, /^KEYS_URL: the key store holds none of the log's usernames: put back .*\n$/);

  assert.equal((await gift(data, ['backup', join(dir, 'backup')])).code, 0);
  const restore = ['restore', join(dir, 'backup'), '--reason', 'the keys are lost', '--without-key'];
  assert.equal((await gift(fresh, restore)).code, 0);
  assert.deepEqual(sumsOf(await gift(fresh, ['audit', 'totals', '--json'])), sumsOf(totals));
  const again = await startService({ dataDir: fresh, engines: EMBEDDED, catalogue: CATALOGUE });
  try {
    const { data: shownGift, embedded } = await shown(again, open);
    assert.deepEqual([shownGift.gift_status, embedded.messages[0].message], ['sent', '']);
    assert.equal((await shown(again, redeemed)).data.gift_status, 'redeemed');
    assert.equal((await redeem(again, open)).status, 201);
  } finally {
    await again.close();
  }
});

test('takes out of service only what altered encrypted fields are of', async ({ dir }) => {
  const service = await startService({ dataDir: dir, engines: EMBEDDED, catalogue: CATALOGUE });
  const gifts = [await bought(service), await buyOne(service)] as const;
  await service.close();

  const log = new Sqlite(join(dir, 'events.db'));
  const change = (column: 'data' | 'metadata', stream: string, encrypted: RegExp): void => {
    const [row] = log
      .prepare<[string], Record<string, string>>(
        `SELECT position, ${column} AS text FROM events WHERE stream LIKE ? ORDER BY position LIMIT 1`,
      )
      .all(stream);
    const text = row?.['text'] ?? '';
    const at = (encrypted.exec(text)?.index ?? -1) + 40;
    assert.ok(at > 40, text);
    const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
    log.prepare(`UPDATE events SET ${column} = ? WHERE position = ?`).run(changed, row?.['position'] ?? '');
  };
  change('metadata', 'user-bob', /"box":"/);
  const [{ transaction_id: transaction }] = log
    .prepare<[string], { transaction_id: string }>(
      `SELECT json_extract(data, '$.transaction_id') AS transaction_id FROM events WHERE stream = ? LIMIT 1`,
    )
    .all(`gift-${gifts[0]}`) as [{ transaction_id: string }];
  change('data', `transaction-${transaction}`, /"message":"/);
  log.close();
  for (const name of readdirSync(dir).filter((one) => one.startsWith('read.db'))) rmSync(join(dir, name));

  const again = await startService({ dataDir: dir, engines: EMBEDDED });
  try {
    assert.equal((await redeem(again, gifts[1])).status, 201);
    assert.equal((await redeem(again, gifts[0])).status, 201);
    const client = await again.clientToken();
    const login = { grant_type: 'password', username: 'bob@test.example', password: 'bob-password' };
    assert.equal((await again.ask('POST', '/oauth/token', { token: client, body: login })).status, 503);
    const token = await again.userToken('ann');
    assert.equal((await again.ask('GET', `/api/v2/gifts/${gifts[0]}?embed[]=message`, { token })).status, 503);
    assert.equal((await again.ask('GET', `/api/v2/gifts/${gifts[0]}`, { token })).status, 200);
    assert.equal((await again.ask('GET', '/readyz')).status, 200);
    const { json } = await again.ask('GET', '/ops/projections/accounts', { token: await again.userToken('sue') });
    assert.equal(json['data'].quarantined, 1);
    const told =
      "username, name, phone_number, device_tokens of event 0 of user-bob can't be decrypted: it was altered";
    assert.ok(
      again.log.some((line) => line.includes(told)),
      again.log.filter((line) => line.includes('user-bob')).join('\n'),
    );
  } finally {
    await again.close();
  }
});

test('does not start under a master key that the key store was not made with', async ({ dir }) => {
  const service = await startService({ dataDir: dir, engines: EMBEDDED, catalogue: CATALOGUE });
  await service.close();
  const other = await runs({ ...service.settings, MASTER_KEY: 'm'.repeat(43) });
  assert.equal(other.code, 1);
  assert.match(other.errors, /^MASTER_KEY: this is not the key that the key store was made with: put .*\n$/);
  rmSync(join(dir, 'master.key'));
  const lost = await runs(service.settings);
  assert.match(lost.errors, /^MASTER_KEY: the key that the key store was made with is missing: put .*\n$/);
  assert.ok(!readdirSync(dir).includes('master.key'), 'no other is made');
});

testWhere(
  test,
  mongoMissing() === undefined,
  mongoMissing() ?? '',
  'refuses what needs a key store that is gone, and nothing else',
  async ({ dir }) => {
    const server = await startMongo();
    const service = await startService({
      dataDir: dir,
      engines: { ...EMBEDDED, settings: { KEYS_URL: `${server.url}keys` } },
      catalogue: CATALOGUE,
    });
    try {
      const gifts = [await buyOne(service), await buyOne(service)];
      for (const user of ['ann', 'till-coffee']) await service.userToken(user);
      await server.stop();
      const ask = async (body: object): Promise<number> =>
        (await service.ask('POST', '/api/v2/transactions', { token: await service.userToken('ann'), body })).status;
      assert.equal(await ask(purchaseOf('latte', [{ phone_number: '+447700900155' }])), 503);
      assert.equal((await redeem(service, gifts[0] ?? '')).status, 201);
      assert.equal((await shown(service, gifts[1] ?? '')).data.gift_status, 'sent');
      assert.equal(await ask(purchaseOf('latte')), 201);
      await eventually(async () => {
        const { status, json } = await service.ask('GET', '/readyz');
        return status === 503 && json['parts']?.['key store']?.ready === false;
      });
    } finally {
      await service.close();
    }
  },
);

test.run();
