import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { appendsTo } from '../../../src/adapters/eventstoredb/appends.js';
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/eventStore.js';
import { appendGroups } from '../../../src/adapters/eventstoredb/eventStore.js';
import type { Reads } from '../../../src/adapters/eventstoredb/reads.js';
import { encode } from '../../../src/adapters/eventstoredb/records.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { LogSealedError } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { eventStoreSealContract } from '../../contract/eventStoreSeal.js';
import type { SealFixture } from '../../contract/eventStoreSeal.js';
import type { EventStoreDouble } from '../../support/engines/eventStoreDouble.js';
import { startEventStoreDouble } from '../../support/engines/eventStoreDouble.js';
import { event, failureOf } from '../../support/engines/eventStoreEvents.js';
import { openTestEngines } from '../../support/engines/engines.js';

const TIMEOUT_MS = 200;
/** Long enough that no append is given up on a busy machine: its outcome would stay unknown. Sealing takes as long. */
const PATIENT_MS = 2_000;

async function twoOnDouble(
  timeoutMs = TIMEOUT_MS,
): Promise<SealFixture & { double: EventStoreDouble; open: () => Promise<EventStore> }> {
  const double = await startEventStoreDouble();
  const stores: EventStore[] = [];
  const open = async (): Promise<EventStore> => {
    const store = await openEventStoreDb({ url: double.url, timeoutMs });
    stores.push(store);
    return store;
  };
  return {
    double,
    open,
    store: await open(),
    other: await open(),
    async destroy() {
      double.way.thaw();
      for (const store of stores) await store.close();
      await double.close();
    },
  };
}

/** On a server of its own. */
async function twoOnServer(): Promise<SealFixture> {
  const engines = await openTestEngines(new Set(['eventstoredb']));
  const url = engines.settings['EVENTSTORE_URL']!;
  const stores = await Promise.all([0, 1].map(async () => openEventStoreDb({ url })));
  return {
    store: stores[0]!,
    other: stores[1]!,
    async destroy() {
      for (const store of stores) await store.close();
      await engines.close();
    },
  };
}

eventStoreSealContract('EventStoreDB, double', async () => twoOnDouble(PATIENT_MS));

const test = suite('EventStoreDB: sealing');

if ((process.env['TEST_EVENTSTORE_START'] ?? '') === '') {
  // A server that others use too would take no more events from anybody.
  console.log(
    'skipped: EventStore, sealed: EventStoreDB, server: sealing is for ever, and TEST_EVENTSTORE_START, which starts one for this alone, is not set',
  );
  test.skip('EventStore, sealed: EventStoreDB, server', () => undefined);
} else eventStoreSealContract('EventStoreDB, server', twoOnServer);

test('finds a log sealed that was sealed before, also after a restart', async () => {
  const { double, store, open, destroy } = await twoOnDouble();
  await store.append('a', [event()], 'none');
  await store.seal();
  await double.restart();
  const again = await open();
  assert.is(await again.sealed(), true);
  assert.instance(await failureOf(again.append('a', [event()], 0)), LogSealedError);
  await destroy();
});

test('sends nothing after the seal that waited, searched ids, or was part of a large group', async () => {
  const sent: string[] = [];
  let isSealed = false;
  const target = {
    appender: {
      async send(stream: string) {
        sent.push(stream);
        // By another process, before the answer.
        await sleep(1);
        isSealed = true;
        return { kind: 'stored', revision: 0, commit: '1' } as const;
      },
    },
    reads: {
      async revisionOf() {
        isSealed = true;
        return undefined;
      },
    } as unknown as Reads,
  };
  const append = appendsTo(target, async () => {
    if (isSealed) throw new LogSealedError();
  });
  const one = encode(event());
  assert.instance(await failureOf(append('any', [one], 'any')), LogSealedError);
  isSealed = false;
  const [, second] = await Promise.all([append('twice', [one], 'none'), failureOf(append('twice', [one], 'none'))]);
  assert.instance(second, LogSealedError);
  isSealed = false;
  const many = Array.from({ length: 600 }, () => ({ stream: 'many', events: [event()], expected: 'none' as const }));
  assert.instance(await failureOf(appendGroups(many, ({ events }) => events.map(encode), append)), LogSealedError);
  assert.equal([sent[0], new Set(sent.slice(1)), sent.length], ['twice', new Set(['many']), 257]);
});

test('appends nothing without a look for the seal, which may be a moment old', async () => {
  const { double, store, destroy } = await twoOnDouble();
  await store.append('a', [event()], 'none');
  await sleep(600);
  // Looked for again, without delaying the append.
  await store.append('a', [event()], 0);
  await sleep(1_100);
  double.switches.refuse = { code: 14, details: 'away' };
  const error = (await failureOf(store.append('a', [event()], 1))) as UnavailableError;
  assert.instance(error, UnavailableError);
  assert.is(error.outcomeUnknown, false);
  double.switches.refuse = undefined;
  assert.is((await store.append('a', [event()], 1)).revision, 2);
  await destroy();
});

test.run();
