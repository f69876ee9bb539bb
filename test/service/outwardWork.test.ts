/** What a log that was restored, copied or held does not do, until a person resumes it. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { OUTWARD_STREAM } from '../../src/domain/outward.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { eventually } from '../support/assertions/until.js';
import { openTestEngines, type TestEngines } from '../support/engines/engines.js';
import { gift } from '../support/service/cli.js';
import { buyOne, purchaseOf } from '../support/service/giftFlow.js';
import { openReceiver, type Receiver } from '../support/service/receiver.js';
import { type Json, type Service, startService } from '../support/service/service.js';

interface Context {
  dir: string;
  /** The folder of the service whose log is copied. */
  data: string;
  engines: TestEngines;
  receiver: Receiver;
  open: Service | undefined;
}

const test = suite<Context>('outward work');
const env = { WEBHOOK_PRIVATE_ADDRESSES: 'allow', CHARGE_WAIT_MS: '0' };

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'outward-'));
  context.data = join(context.dir, 'data');
  mkdirSync(context.data);
  context.engines = await openTestEngines(new Set());
  context.receiver = await openReceiver();
});
test.after.each(async (context) => {
  await context.open?.close();
  context.open = undefined;
  await context.receiver.close();
  await context.engines.close();
  rmSync(context.dir, { recursive: true, force: true });
});

async function start(context: Context, dataDir: string, more: Readonly<Record<string, string>> = {}): Promise<Service> {
  const { engines } = context;
  const fresh = dataDir === context.data && context.open === undefined;
  const service = await startService({
    dataDir,
    engines,
    split: false,
    env: { ...env, ...more },
    ...(fresh ? { catalogue: (await import('../support/fixtures/testCatalogue.js')).CATALOGUE } : {}),
  });
  context.open = service;
  return service;
}

async function stop(context: Context): Promise<void> {
  await context.open?.close();
}

interface Made {
  readonly endpoint: string;
  /** Delivered before. */
  readonly gift: string;
  /** Bought while no process charged. */
  readonly pending: string;
}

/** A service that has delivered, and has a purchase that is not charged yet; it is stopped. */
async function made(context: Context): Promise<Made> {
  const { receiver, data } = context;
  let service = await start(context, data);
  const created = await service.ask('POST', '/api/v2/webhook-endpoints', {
    token: await service.clientToken(),
    body: { url: receiver.url, types: ['gift.issued', 'gift.redeemed'] },
  });
  assert.equal(created.status, 201, created.text);
  const bought = await buyOne(service);
  await eventually(async () => receiver.received.length === 1);
  await stop(context);
  service = await start(context, data, { ROLES: 'api,projector' });
  const reply = await purchase(service);
  assert.equal(reply.status, 201, reply.text);
  await stop(context);
  return { endpoint: created.json.data.id as string, gift: bought, pending: reply.json.data.id as string };
}

const purchase = async (service: Service) =>
  service.ask('POST', '/api/v2/transactions', { token: await service.userToken('ann'), body: purchaseOf('latte') });

const deliveredGifts = ({ receiver }: Context): (string | undefined)[] =>
  receiver.received.map(({ body }) => body.data['gift_id']);

