/** After an erasure nothing of a person is found where this service keeps anything, by the command that support uses. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import { eventually } from '../support/assertions/until.js';
import { openTestEngines } from '../support/engines/engines.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { gift } from '../support/service/cli.js';
import { erase, SID } from '../support/service/erasures.js';
import { purchaseOf, redeem } from '../support/service/giftFlow.js';
import { cleanEnv } from '../support/service/mainProcess.js';
import { GIFT } from '../support/service/programs.js';
import { startService } from '../support/service/service.js';

const test = suite<{ dir: string }>('verified erasure');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-verified-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

const PASSWORD = 'a password of theirs';
const MESSAGE = 'A-message-nobody-else-writes';
const SUPPORT_TEXT = 'The-receiver-called-about-it';
const TICKET = 'T-of-the-receiver';
/** Of each kind: whom, and what must not be found afterwards. */
const PEOPLE = ['buyer', 'receiver', 'merchant', 'desk'] as const;
const NUMBER = '+447700900188';

const entry = (id: (typeof PEOPLE)[number], index: number): object => ({
  id,
  username: `Username-of-${id}@person.example`,
  password: PASSWORD,
  name: `Name-of-${id}`,
  phone_number: `07700 90015${index}`,
  device_tokens: [`device-of-${id}`],
  ...(id === 'desk' ? { roles: ['support'] } : {}),
  ...(id === 'merchant' ? { merchant_id: 'coffee-house', permissions: ['redeem'] } : {}),
});
const clearValues = (id: string, index: number): string[] => [
  `sername-of-${id}`,
  `Name-of-${id}`,
  `770090015${index}`,
  `device-of-${id}`,
  `cus-of-${id}`,
];

/** As a process of its own: one that reads the file of an open SQLite database loses its locks on it. */
async function verify(
  settings: Readonly<Record<string, string>>,
  values: readonly string[],
): Promise<{ readonly code: number; readonly said: string }> {
  const child = spawn(process.execPath, [GIFT, 'people', 'verify-erasure'], { env: { ...cleanEnv(), ...settings } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  child.stdin.end(`${values.join('\n')}\n`);
  const [code] = (await once(child, 'close')) as [number];
  return { code, said };
}

test('finds nothing of any kind of person, and what is left of others', async ({ dir }) => {
  const engines = await openTestEngines();
  const merchant = (CATALOGUE.merchants as readonly { readonly id: string }[])[0]?.id ?? '';
  try {
    const service = await startService({ dataDir: dir, engines, catalogue: CATALOGUE });
    try {
      const users = PEOPLE.map((id, index) => ({
        ...entry(id, index),
        ...(id === 'merchant' ? { merchant_id: merchant } : {}),
      }));
      await service.import({
        users,
        payment_methods: PEOPLE.map((id) => ({
          reference: `pm_${id}`,
          kind: 'card',
          users: [id],
          customer: `cus-of-${id}`,
        })),
      });
      const login = async (id: string): Promise<string> =>
        eventually(async () => {
          const { json } = await service.ask('POST', '/oauth/token', {
            token: await service.clientToken(),
            body: { grant_type: 'password', username: `Username-of-${id}@person.example`, password: PASSWORD },
          });
          return json['access_token'] as string | undefined;
        });
      const tokens = Object.fromEntries(await Promise.all(PEOPLE.map(async (id) => [id, await login(id)] as const)));
      const bought = async (token: string | undefined, receivers: object[], reference?: string): Promise<string> => {
        const body = purchaseOf('latte', receivers, {
          message: MESSAGE,
          ...(reference === undefined ? {} : { reference }),
        });
        const reply = await service.ask('POST', '/api/v2/transactions', {
          ...(token === undefined ? {} : { token }),
          body,
          key: `key-${receivers.length}-${reference ?? 'ann'}-${JSON.stringify(receivers).length}`,
        });
        assert.equal(reply.status, 201, reply.text);
        return (reply.json['data']['gifts'] as string[])[0] ?? '';
      };
      const ann = await service.userToken('ann');
      const gifts = [
        await bought(tokens['buyer'], [{ user_id: 'receiver' }, { phone_number: NUMBER }], 'pm_buyer'),
        await bought(ann, [{ phone_number: '07700 900151' }]),
        await bought(ann, [{ phone_number: NUMBER }]),
      ];
      for (const id of gifts)
        await eventually(async () => {
          const { json } = await service.ask('GET', `/api/v2/gifts/${service.shortcodeOf(id)}`, { token: ann });
          return json['data']?.['gift_status'] === 'sent';
        });
      await service.ask('GET', `/ops/gifts/${gifts[0] ?? ''}/history`, { token: tokens['desk'] as string });

      const support = async (id: string, what: string, more: object = {}): Promise<void> => {
        const reply = await service.ask('POST', `/ops/gifts/${id}/${what}`, {
          token: await service.userToken('sue'),
          body: { reason: SUPPORT_TEXT, ...more },
        });
        assert.equal(reply.status, 200, reply.text);
      };
      for (const id of gifts) {
        await support(id, 'block', { ticket: TICKET });
        await support(id, 'unblock', { ticket: TICKET });
      }
      await support(gifts[0] ?? '', 'reassign', { phone_number: NUMBER });
      for (const path of [
        `/ops/people?name=Name-of-&reason=${SUPPORT_TEXT}`,
        `/ops/people/buyer?reason=${SUPPORT_TEXT}`,
      ])
        assert.equal((await service.ask('GET', path, { token: await service.userToken('sue') })).status, 200);

      const values = [...PEOPLE.flatMap(clearValues), NUMBER, MESSAGE, SUPPORT_TEXT, TICKET];
      const before = await verify(service.settings, values);
      assert.equal(before.code, 1, before.said);

      await service.import(SID);
      // Staff and users of merchants are erased once they are retired.
      await service.import({ users: users.map((user) => ({ ...user, active: false })) });
      // Each waits for the requests that may still use its person's keys, so they wait at the same time.
      const [erased, ...replies] = await Promise.all([
        gift(service.settings, ['people', 'erase', '--phone', '-', '--yes', '--reason', 'asked for it'], {
          stdin: Readable.from([`${NUMBER}\n`]),
        }),
        ...PEOPLE.map(async (id) => erase(service, id)),
      ]);
      assert.equal(erased.code, 0, erased.err);
      for (const reply of replies) assert.equal(reply.status, 200, reply.text);
      const after = await verify(service.settings, values);
      assert.equal(after.code, 0, after.said);
      assert.equal((await redeem(service, gifts[2] ?? '')).status, 201);
      for (const line of service.log) for (const value of values) assert.ok(!line.includes(value), line);
    } finally {
      await service.close();
    }
  } finally {
    await engines.close();
  }
});

test.run();
