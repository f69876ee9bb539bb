import * as assert from 'uvu/assert';
import type { GiftsPurchased } from '../../../src/domain/purchase/events.js';
import { charge, type ChargeDeps } from '../../../src/processors/purchase/chargeStep.js';
import type { PurchaseWork } from '../../../src/processors/purchase/state.js';
import { NotYetError, RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import type { Bus } from '../../../src/ports/bus.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { causeOf } from '../../../src/processors/runner/cause.js';
import { walletPayments } from '../../../src/processors/purchase/walletPayments.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { hoursAgo, logSuite, type TestLog } from '../../support/service/testLog.js';
import { rejects } from '../../support/assertions/rejects.js';

const test = logSuite('charging a purchase that others may have moved on');

const CARD = { payment_reference: 'pm_card_visa', kind: 'card', prepaid: false };
const CHARGED = { outcome: 'charged', provider: 'p', charge_id: 'ch_1', simulated: false };
const minutesFromNow = (minutes: number): string => hoursAgo(-minutes / 60);
const waitsUntil = (until: string): object => ({ provider: 'p', payment_id: 'pi_1', action: 'redirect', until });

const paymentMethod: ChargeDeps['paymentMethod'] = async () => ({ kind: 'card', prepaid: false, customer: null });

interface Charging {
  readonly stream: string;
  /** What was asked for on the bus: subjects and messages. */
  readonly requested: (readonly [subject: string, message: object])[];
  /** Charges as the feed asks for it that has seen nothing but the purchase; `fresh` as in `charge`. */
  charge(fresh: boolean, more?: Partial<ChargeDeps>): Promise<void>;
}

/** A purchase. `answer`: what each request on the bus brings. */
async function bought(
  log: TestLog,
  {
    price = 250,
    at,
    answer = async () => CHARGED,
  }: { price?: number; at?: string; answer?: () => Promise<object> } = {},
): Promise<Charging> {
  const { transactionId } = await log.buy([{}], { price, ...(at === undefined ? {} : { at }) });
  const stream = `transaction-${transactionId}`;
  const [first] = await log.events.read(stream);
  if (first === undefined) throw new Error('nothing was bought');
  const requested: Charging['requested'] = [];
  const writer = openWriter(log.events, Date.now);
  const deps: ChargeDeps = {
    events: log.events,
    bus: {
      request: async (subject: string, message: object) => {
        requested.push([subject, message]);
        return answer();
      },
    } as unknown as Bus,
    writer,
    wallets: walletPayments(log.events, writer),
    paymentMethod,
    now: Date.now,
    retryPolicy: RETRY_POLICY,
    mayAct: () => undefined,
  };
  const work: PurchaseWork = {
    stage: 'bought',
    purchase: first.data as GiftsPurchased['data'],
    purchasedAt: first.at,
    last: causeOf(first),
    toIssue: 1,
  };
  return { stream, requested, charge: (fresh, more) => charge({ ...deps, ...more }, work, fresh) };
}

const subjects = ({ requested }: Charging): string[] => requested.map(([subject]) => subject);

for (const [end, data] of [
  ['PaymentCharged', { amount: 250, provider: 'p', charge_id: 'ch_1' }],
  ['PaymentDeclined', { provider: 'p', code: 'lost_card' }],
] as const) {
  test(`asks for no money once ${end} is recorded, at any try`, async ({ log }) => {
    const purchase = await bought(log);
    await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD });
    await log.append(purchase.stream, end, data);
    for (const fresh of [true, false]) await purchase.charge(fresh);
    assert.equal(
      [purchase.requested, await log.types(purchase.stream)],
      [[], ['GiftsPurchased', 'ChargeStarted', end]],
    );
  });
}

test('asks no worker once another process has the work', async ({ log }) => {
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  const [unasked, waiting] = [await bought(log), await bought(log)];
  await log.append(waiting.stream, 'ChargeStarted', { amount: 250, ...CARD });
  await log.append(waiting.stream, 'PaymentAuthenticationRequired', waitsUntil(hoursAgo(1)));
  for (const purchase of [unasked, waiting]) {
    await rejects(purchase.charge(false, { mayAct }), NotOursError, /passed on/);
    assert.equal(purchase.requested, []);
  }
});

test('asks no worker once the lease has been lost while the payment method was read', async ({ log }) => {
  const purchase = await bought(log);
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD });
  let held = true;
  const mayAct = (): void => {
    if (!held) throw new NotOursError('passed on');
  };
  const lookUp: ChargeDeps['paymentMethod'] = async (reference) => {
    const method = await paymentMethod(reference);
    held = false;
    return method;
  };
  await rejects(purchase.charge(false, { mayAct, paymentMethod: lookUp }), NotOursError, /passed on/);
  assert.equal(purchase.requested, []);
});

