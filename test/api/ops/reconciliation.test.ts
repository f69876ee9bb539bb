import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { gift } from '../../support/service/cli.js';
import { buyOne, purchaseOf, refused } from '../../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('reconciliation by auditors');
let service: Service;
test.before(async () => {
  service = await startService();
  const transaction = (
    await service.ask('GET', `/api/v2/gifts/${await buyOne(service)}`, { token: await service.userToken('ann') })
  ).json.data.transaction_id as string;
  await service.ask('POST', `/ops/transactions/${transaction}/refund`, {
    token: await service.userToken('sue'),
    body: { reason: 'wrong product' },
  });
  for (const reference of ['wallet-prepaid', 'wallet-invoice']) {
    await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', undefined, { reference }),
    });
  }
});
test.after(() => service.close());

const today = (): string => new Date().toISOString().slice(0, 10);
const cli = (...args: string[]) => gift(service.settings, ['payments', 'reconcile', ...args]);
const ask = async (query: string, user = 'aud'): Promise<Reply> =>
  service.ask('GET', `/ops/payments/reconciliation?${query}`, { token: await service.userToken(user) });
const lines = (text: string): Record<string, unknown>[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const one = { charges: 1, charged: 350, refunds: 0, refunded: 0 };
const ledgers = [
  {
    provider: 'simulated',
    here: { ...one, refunds: 1, refunded: 350 },
    there: { ...one, refunds: 1, refunded: 350 },
    looked_up: 0,
    differences: 0,
  },
  { provider: 'wallet', here: one, there: one, looked_up: 0, differences: 0 },
];

test('a day that agrees, on the command line and under /ops', async () => {
  const words = await cli('--day', today(), '--time-zone', 'UTC');
  assert.deepEqual([words.code, words.err], [0, '']);
  assert.match(words.out, new RegExp(`^day ${today()} of UTC: ${today()}T00:00:00.000Z to `));
  assert.match(words.out, /simulated +log +1 +3\.50 +1 +3\.50\n/);
  assert.match(words.out, /invoice +log, not compared +1 +3\.50 +0 +0\.00\nall agrees, to the penny\n$/);
  const json = await cli('--day', today(), '--time-zone', 'UTC', '--json');
  const [report] = json.records();
  assert.deepEqual(
    [report?.['action'], report?.['differences'], report?.['ledgers'], report?.['uncompared']],
    ['done', 0, ledgers, [{ provider: 'invoice', ...one }]],
  );
  const reply = await ask(`day=${today()}&time_zone=UTC`);
  assert.equal(reply.headers.get('content-type'), 'application/x-ndjson');
  assert.deepEqual(
    lines(reply.text).map((line) => ({ ...line, to: '' })),
    [{ ...report, to: '' }],
  );
});

test('what was charged since the last comparison is in the next one', async () => {
  const before = lines((await ask(`day=${today()}&time_zone=UTC`)).text);
  await buyOne(service);
  const after = lines((await ask(`day=${today()}&time_zone=UTC`)).text);
  const charged = (report: readonly Record<string, unknown>[]): unknown[] =>
    report.map(({ action, differences, ledgers: all }) => [
      action,
      differences,
      (all as typeof ledgers | undefined)?.[0]?.there.charges,
    ]);
  assert.deepEqual([charged(before), charged(after)], [[['done', 0, 1]], [['done', 0, 2]]]);
});

test('a difference: exit code 1, reported in both', async () => {
  const event = {
    id: crypto.randomUUID(),
    type: 'PaymentCharged',
    at: new Date().toISOString(),
    data: { amount: 999, provider: 'simulated', charge_id: 'ch_never' },
    metadata: { commandId: 'x', correlationId: 'x', by: {} },
  };
  await service.events.append('transaction-strange', [event], 'none');
  const words = await cli('--day', today(), '--time-zone', 'UTC');
  assert.deepEqual([words.code, words.err], [1, 'gift: 1 difference\n']);
  assert.match(
    words.out,
    /^differences:\n {2}missing there: simulated charge ch_never of transaction strange; here 9\.99 at .*, not there: simulated knows no such charge\n/,
  );
  assert.match(words.out, /\n1 difference\n$/);
  const json = await cli('--day', today(), '--time-zone', 'UTC', '--json');
  assert.deepEqual(
    json.records().map(({ action }) => action),
    ['difference', 'done'],
  );
  const found = lines((await ask(`day=${today()}&time_zone=UTC`)).text);
  assert.deepEqual(
    found.map(({ action, what }) => [action, what]),
    [
      ['difference', 'missing_there'],
      ['done', undefined],
    ],
  );
  const seen = await service.events.read(`access-${today()}`);
  assert.ok(
    seen.some(
      ({ type, data }) =>
        type === 'OperationEnded' &&
        (data as { complete: boolean; count: number }).complete &&
        (data as { count: number }).count === 1,
    ),
  );
});

test('refuses a malformed day, a future one, and one that the provider has forgotten', async () => {
  for (const [args, message] of [
    [['--day', 'today'], /"today" is not a day: give one such as 2026-05-04/],
    [['--day', '2999-01-01'], /2999-01-01 has not started yet/],
    [['--day', '2026-01-01', '--time-zone', 'Moon'], /Moon"? is not a time zone/],
    [['--day', '2020-01-01'], /the simulated provider keeps its ledger for 48 h only/],
    [[], /--day/],
  ] as const) {
    const { code, err } = await cli(...args);
    assert.equal(code, 2, err);
    assert.match(err, message);
  }
  refused(await ask('day=2999-01-01'), 422, '2999-01-01 has not started yet');
  refused(await ask('day=2020-01-01'), 422, 'the simulated provider keeps its ledger for 48 h only');
  refused(await ask('day=yesterday'), 422, 'day must be a date such as 2026-05-04');
  refused(await ask('day=2026-01-01', 'ann'), 403, 'Forbidden.');
});

test.run();