/** What a service does on a log that waits, and on the same log once it is resumed. */
async function holdsThenResumes(context: Context, dataDir: string, { endpoint, gift: old, pending }: Made) {
  const service = await start(context, dataDir);
  const ready = await service.ask('GET', '/readyz');
  assert.equal(ready.status, 200, ready.text);
  assert.match(
    ready.json.parts['outward work'].detail as string,
    /waits, since .*: nothing is charged, sent or delivered/,
  );
  assert.match((await service.ask('GET', '/metrics')).text, /^gift_outward_work_held 1$/m);
  assert.ok(service.log.some((line) => line.includes('nothing is charged, sent or delivered')));

  const token = await service.clientToken();
  for (const refused of [
    await purchase(service),
    await service.ask('POST', `/api/v2/webhook-endpoints/${endpoint}/ping`, { token }),
    await service.ask('POST', `/api/v2/webhook-endpoints/${endpoint}/recover`, {
      token,
      body: { since: new Date(0).toISOString() },
    }),
  ])
    assert.deepEqual(
      [refused.status, refused.json.error, refused.headers.get('error-code'), refused.headers.get('retry-after')],
      [503, 'Nothing is charged or sent here until an operator resumes it.', 'outward_work_held', '60'],
    );
  const redeemed = await service.ask('POST', `/api/v2/gifts/${old}/redemptions`, {
    token: await service.userToken('ann'),
    body: { location_id: 'bean-soho' },
  });
  assert.equal(redeemed.status, 201, redeemed.text);
  const cli = await gift(dataDir, ['purchases', 'refund', pending, '--reason', 'a drill']);
  assert.match(cli.err, /^gift: nothing is charged or sent here, since .*: gift resume ends that; nothing was done\n$/);

  const said = await gift(dataDir, ['resume', '--reason', 'payments are reconciled']);
  assert.equal(said.err, '');
  assert.match((await gift(dataDir, ['resume', '--reason', 'twice'])).out, /delivers already\n$/);
  const resumed = (await service.events.read(OUTWARD_STREAM)).at(-1);
  assert.deepEqual(
    [resumed?.type, resumed?.data, String(resumed?.metadata.by.user).startsWith('cli:')],
    ['OutwardWorkResumed', { log_id: service.events.logId, reason: 'payments are reconciled' }, true],
  );

  await eventually(async () => (await purchase(service)).status === 201);
  await eventually(async () => context.receiver.received.length >= 3);
  const events = await service.events.read(transactionStream(pending));
  const charged = events.find(({ type }) => type === 'ChargeStarted');
  assert.ok((charged?.position ?? '') > (resumed?.position ?? ''), 'it was charged once it was resumed');
  // Of before it came the one that the other log delivered; of the redemption while it waited nothing.
  assert.equal(deliveredGifts(context).filter((one) => one === old).length, 1);
  assert.ok(context.receiver.received.every(({ type }) => type === 'gift.issued'));

  const recovered = await service.ask('POST', `/api/v2/webhook-endpoints/${endpoint}/recover`, {
    token,
    body: { since: new Date(0).toISOString() },
  });
  assert.equal(recovered.status, 202, recovered.text);
  await eventually(async () =>
    context.receiver.received.some(({ type, body }) => type === 'gift.redeemed' && body.data['gift_id'] === old),
  );
  await stop(context);
}

test('a restored log charges and delivers nothing until it is resumed, then from there on', async (context) => {
  const { dir, data } = context;
  const before = await made(context);
  const [file, fresh] = [join(dir, 'backup'), join(dir, 'fresh')];
  assert.equal((await gift(data, ['backup', file])).code, 0);
  mkdirSync(fresh);
  for (const name of ['hash.key', 'master.key', 'token.key', 'keys.db']) cpSync(join(data, name), join(fresh, name));
  const restored = await gift(fresh, ['restore', file, '--reason', 'a drill']);
  assert.equal(restored.code, 0, restored.err);
  assert.match(
    restored.out,
    /^it charges, sends and delivers nothing, since .* restored from its backup: .*gift resume/m,
  );
  await holdsThenResumes(context, fresh, before);
});

