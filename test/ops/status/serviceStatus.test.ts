import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';
import { giftsProjection } from '../../../src/projections/gifts.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { PROCESS_CHECKPOINT, type ProcessCheckpoint } from '../../../src/processors/runner/checkpoint.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import type { FailingPart, ProcessManagerStatus, ReadModelStatus } from '../../../src/ops/status/status.js';
import { failingParts, reportFailing } from '../../../src/ops/status/failingParts.js';
import type { Projection } from '../../../src/runtime/readmodels/projection.js';
import { recordQuarantine } from '../../../src/runtime/readmodels/quarantine.js';
import { openServiceStatus } from '../../../src/ops/status/serviceStatus.js';
import { type TestInstallation, openInstallation, phone } from '../../support/service/installation.js';
import { eventOf } from '../../support/service/testLog.js';
import { buy, installed, settled, silent } from '../../support/fixtures/projecting.js';
import type { FollowerHealth } from '../../../src/runtime/supervision/followers.js';
import { until } from '../../support/assertions/until.js';

const test = suite('status');

test(
  'who has died since the last look does not look alive',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const projector = await project();
    await settled(projector, events);
    const look = openServiceStatus({ events, store, projections: [giftsProjection] });
    const holder = async (): Promise<string | null | undefined> =>
      (await look.look()).find((one): one is ReadModelStatus => one.kind === 'projection')?.holder;
    assert.is(await holder(), 'projector 1');
    const kept = (await store.records.get<{ holder: string; fence: number }>('lease/projector'))?.value;
    await projector.close();
    // Renewed once more since the look, and then no more: its process was killed.
    await store.records.put('lease/projector', kept);
    await sleep(3_000);
    assert.is(await holder(), null);
    await look.close();
  }),
);

test(
  'a part that fails is shown to every process until it works again',
  installed(async ({ events, store, openStore }) => {
    const elsewhere = await openStore();
    let health: FollowerHealth = {
      part: 'charge outcomes',
      failing: true,
      since: '2026-03-01T10:00:00.000Z',
      failures: 5,
      why: 'RangeError: see the log of that process',
    };
    const own = { holder: 'a', health: () => [health, { part: 'catalogue', failing: false, failures: 0 }] };
    const reporting = reportFailing(own, store.records, silent);
    const shown: FailingPart = {
      kind: 'part',
      name: 'charge outcomes',
      process: 'a',
      since: '2026-03-01T10:00:00.000Z',
      failures: 5,
      why: 'RangeError: see the log of that process',
    };
    await until(async () => (await failingParts(elsewhere.records)).length > 0, 'the report');
    assert.equal(await failingParts(elsewhere.records), [shown]);
    assert.equal(await failingParts(store.records, own), [shown], 'the process itself shows it once');
    const look = openServiceStatus({ events, store: elsewhere, projections: [] });
    assert.equal(
      (await look.look()).filter(({ kind }) => kind === 'part'),
      [shown],
    );
    await look.close();
    health = { part: 'charge outcomes', failing: false, failures: 0 };
    await until(async () => (await failingParts(elsewhere.records)).length === 0, 'the report to go');
    await reporting.close();
  }),
);

test(
  'where nothing of the log could be looked at in time, it is not said that nothing waits',
  installed(async ({ events, store }) => {
    await buy(events);
    const look = openServiceStatus({ events, store, projections: [] });
    enterWorld({ ...REAL_WORLD, after: (_ms, run) => (run(), REAL_WORLD.after(0, () => undefined)) });
    try {
      assert.equal(
        (await look.look()).map((one) => one.kind !== 'part' && one.lag_exact),
        [false, false, false, false],
      );
    } finally {
      enterWorld(REAL_WORLD);
      await look.close();
    }
  }),
);

test(
  'counts documents that are out of service while readers use the build of the last release',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const projector = await project();
    await settled(projector, events);
    await projector.close();
    const next = { ...giftsProjection, version: giftsProjection.version + 1, previous: [giftsProjection] };
    for (const { version, documentId } of [
      { version: giftsProjection.version, documentId: 'g1' },
      { version: giftsProjection.version, documentId: 'g2' },
      { version: next.version, documentId: 'g2' },
    ])
      await recordQuarantine(store.records, { name: 'gifts', version }, { documentId, position: '1', cause: 'a test' });
    const look = openServiceStatus({ events, store, projections: [next as unknown as Projection] });
    const [found] = (await look.look()).filter((one): one is ReadModelStatus => one.kind === 'projection');
    await look.close();
    assert.equal([found?.in_use, found?.quarantined], [false, 2]);
  }),
);

