/**
 * Purchases by the real providers' libraries while processes are killed at every single step: a loop over every append
 * and every request on the bus of the process managers, over every record that a worker writes, and over every answer
 * that it gives; before and after each. Another process of the kind goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Records } from '../../src/ports/readStore.js';
import { chances, faultyBus, seeds } from '../support/faults/faultyBus.js';
import type { TestInstallation } from '../support/service/installation.js';
import type { Bought } from '../support/service/testLog.js';
import { installationWithProvidersSuite } from '../support/service/installationSuite.js';
import { everyKillPoint, partOf } from '../support/faults/killPoints.js';
import { buyForThree, checkLedgers, checkParked, isSettled } from '../support/providers/ledgers.js';
import { crashable } from '../support/faults/crashable.js';
import { faultsByChance, type RealProviders } from '../support/providers/realProviders.js';

const test = installationWithProvidersSuite('killed at every step');

const LEASE_MS = 90;
const RETRY_POLICY = { answerMs: 500 };
const DECLINED = 'pm_card_chargeDeclinedInsufficientFunds';

/** One that is charged and one that is declined. */
async function buyTwo(installation: TestInstallation, at: number): Promise<[Bought, Bought]> {
  return [await buyForThree(installation, at * 2), await buyForThree(installation, at * 2 + 1, DECLINED)];
}
const bothSettled = async (installation: TestInstallation, bought: readonly Bought[]): Promise<boolean> =>
  (await Promise.all(bought.map((one) => isSettled(installation, one)))).every(Boolean);

async function check(
  installation: TestInstallation,
  providers: RealProviders,
  [good, bad]: readonly [Bought, Bought],
  at: number,
  where: string,
): Promise<void> {
  await checkLedgers(installation, providers, good, at * 2, false, where);
  await checkLedgers(installation, providers, bad, at * 2 + 1, true, where);
}

for (const moment of ['before', 'after'] as const) {
  test(`process managers that die ${moment} any one append or request`, async ({ installation, providers }) => {
    await installation.work(await providers.workers(installation.deps.records));
    const retryPolicy = { ...installation.deps.retryPolicy, ...RETRY_POLICY };
    const deaths = await everyKillPoint(installation, async (part, at) => {
      const doomed = crashable(part.deps, at, moment);
      const first = part.process({ ...doomed.deps, retryPolicy, leaseMs: LEASE_MS });
      const bought = await buyTwo(part, at);
      await installation.until(async () => doomed.dead || (await bothSettled(installation, bought)));
      const died = doomed.dead;
      const second = part.process({ retryPolicy, leaseMs: LEASE_MS });
      await installation.until(() => bothSettled(installation, bought));
      await Promise.all([first.close(), second.close()]);
      await check(installation, providers, bought, at, `died ${moment} effect ${at}`);
      return died;
    });
    // Two claims, charges and answers; three gifts; two claims, messages and answers.
    assert.ok(deaths >= 15, `two purchases have ${deaths} effects`);
    assert.equal(await installation.all('WorkParked'), []);
  });

  test(`a worker that dies ${moment} any one record or answer`, async ({ installation, providers }) => {
    let parts = 0;
    /**
     * @returns the steps of a worker, by name; it dies at the one that is `fatal`, where it comes to that: what takes
     * too long is looked up instead
     */
    const dieAt = async (fatal?: string): Promise<{ readonly steps: readonly string[]; readonly died: boolean }> => {
      const at = ++parts;
      const part = partOf(installation, `part-${at}`, { ownWorkers: true });
      const worker = await dyingWorker(part, installation.deps.records, providers, fatal, moment);
      part.process({ retryPolicy: { ...installation.deps.retryPolicy, ...RETRY_POLICY }, leaseMs: 5_000 });
      const bought = await buyTwo(part, at);
      worker.begin(bought);
      await installation.until(async () => worker.dead || (await bothSettled(installation, bought)));
      const where = `worker died ${moment} ${fatal}`;
      const died = worker.dead;
      // Nothing reaches it any more; it is not waited for.
      void worker.close();
      await part.work(await providers.workers(installation.deps.records));
      await installation.until(() => bothSettled(installation, bought));
      await check(installation, providers, bought, at, where);
      const parked = (await installation.all('WorkParked')).some(
        ({ data }) => (data as { entity: string }).entity === bought[0].giftIds[0],
      );
      if (died && moment === 'after' && fatal === 'put send/good.0')
        assert.ok(parked, 'claimed, and nobody knows what came of it');
      return { steps: worker.steps, died };
    };
    const sure = [
      'answer charge good',
      'answer charge bad',
      'put send/good.0',
      'put send/good.0 again',
      'answer send good.0',
      'put send/good.1',
      'put send/good.1 again',
      'answer send good.1',
    ];
    const { steps } = await dieAt();
    await Promise.all(
      [...new Set([...sure, ...steps.filter((step) => !step.includes('lookUp'))])].map(async (step) => {
        for (let tries = 1; !(await dieAt(step)).died; tries++)
          assert.ok(tries < 10, `no worker comes to ${step}; one did: ${steps.join(', ')}`);
      }),
    );
    // Only who is killed between the claim of an SMS and the request that sends it leaves behind what nobody can know.
    for (const { data } of await installation.all('WorkParked')) {
      const { entity, cause } = data as { entity: string; cause: string };
      assert.match(cause, 'nobody knows whether the receiver was notified');
      const claim = await installation.deps.records.get<{ reply?: object }>(`send/${entity}`);
      assert.ok(claim !== undefined && claim.value.reply === undefined, 'claimed, and no word since');
      assert.is(providers.twilio.sent(installation.deps.launchUrl(entity)), 0);
    }
  });
}