test('records the answer once though another event is appended meanwhile', async ({ log }) => {
  const purchase: Charging = await bought(log, {
    answer: async () => {
      await log.append(purchase.stream, 'DisputeOpened', {
        provider: 'p',
        dispute_id: 'dp_1',
        amount: 250,
        reason: 'fraudulent',
      });
      return CHARGED;
    },
  });
  await purchase.charge(true);
  assert.equal(
    [subjects(purchase), await log.types(purchase.stream)],
    [[SUBJECTS.charge], ['GiftsPurchased', 'ChargeStarted', 'DisputeOpened', 'PaymentCharged']],
  );
});

test("sends the time of the first request, from which the provider's key counts", async ({ log }) => {
  const purchase = await bought(log, { at: hoursAgo(3) });
  const started_at = hoursAgo(2);
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, started_at);
  await purchase.charge(false);
  assert.equal(
    purchase.requested.map(([subject, message]) => [subject, (message as { started_at: string }).started_at]),
    [[SUBJECTS.charge, started_at]],
  );
});

test('asks under a clock slightly ahead, and waits under one far ahead', async ({ log }) => {
  const [moment, far] = [await bought(log), await bought(log, { answer: async () => ({ outcome: 'unknown' }) })];
  await log.append(
    moment.stream,
    'ChargeStarted',
    { amount: 250, ...CARD },
    new Date(Date.now() + 3_000).toISOString(),
  );
  await log.append(far.stream, 'ChargeStarted', { amount: 250, ...CARD }, hoursAgo(-3));
  await moment.charge(false);
  assert.equal(subjects(moment), [SUBJECTS.charge]);
  const waits = await rejects(far.charge(false), NotYetError, /not been asked for yet/);
  assert.equal([waits.mayNeverCome, subjects(far)], [true, [SUBJECTS.lookUpCharge]]);
});

test('never looks a free purchase up', async ({ log }) => {
  for (const [purchasedAt, startedAt] of [
    [hoursAgo(50), hoursAgo(49)],
    [hoursAgo(50), hoursAgo(1)],
    [hoursAgo(0), hoursAgo(-26)],
  ]) {
    const purchase = await bought(log, {
      price: 0,
      ...(purchasedAt === undefined ? {} : { at: purchasedAt }),
    });
    await log.append(purchase.stream, 'ChargeStarted', { amount: 0, ...CARD }, startedAt);
    await purchase.charge(false);
    assert.equal(
      [subjects(purchase), (await log.types(purchase.stream)).at(-1)],
      [[SUBJECTS.charge], 'PaymentCharged'],
    );
  }
});

test('waits for a buyer until the end of their time, and looks then', async ({ log }) => {
  const purchase = await bought(log, { answer: async () => ({ outcome: 'unknown' }) });
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD }, minutesFromNow(-14.5));
  await log.append(
    purchase.stream,
    'PaymentAuthenticationRequired',
    waitsUntil(minutesFromNow(0.5)),
    minutesFromNow(-14.5),
  );
  const waits = await rejects(purchase.charge(false), NotYetError, /not proved/);
  assert.ok(waits.waitMs > 20_000 && waits.waitMs <= 30_000, `${waits.waitMs} ms`);
  assert.equal(purchase.requested, [
    [SUBJECTS.lookUpCharge, { transaction_id: purchase.stream.slice('transaction-'.length), payment_id: 'pi_1' }],
  ]);
});

test('cancels the payment of a buyer who failed before it is declined', async ({ log }) => {
  const purchase = await bought(log, {
    answer: async () => ({ outcome: 'declined', provider: 'p', code: 'card_declined', simulated: false }),
  });
  await log.append(purchase.stream, 'ChargeStarted', { amount: 250, ...CARD });
  await log.append(purchase.stream, 'PaymentAuthenticationRequired', waitsUntil(minutesFromNow(10)));
  await log.append(purchase.stream, 'PaymentAuthenticationFailed', {
    provider: 'p',
    payment_id: 'pi_1',
    code: 'card_declined',
  });
  await purchase.charge(false);
  assert.equal(
    purchase.requested.map(([subject, message]) => [subject, (message as { code: string }).code]),
    [[SUBJECTS.cancelCharge, 'card_declined']],
  );
  assert.is((await log.types(purchase.stream)).at(-1), 'PaymentDeclined');
});

test.run();