test(
  'names a stored position that is not in the log, counts it as absent, and shows the rest',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const projector = await project();
    await settled(projector, events);
    await projector.close();
    const end = await events.end();
    for (const position of ['0000000000999999', '18446744073709551615', 'x'.repeat(100)]) {
      const shown = position.length > 40 ? `${position.slice(0, 40)}…` : position;
      await store.write([
        {
          collection: giftsProjection,
          documents: [],
          checkpoint: { projection: `gifts@${giftsProjection.version}`, position },
        },
      ]);
      await store.records.put(PROCESS_CHECKPOINT, { logId: events.logId, types: '', position });
      const look = openServiceStatus({
        events,
        store,
        projections: [giftsProjection, transactionsProjection],
      });
      const found = await look.look();
      await look.close();
      const by = new Map(
        found
          .flatMap((one) => (one.kind === 'part' ? [] : [one]))
          .map((one) => [one.name, [one.position, one.invalid_position, one.lag_events]]),
      );
      assert.equal(by.get('gifts'), [null, shown, 1]);
      assert.equal(by.get('transactions'), [end, null, 0]);
      // The purchase is open: nothing was ever done for it.
      assert.equal(by.get('purchase'), [null, shown, 1]);
      assert.is(found.length, 6);
    }
  }),
);

/** How the process managers stand, by name, with this event as their checkpoint: as it is while older work is open. */
async function statusAt(
  installation: TestInstallation,
  event: RecordedEvent | undefined,
): Promise<Map<string, ProcessManagerStatus>> {
  const saved = (await installation.reads.records.get<ProcessCheckpoint>(PROCESS_CHECKPOINT))!.value;
  await installation.reads.records.put(PROCESS_CHECKPOINT, {
    ...saved,
    position: event!.position,
  } satisfies ProcessCheckpoint);
  const look = openServiceStatus({ events: installation.events, store: installation.reads, projections: [] });
  const found = await look.look();
  await look.close();
  return new Map(found.flatMap((one) => (one.kind === 'process' ? [[one.name, one] as const] : [])));
}

test('a purchase that is done is not in flight where the checkpoint lies within it', async () => {
  const installation = await openInstallation();
  try {
    const worker = await installation.work();
    const processors = installation.process();
    const { transactionId } = await installation.buy([phone(1), {}]);
    await installation.until(
      async () => processors.status().open === 0 && (await installation.all('NotificationSent')).length === 1,
    );
    await worker.close();
    const { transactionId: waiting } = await installation.buy([phone(2)]);
    await installation.until(async () =>
      (await installation.types(`transaction-${waiting}`)).includes('ChargeStarted'),
    );
    await processors.close();
    // The checkpoint that is stored while older work is open lies after this one's first event.
    const [, started] = await installation.events.read(`transaction-${transactionId}`);
    const status = await statusAt(installation, started);
    const [purchase, notification] = [status.get('purchase'), status.get('notification')];
    assert.equal([purchase?.kind, purchase?.in_flight, notification?.in_flight], ['process', 1, 0]);
    const [begun] = await installation.events.read(`transaction-${waiting}`);
    assert.ok(
      purchase!.position! >= (await installation.all('NotificationSent')).at(-1)!.position &&
        purchase!.position! < begun!.position,
      'what is open holds back, and nothing else',
    );
    assert.is(purchase!.lag_events, 2);
  } finally {
    await installation.close();
  }
});

test('a resend that is done is not in flight where older work holds the checkpoint back', async () => {
  const installation = await openInstallation();
  try {
    await installation.work();
    const processors = installation.process();
    const {
      transactionId,
      giftIds: [giftId = ''],
    } = await installation.buy([phone(1)]);
    await installation.until(
      async () => processors.status().open === 0 && (await installation.all('NotificationSent')).length === 1,
    );
    const requested = { transaction_id: transactionId, attempt: 2, gift_revision: 0, reason: 'did not arrive' };
    await installation.events.append(
      `notification-${giftId}`,
      [{ ...eventOf('NotificationRequested', requested), id: randomUUID() }],
      1,
    );
    await installation.until(
      async () => processors.status().open === 0 && (await installation.all('NotificationSent')).length === 2,
    );
    await processors.close();
    const [bought] = await installation.events.read(`transaction-${transactionId}`);
    const notification = (await statusAt(installation, bought)).get('notification');
    assert.equal([notification?.in_flight, notification?.lag_events], [0, 0]);
  } finally {
    await installation.close();
  }
});

test('a lost dispute is not in flight where older work holds the checkpoint back', async () => {
  const installation = await openInstallation();
  try {
    await installation.work();
    const processors = installation.process();
    const { transactionId } = await installation.buy([phone(1)]);
    const done = async (count: number): Promise<void> =>
      installation.until(
        async () =>
          processors.status().open === 0 &&
          (await installation.all('NotificationSent', 'DisputeSettled')).length === count,
      );
    await done(1);
    const dispute = { provider: 'simulated', dispute_id: 'dp_1' };
    await installation.append(`transaction-${transactionId}`, 'DisputeOpened', {
      ...dispute,
      amount: 250,
      reason: 'fraudulent',
    });
    await done(2);
    await installation.append(`transaction-${transactionId}`, 'DisputeClosed', { ...dispute, outcome: 'lost' });
    const [closed] = await installation.all('DisputeClosed');
    await installation.until(
      async () => processors.status().open === 0 && processors.status().position === closed?.position,
    );
    await processors.close();
    const [bought] = await installation.events.read(`transaction-${transactionId}`);
    const disputes = (await statusAt(installation, bought)).get('dispute');
    assert.equal([disputes?.in_flight, disputes?.lag_events], [0, 0]);
  } finally {
    await installation.close();
  }
});

test.run();