/** A worker that dies. */
interface DyingWorker {
  readonly dead: boolean;
  /** What it has done, by name. */
  readonly steps: readonly string[];
  /** Tells it what it works for; it waits for that. */
  begin(bought: readonly [Bought, Bought]): void;
  close(): Promise<void>;
}

/**
 * A worker until the step of that name, a record that it writes or an answer: from then on it is dead, and nothing it
 * does has any effect.
 */
async function dyingWorker(
  part: TestInstallation,
  records: Records,
  providers: RealProviders,
  fatal: string | undefined,
  moment: 'before' | 'after',
): Promise<DyingWorker> {
  const steps: string[] = [];
  let dead = false;
  let begin: (bought: readonly [Bought, Bought]) => void = () => undefined;
  const known = new Promise<readonly [Bought, Bought]>((resolve) => {
    begin = resolve;
  });
  const gone = (): never => {
    throw new Error('this worker is dead');
  };
  /** Names what was bought, and leaves hashes out. */
  const named = async (text: string): Promise<string> => {
    const [good, bad] = await known;
    let name = text;
    for (const [label, { transactionId, giftIds }] of [
      ['good', good],
      ['bad', bad],
    ] as const) {
      name = name.replace(transactionId, label);
      for (const [index, giftId] of giftIds.entries()) name = name.replace(giftId, `${label}.${index}`);
    }
    return name.replace(/[\w-]{20,}/, '…');
  };
  let opened = false;
  const step = async <T>(text: string, run: () => Promise<T>): Promise<T> => {
    if (!opened) return run();
    let name = await named(text);
    while (steps.includes(name)) name += ' again';
    if (dead) gone();
    steps.push(name);
    if (name === fatal && moment === 'before') dead = true;
    if (dead) gone();
    const result = await run();
    if (name === fatal) dead = true;
    return dead ? gone() : result;
  };
  const crashableRecords: Records = {
    get: async (...args) => (dead ? gone() : records.get(...args)),
    list: async (...args) => (dead ? gone() : records.list(...args)),
    put: async (key, ...rest) => step(`put ${key}`, () => records.put(key, ...rest)),
    delete: async (key, ...rest) => step(`delete ${key}`, () => records.delete(key, ...rest)),
  };
  /** What a dead process was asked is never answered. */
  const answers =
    <A extends { readonly transaction_id?: string; readonly gift_id?: string }, R>(
      name: string,
      answer: (requested: A) => Promise<R>,
    ) =>
    async (requested: A): Promise<R> => {
      try {
        const reply = await answer(requested);
        return await step(`answer ${name} ${requested.gift_id ?? requested.transaction_id}`, async () => reply);
      } catch (error) {
        if (dead) return new Promise<R>(() => undefined);
        throw error;
      }
    };
  const { payments, notifications } = await providers.workers(crashableRecords);
  opened = true;
  const worker = await part.work({
    payments: {
      ...payments,
      charge: answers('charge', (requested) => payments.charge(requested)),
      lookUp: answers('lookUp', (requested) => payments.lookUp(requested)),
    },
    notifications: {
      send: answers('send', (requested) => notifications.send(requested)),
      lookUp: answers('lookUp', (requested) => notifications.lookUp(requested)),
    },
  });
  return {
    steps,
    begin,
    close: () => worker.close(),
    get dead() {
      return dead;
    },
  };
}

for (const seed of seeds(11, 12)) {
  test(`does everything once under faults of bus, providers and processes (seed ${seed})`, async ({
    installation,
    providers,
  }) => {
    const chance = chances(seed);
    providers.fault(faultsByChance(chances(seed + 1)));
    await installation.work(await providers.workers(installation.deps.records));
    await installation.work(await providers.workers(installation.deps.records));
    const retryPolicy = { ...installation.deps.retryPolicy, ...RETRY_POLICY };
    const doomed = crashable(installation.deps, 10 + Math.floor(chance() * 60), chance() < 0.5 ? 'before' : 'after');
    installation.process({ ...doomed.deps, bus: faultyBus(doomed.deps.bus, seed + 2), retryPolicy, leaseMs: 300 });
    installation.process({ bus: faultyBus(installation.bus, seed + 3), retryPolicy, leaseMs: 300 });
    const isDeclined = (n: number): boolean => n % 4 === 0;
    const bought: Bought[] = [];
    for (let n = 0; n < 16; n++) {
      bought.push(await buyForThree(installation, n, isDeclined(n) ? DECLINED : 'pm_card_visa'));
      await sleep(chance() * 5);
    }
    await installation.until(() => bothSettled(installation, bought));
    // What the bus delays is still to come.
    await sleep(100);
    for (const [n, one] of bought.entries())
      await checkLedgers(installation, providers, one, n, isDeclined(n), `purchase ${n}`);
    assert.is(providers.stripe.intents.length, bought.length);
    await checkParked(installation, providers);
  });
}

test.run();
