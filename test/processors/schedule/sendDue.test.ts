import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { type SendDeps, sendDue } from '../../../src/processors/schedule/sendDue.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { rejects } from '../../support/assertions/rejects.js';
import { type Bought, logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('sending what is due');

const NOW = '2098-06-01T09:00:00.000Z';

/** Sends what the read model names. */
async function send(
  log: TestLog,
  named: readonly { readonly transactionId: string }[],
  { now = NOW, ...more }: Partial<SendDeps> & { readonly now?: string } = {},
): Promise<void> {
  const due: SendDeps['due'] = {
    serves: async () => true,
    async *toSend(asked) {
      assert.is(asked, now);
      yield named.map(({ transactionId: id }) => ({ id }));
    },
  };
  const writer = openWriter(log.events, () => Date.parse(now));
  await sendDue(
    { events: log.events, writer, mayAct: () => undefined, due, ...more },
    now,
    new AbortController().signal,
  );
}

async function scheduled(log: TestLog, sendAt = NOW): Promise<Bought & { readonly stream: string }> {
  const bought = await log.buy([{ user_id: 'bea' }, { phone_id: 'p' }, {}], { at: '2098-01-01T00:00:00.000Z', sendAt });
  return { ...bought, stream: transactionStream(bought.transactionId) };
}

const charged = (log: TestLog, { stream }: { readonly stream: string }): Promise<void> =>
  log.append(stream, 'PaymentCharged', { amount: 750, provider: 'p', charge_id: 'c' });

test('releases the gifts of each named receiver, once, between the start and the end', async ({ log }) => {
  const bought = await scheduled(log);
  await charged(log, bought);
  await send(log, [bought]);
  await send(log, [bought]);
  assert.equal((await log.types(bought.stream)).slice(2), ['SendStarted', 'SendFinished']);
  const [bea = '', phone = '', shared = ''] = bought.giftIds;
  for (const gift of [bea, phone]) assert.equal(await log.types(giftStream(gift)), ['GiftIssued', 'GiftReleased']);
  assert.equal(await log.types(giftStream(shared)), [], 'it has no receiver');
  const [, paid, started, finished] = await log.events.read(bought.stream);
  const released = (await log.events.read(giftStream(bea)))[1];
  assert.equal(
    [started, released, finished].map((event) => [event?.metadata.commandId, event?.metadata.causationId]),
    [
      [`send-${bought.transactionId}`, paid?.id],
      [`release-${bought.transactionId}`, started?.id],
      [`sent-${bought.transactionId}`, started?.id],
    ],
  );
  assert.equal([started?.data, started?.at], [{ send_at: NOW }, NOW]);
});

test('sends nothing that is not paid for, not yet due, not scheduled or not there', async ({ log }) => {
  const [pending, declined, later] = [
    await scheduled(log),
    await scheduled(log),
    await scheduled(log, '2098-06-01T09:00:00.001Z'),
  ];
  await log.append(declined.stream, 'PaymentDeclined', { provider: 'p', code: 'no' });
  await charged(log, later);
  const plain = await log.buy([{ user_id: 'bea' }]);
  await charged(log, { stream: transactionStream(plain.transactionId) });
  await send(log, [pending, declined, later, plain, { transactionId: 'unknown' }]);
  assert.equal(await log.all('SendStarted', 'SendFinished', 'GiftReleased'), []);
  await charged(log, pending);
  await send(log, [pending]);
  assert.is((await log.all('GiftReleased')).length, 2);
});

test('does nothing once another process has the work, at any point', async ({ log }) => {
  const bought = await scheduled(log);
  await charged(log, bought);
  const held = (times: number): (() => void) => {
    let asked = 0;
    return () => {
      if (++asked > times) throw new NotOursError('passed on');
    };
  };
  const appended: string[][] = [];
  for (const times of [0, 1]) {
    await rejects(send(log, [bought], { mayAct: held(times) }), NotOursError, /passed on/);
    appended.push((await log.types(bought.stream)).slice(2));
  }
  assert.equal([appended, await log.all('GiftReleased')], [[[], ['SendStarted']], []]);
  // Two gifts are released; the end is still to be recorded.
  await rejects(send(log, [bought], { mayAct: held(3) }), NotOursError, /passed on/);
  assert.equal(
    [(await log.types(bought.stream)).slice(2), (await log.all('GiftReleased')).length],
    [['SendStarted'], 2],
  );
  await send(log, [bought], { now: '2098-06-01T10:00:00.000Z' });
  assert.equal((await log.types(bought.stream)).slice(2), ['SendStarted', 'SendFinished']);
  assert.is((await log.all('GiftReleased')).length, 2);
});

test('goes on with a sending that another process has started', async ({ log }) => {
  const bought = await scheduled(log);
  await charged(log, bought);
  await log.append(bought.stream, 'SendStarted', { send_at: NOW });
  await send(log, [bought]);
  assert.equal((await log.types(bought.stream)).slice(2), ['SendStarted', 'SendFinished']);
  const started = (await log.events.read(bought.stream))[2];
  assert.equal(
    (await log.all('GiftReleased', 'SendFinished')).map(({ metadata }) => metadata.causationId),
    [started?.id, started?.id, started?.id],
  );
});

test.run();