test('a restored log gives out no imported voucher code, which the old log may have given out', async (context) => {
  const { dir, data } = context;
  const [file, fresh] = [join(dir, 'backup'), join(dir, 'fresh')];
  const draw = async (service: Service, id: string) =>
    service.ask('POST', `/api/v2/gifts/${id}/voucher/claimed`, { token: await service.userToken('ann') });
  const codeOf = ({ json }: { readonly json: Json }): unknown => json.data[0].value;
  let service = await start(context, data, { CHARGE_WAIT_MS: '5000' });
  const latte = await buyOne(service);
  const pooled: string[] = [];
  for (let count = 0; count < 4; count++) pooled.push(await buyOne(service, 'pooled'));
  const [first = '', second = '', third = '', late = ''] = pooled;
  const before = codeOf(await draw(service, first));
  assert.equal((await gift(data, ['backup', file])).code, 0);
  const given = [codeOf(await draw(service, second)), codeOf(await draw(service, third))];
  assert.equal(new Set([before, ...given]).size, 3, 'the pool is used up');
  await stop(context);
  mkdirSync(fresh);
  for (const name of ['hash.key', 'master.key', 'token.key', 'keys.db']) cpSync(join(data, name), join(fresh, name));
  assert.equal((await gift(fresh, ['restore', file, '--reason', 'the disk is lost'])).code, 0);

  service = await start(context, fresh);
  const refused = await draw(service, late);
  assert.deepEqual([refused.status, refused.headers.get('error-code')], [503, 'outward_work_held'], refused.text);
  assert.equal(codeOf(await draw(service, first)), before, 'a voucher that there is, is shown');
  assert.equal((await draw(service, latte)).status, 200, 'a code that is made is new');
  // As docs/deployment.md says: nobody knows which codes were given out.
  const codes = async (voucher_codes: readonly object[], ...more: string[]): Promise<void> => {
    const imported = join(dir, 'codes.json');
    writeFileSync(imported, JSON.stringify({ voucher_codes }));
    const { code, err } = await gift(fresh, ['import', imported, ...more]);
    assert.equal(code, 0, err);
  };
  await codes([], '--prune', '--yes', '--reason', 'may be given out since the backup');
  assert.equal((await gift(fresh, ['resume', '--reason', 'payments are reconciled'])).err, '');
  await eventually(async () => (await draw(service, late)).json.error === 'Voucher not available.');
  await codes([{ segment_id: 'seg-pool', code: 'NEW-1', pin: '4444' }]);
  await eventually(async () => (await draw(service, late)).status === 200);
  assert.equal(codeOf(await draw(service, late)), 'NEW-1');
});

test('a data folder that was copied as files waits once it is held, though it has the read models', async (context) => {
  const { dir, data } = context;
  const before = await made(context);
  const copy = join(dir, 'copy');
  cpSync(data, copy, { recursive: true });
  const held = await gift(copy, ['hold', '--reason', 'a copy for a drill', '--json']);
  assert.deepEqual(held.records()[0]?.['outward_work'], 'held');
  await holdsThenResumes(context, copy, before);
});

test('a running service stops to charge when it is held, and goes on when it is resumed', async (context) => {
  const service = await start(context, context.data);
  await buyOne(service);
  assert.equal((await gift(context.data, ['hold', '--reason', 'the provider asks for it'])).code, 0);
  await eventually(async () => (await purchase(service)).status === 503);
  assert.equal((await gift(context.data, ['resume', '--reason', 'it is well again'])).code, 0);
  await eventually(async () => (await purchase(service)).status === 201);
  const [bought] = (await service.ask('GET', '/api/v2/transactions', { token: await service.userToken('ann') })).json
    .data as Json[];
  await eventually(async () =>
    (await service.events.read(transactionStream(bought.id as string))).some(({ type }) => type === 'PaymentCharged'),
  );
});

test('a copy waits, a copy of it too, and its source goes on', async (context) => {
  const { dir, data } = context;
  const service = await start(context, data);
  await buyOne(service);
  const copies = [join(dir, 'first'), join(dir, 'second')];
  for (const [index, to] of copies.entries()) {
    const from = copies[index - 1] ?? data;
    const copied = await gift({}, ['copy', '--from', from, '--to', to, '--no-seal']);
    assert.match(copied.out, /^it charges, sends and delivers nothing, since it is a copy of the log .*gift resume/m);
  }
  assert.equal((await purchase(service)).status, 201);
  for (const to of copies) {
    const done = await gift(to, ['resume', '--reason', 'this is the service now', '--json']);
    assert.equal(done.records()[0]?.['changed'], true, done.err);
  }
});

test.run();
