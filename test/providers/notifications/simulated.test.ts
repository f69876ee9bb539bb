import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Records } from '../../../src/ports/readStore.js';
import { masked, simulatedNotifications } from '../../../src/providers/notifications/simulated.js';
import type { SendLookup, SendRequest } from '../../../src/messages/notifications.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('simulated notifications');

let now = 1_000;
let lines: { msg: string; [field: string]: unknown }[] = [];
const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as { msg: string }) });
const open = (records: Records): ReturnType<typeof simulatedNotifications> =>
  simulatedNotifications(records, logger, () => now);
const request: SendRequest = {
  gift_id: '0123456789abcdef0123',
  transaction_id: 't1',
  buyer_id: 'ann',
  channel: 'sms',
  to: ['+447700900123'],
  sender_name: 'Ann Secret',
  product_name: 'Flat white',
  message: 'Just for you',
  launch_url: 'http://gift.test/g/CODE',
  locale: null,
};
const where = { gift_id: request.gift_id, channel: 'sms', to: request.to, launch_url: request.launch_url } as const;
const sent = {
  outcome: 'sent',
  provider: 'simulated',
  message_id: 'msg_simulated_0123456789abcdef0123',
  simulated: true,
};
test.before.each(() => {
  now = 1_000;
  lines = [];
});

test('sends once for ever, and says so without a personal word', async () => {
  const records = memoryRecords(() => now);
  const notifications = await open(records);
  assert.equal(await notifications.send(request), sent);
  assert.equal(await notifications.send({ ...request, to: ['+447700900999'] }), sent);
  assert.equal(await (await open(records)).send(request), sent);
  assert.is(lines.length, 1);
  assert.match(lines[0]?.msg ?? '', 'sent');
  assert.equal(lines[0]?.['to'], ['+44*******123']);
  assert.is(lines[0]?.['gift'], '012345');
  assert.not.match(JSON.stringify(lines), /Secret|Just for|7700900123|CODE|6789abcdef/);
});

test('published test numbers fail', async () => {
  const notifications = await open(memoryRecords(() => now));
  assert.equal(await notifications.send({ ...request, to: ['+15005550001'] }), {
    outcome: 'failed',
    cause: 'invalid number',
    simulated: true,
  });
  assert.is(lines[0]?.['cause'], 'invalid number');
  assert.equal(await notifications.lookUp({ ...where, started_at: new Date(now).toISOString() }), {
    outcome: 'failed',
    cause: 'invalid number',
    simulated: true,
  });
});

test('looks up: sent; never, where the ledger is older than the request and has not expired; else unknown', async () => {
  const records = memoryRecords(() => now);
  const notifications = await open(records);
  const startedAt = (ms: number): SendLookup => ({ ...where, started_at: new Date(ms).toISOString() });
  now = 2_000;
  assert.equal(await notifications.lookUp(startedAt(1_500)), { outcome: 'never' });
  assert.equal(await notifications.lookUp(startedAt(1_000)), { outcome: 'unknown' });
  await notifications.send(request);
  assert.equal(await notifications.lookUp(startedAt(1_500)), sent);
  now += 72 * 3_600_000;
  assert.equal(await notifications.lookUp(startedAt(1_500)), { outcome: 'unknown' });
});

test('sends nothing on a late request once a look-up that ends the attempt found nothing', async () => {
  const notifications = await open(memoryRecords(() => now));
  now += 1_000;
  const lookup = { ...where, started_at: new Date(now - 500).toISOString(), stopped: 'gift is redeemed' };
  assert.equal(await notifications.lookUp(lookup), { outcome: 'never' });
  assert.equal(await notifications.send(request), { outcome: 'failed', cause: 'gift is redeemed', simulated: true });
});

test('an emptied ledger knows that it knows nothing of before', async () => {
  const records = memoryRecords(() => now);
  const notifications = await open(records);
  await notifications.send(request);
  for (const { key } of await records.list('')) await records.delete(key);
  const lookup = { ...where, started_at: new Date(1_500).toISOString() };
  now = 2_000;
  assert.equal(await notifications.lookUp(lookup), { outcome: 'unknown' });
  assert.equal(await notifications.lookUp(lookup), { outcome: 'unknown' });
  now = 4_000;
  assert.equal(await notifications.lookUp({ ...lookup, started_at: new Date(3_000).toISOString() }), {
    outcome: 'never',
  });
});

test('masks numbers and tokens', () => {
  assert.is(masked('+447700900123'), '+44*******123');
  assert.is(masked('token-of-a-device-cdef'), '*******************def');
  assert.is(masked('+44'), '+44');
  assert.is(masked('abc'), '***');
});

test.run();
