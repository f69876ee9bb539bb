/** What an app developer does with `gift listen` and `gift trigger`, against a sandbox over HTTP. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ALL_ENTRY_TYPES, type EntryType } from '../../../src/projections/feed/entryTypes.js';
import { SCENARIOS } from '../../../src/cli/developers/scenarios.js';
import { eventually } from '../../support/assertions/until.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { gift, type Ran, sink } from '../../support/service/cli.js';
import { openReceiver, type Receiver, verify } from '../../support/service/receiver.js';
import {
  clientTokenOf,
  request,
  type Service,
  startProcess,
  startService,
  untilReady,
} from '../../support/service/service.js';

const test = suite('gift listen and gift trigger');
let service: Service;
let receiver: Receiver;
const listeners: AbortController[] = [];

test.before(async () => {
  service = await startService({ env: { SANDBOX: '1' }, split: false });
});
test.after(() => service.close());
test.before.each(async () => {
  receiver = await openReceiver();
});
test.after.each(async () => {
  for (const one of listeners.splice(0)) one.abort();
  await receiver.close();
});

const env = (): Readonly<Record<string, string>> => ({
  GIFT_URL: service.url,
  GIFT_CLIENT: 'app',
  GIFT_CLIENT_SECRET: 'app-secret',
  GIFT_USERNAME: 'bob@test.example',
  GIFT_PASSWORD: 'bob-password',
});

const trigger = (event: string, ...args: readonly string[]): Promise<Ran> => gift(env(), ['trigger', event, ...args]);

interface Listening {
  readonly secret: string;
  out(): string;
  err(): string;
  stop(): Promise<number>;
}

async function listening(args: readonly string[] = [], url = receiver.url): Promise<Listening> {
  const ending = new AbortController();
  listeners.push(ending);
  const out = sink();
  const err = sink();
  const terminal = { stdout: out.stream, stderr: err.stream, signal: ending.signal };
  const running = gift(env(), ['listen', '--forward-to', url, ...args], terminal);
  const [, secret = ''] = await eventually(() => /^the secret is (whsec_\S+)\nevents after/.exec(out.text()) ?? false);
  return {
    secret,
    out: out.text,
    err: err.text,
    async stop() {
      ending.abort();
      return (await running).code;
    },
  };
}

const receivedTypes = (): string[] => receiver.received.map(({ type }) => type);

test('sends what happens from now on, signed and with the body of a webhook', async () => {
  assert.equal((await trigger('gift.issued')).code, 0);
  const listener = await listening();
  const { code, out, err } = await trigger('gift.redeemed');
  assert.equal(code, 0, err);
  const shown = JSON.parse(out) as { readonly id: string; readonly data: object };
  await eventually(() => /gift\.redeemed [0-9a-f]{20} → 200, \d+ ms\n/.test(listener.out()));
  assert.equal(await listener.stop(), 0);
  assert.deepEqual(receivedTypes(), ['transaction.created', 'transaction.charged', 'gift.issued', 'gift.redeemed']);
  for (const one of receiver.received) verify(listener.secret, one);
  const last = receiver.received.at(-1);
  assert.equal(last?.id, shown.id);
  assert.equal(last.headers['webhook-id'], shown.id);
  const { gift: facts, ...data } = last.body.data as unknown as { readonly gift: object };
  assert.deepEqual(data, shown.data);
  assert.deepEqual(facts, {
    status: 'redeemed',
    product_id: 'pooled',
    brand_id: 'bean',
    value: '1.00',
    receiver: 'nobody',
    merchant_id: 'coffee',
  });
  assert.match(listener.err(), /ended; --from \S+ goes on from here\n$/);
});

test('has the bodies of the webhooks that an endpoint would be sent, for those who may have one', async () => {
  const token = await service.clientToken();
  const page = async (query: string, by = token): Promise<unknown> => {
    const reply = await service.ask('GET', `/api/v2/events?${query}`, { token: by });
    return reply.status === 200 ? reply.json : [reply.status, reply.json.error];
  };
  const { data } = (await page('form=webhook&limit=500')) as { readonly data: readonly { readonly data: object }[] };
  assert.ok(data.length > 0);
  assert.ok(data.every((one) => 'gift' in one.data || 'transaction' in one.data));
  assert.deepEqual(await page('form=webhook', await service.userToken('bob')), [403, 'Forbidden.']);
  assert.deepEqual(await page('form=webhook', await service.userToken('till-coffee')), [403, 'Forbidden.']);
  const end = (await page('after=end')) as { readonly data: readonly unknown[]; readonly next: string };
  assert.deepEqual(end.data, []);
  assert.equal((await trigger('gift.issued')).code, 0);
  const later = (await page(`after=${end.next}`)) as { readonly data: readonly { readonly type: string }[] };
  assert.equal(later.data[0]?.type, 'transaction.created');
});

test('sends again what is refused, leaves it out in the end, and waits for a server that is not there', async () => {
  let refusals = 0;
  const port = receiver.port;
  receiver.answer = ({ type }, response) => {
    const isRefused = type === 'transaction.charged' && refusals < 1;
    if (isRefused) refusals += 1;
    response.writeHead(isRefused ? 500 : 204).end(isRefused ? 'not\nyet' : undefined);
  };
  const listener = await listening();
  assert.equal((await trigger('transaction.charged')).code, 0);
  await eventually(() => receivedTypes().includes('gift.issued'));
  assert.match(listener.out(), /transaction\.charged \S+ → 500 notyet; sent again in 1 s\n/);
  assert.deepEqual(receivedTypes(), [
    'transaction.created',
    'transaction.charged',
    'transaction.charged',
    'gift.issued',
  ]);
  await receiver.close();
  assert.equal((await trigger('transaction.declined')).code, 0);
  await eventually(() => listener.err().includes(`${receiver.url} is not there (the connection was refused)`));
  receiver = await openReceiver(undefined, { port });
  await eventually(() => receivedTypes().includes('transaction.declined'));
  assert.equal(await listener.stop(), 0);
});

test('goes on after the service was killed, after a reset of the sandbox, and where it ended', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-listen-'));
  const settings = { DATA_DIR: dir, PORT: '0', SANDBOX: '1', LOG_LEVEL: 'info' };
  writeFileSync(join(dir, 'catalogue.json'), JSON.stringify(CATALOGUE));
  assert.equal((await gift(dir, ['import', join(dir, 'catalogue.json')])).code, 0);
  let running = await startProcess(settings);
  const url = running.url ?? '';
  const made = async (event: string): Promise<void> =>
    assert.equal((await gift({ ...env(), GIFT_URL: url }, ['trigger', event])).code, 0);
  try {
    const listener = await listening(['--url', url]);
    await running.end('SIGKILL');
    await eventually(() => listener.err().includes('the API does not answer (no answer: '));
    running = await startProcess({ ...settings, PORT: new URL(url).port });
    await untilReady(url);
    await made('transaction.created');
    await eventually(() => receivedTypes().includes('gift.issued'));
    assert.match(listener.err(), /the API answers again\n/);
    await request(`${url}/sandbox/reset`, 'POST', { token: await clientTokenOf(url) });
    await eventually(() => listener.err().includes('of another log by now'));
    await made('transaction.declined');
    await eventually(() => receivedTypes().includes('transaction.declined'));
    assert.equal(await listener.stop(), 0);
    const [, cursor = ''] = /--from (\S+) goes on/.exec(listener.err()) ?? [];
    await made('gift.claimed');
    const before = receiver.received.length;
    const types = ['gift.claimed', 'transaction.created'];
    const next = await listening(['--url', url, '--from', cursor, ...types.flatMap((type) => ['--type', type])]);
    await eventually(() => receivedTypes().includes('gift.claimed'));
    assert.equal(await next.stop(), 0);
    assert.deepEqual(receivedTypes().slice(before), ['transaction.created', 'gift.claimed']);
  } finally {
    await running.end('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
});

test('refuses wrong usage in words that say what to change', async () => {
  const failing = async (args: readonly string[], settings: Readonly<Record<string, string>> = {}): Promise<string> => {
    const { code, err } = await gift({ ...env(), ...settings }, args);
    return `${code} ${err}`;
  };
  const listen = ['listen', '--forward-to', 'http://localhost:1/hook'];
  assert.match(await failing(['trigger', 'gift.lost']), /^2 gift: gift\.lost is none of the types of events/);
  assert.match(await failing(['trigger', 'gift.issued', '--product', 'none']), /^1 gift: the purchase: 422 /);
  assert.match(await failing(['trigger', 'gift.unredeemed']), /^2 gift: give --till \(or GIFT_TILL\)/);
  assert.match(await failing(listen, { GIFT_CLIENT_SECRET: 'wrong' }), /^1 gift: app could not log in at .*: 401/);
  assert.match(await failing(listen, { GIFT_CLIENT: '' }), /^2 gift: give --client \(or GIFT_CLIENT\)/);
  assert.match(await failing(listen, { GIFT_URL: 'sandbox' }), /^2 gift: --url must be the address/);
  assert.match(await failing([...listen, '--from', 'x']), /^1 gift: the feed can't be read: 422 after /);
  assert.match(await failing([...listen, '--secret', 'short']), /^2 gift: --secret must be whsec_/);
  assert.match(await failing(['listen', '--forward-to', 'localhost']), /^2 gift: --forward-to must /);
  assert.match(
    await failing([...listen, '--token', await service.userToken('bob')]),
    /^1 gift: the feed can't be read: 403 Forbidden\.: use a client/,
  );
});

test('buys nothing where the service is no sandbox', async () => {
  const real = await startService({ split: false });
  try {
    const { code, err } = await gift({ ...env(), GIFT_URL: real.url }, ['trigger', 'gift.issued']);
    assert.deepEqual([code, err], [1, `gift: ${real.url} is no sandbox: nothing was bought\n`]);
  } finally {
    await real.close();
  }
});

test('makes each event that an app can make, and says why of the others', async () => {
  const till = ['--till', 'till-coffee@test.example', '--till-password', 'till-coffee-password'];
  for (const type of ALL_ENTRY_TYPES) {
    const { code, out, err } = await trigger(type, ...till);
    const scenario = SCENARIOS[type as EntryType];
    if ('why' in scenario)
      assert.deepEqual([code, err], [1, `gift: ${type} can't be made by an app: ${scenario.why}\n`]);
    else assert.deepEqual([code, err, (JSON.parse(out) as { readonly type: string }).type], [0, '', type]);
  }
  const { out } = await gift({}, ['trigger', '--list']);
  for (const type of ALL_ENTRY_TYPES) assert.ok(out.includes(type), type);
});

test.run();
