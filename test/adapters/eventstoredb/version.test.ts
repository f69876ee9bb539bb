/** Which servers are refused, by version and by log, when the process starts and when one is replaced while it runs. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/eventStore.js';
import { UnsafeServerError } from '../../../src/adapters/eventstoredb/failures.js';
import { LOG_STREAM } from '../../../src/adapters/eventstoredb/filters.js';
import { refuseUnsafe } from '../../../src/adapters/eventstoredb/version.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { EventStoreDouble } from '../../support/engines/eventStoreDouble.js';
import { startEventStoreDouble } from '../../support/engines/eventStoreDouble.js';
import { event, failureOf, readUntil, within } from '../../support/engines/eventStoreEvents.js';
import { until } from '../../support/assertions/until.js';

const TIMEOUT_MS = 400;
/** Where nothing is to wait for its end, in ms. */
const LONG_MS = 20_000;

/** Refused versions, each with the one to take. */
const REFUSED = [
  ['22.10.1', 'EventStoreDB', '23.10'],
  ['23.6.0', 'EventStoreDB', '23.10'],
  ['24.2.0', 'EventStoreDB', '24.10.5'],
  ['24.6.0', 'EventStoreDB', '24.10.5'],
  ['24.10.0', 'EventStoreDB', '24.10.5'],
  ['24.10.4', 'EventStoreDB', '24.10.5'],
  ['24.10.4-rc1', 'EventStoreDB', '24.10.5'],
  ['25.0.0', 'KurrentDB', '25.0.1'],
] as const;
const USED = ['23.10.0', '23.10.8', '24.10.5', '24.10.14', '25.0.1', '25.1.4', '26.0.3', '26.1.0', '100.0'];
const SAID_BY_NONE = ['', 'unknown', '0.0.0', 'default_version'];

const versions = suite('EventStoreDB: versions');

async function onDouble(
  version: string | undefined,
  check: (double: EventStoreDouble) => Promise<void>,
): Promise<void> {
  const double = await startEventStoreDouble();
  double.switches.version = version;
  try {
    await check(double);
  } finally {
    await double.close();
  }
}

versions('refuses versions that lose events, or are too old, and not an unknown one', () => {
  for (const [said, name, take] of REFUSED) {
    try {
      refuseUnsafe(said);
      assert.unreachable(said);
    } catch (error) {
      assert.instance(error, UnsafeServerError);
      assert.match(
        (error as Error).message,
        new RegExp(`^${name} ${said} is .*: use ${take.replaceAll('.', '\\.')} or later$`),
      );
    }
  }
  for (const said of USED) assert.is(refuseUnsafe(said), true, said);
  for (const said of SAID_BY_NONE) assert.is(refuseUnsafe(said), false, said);
});

for (const [version, name, take] of [
  ['24.10.4', 'EventStoreDB', '24.10.5'],
  ['25.0.0', 'KurrentDB', '25.0.1'],
] as const) {
  versions(`a log of ${name} ${version} is not opened, at once, and nothing is written to it`, () =>
    onDouble(version, async (double) => {
      const error = (await within(
        LONG_MS / 2,
        failureOf(openEventStoreDb({ url: double.url, timeoutMs: LONG_MS })),
      )) as Error;
      assert.is(error.name, 'EventStoreDbError');
      assert.match(
        error.message,
        `${name} ${version} is refused, since readers of its log may miss events: use ${take} or later`,
      );
      assert.is(await double.log.read(LOG_STREAM, 0, 1), undefined);
    }),
  );
}

for (const version of [undefined, '', '0.0.0']) {
  versions(`uses a server without a version (${version ?? 'does not know the question'}), with one warning`, () =>
    onDouble(version, async (double) => {
      const told: string[] = [];
      const store = await openEventStoreDb({
        url: double.url,
        timeoutMs: TIMEOUT_MS,
        logger: { info: () => undefined, warn: (text: string) => void told.push(text) },
      });
      try {
        await store.append('a', [event()], 'none');
        await readUntil(store.follow(undefined), (all) => all.length === 1, LONG_MS);
        await double.restart();
        await store.ping();
        assert.is((await store.read('a')).length, 1);
        assert.is(told.filter((text) => text.startsWith('EventStoreDB does not say its version')).length, 1);
      } finally {
        await store.close();
      }
    }),
  );
}

versions('checks a server again that is replaced while the service runs', () =>
  onDouble('24.10.14', async (double) => {
    const store = await openEventStoreDb({ url: double.url, timeoutMs: LONG_MS });
    try {
      await store.append('a', [event()], 'none');
      const following = readUntil(store.follow(undefined), (all) => all.length === 2, LONG_MS);
      await until(() => double.running() === 1);
      await double.way.down();
      double.switches.version = '24.10.4';
      await double.restart();
      await until(async () => ((await failureOf(store.ping())) as Error).message.includes('is refused'));
      const refused = await Promise.all([
        failureOf(store.append('a', [event()], 0)),
        failureOf(store.read('a')),
        failureOf(store.ping()),
      ]);
      for (const error of refused) {
        assert.instance(error, UnavailableError);
        assert.match((error as Error).message, /24\.10\.4 is refused.*use 24\.10\.5/);
        assert.equal(
          [(error as UnavailableError).outcomeUnknown, (error as UnavailableError).publicReason],
          [false, 'is of a version that is refused (the log says which to take)'],
        );
      }
      assert.is(double.running(), 0, 'no reader is on it');
      await double.way.down();
      double.switches.version = '24.10.14';
      await double.restart();
      await until(async () =>
        store.ping().then(
          () => true,
          () => false,
        ),
      );
      await store.append('a', [event()], 0);
      assert.is((await following).length, 2);
    } finally {
      await store.close();
    }
  }),
);

versions('refuses a server that comes back with another log, or none, and goes on once its log is back', async () => {
  for (const fill of [
    async () => undefined,
    async (url: string) => (await openEventStoreDb({ url, timeoutMs: LONG_MS })).close(),
  ])
    await onDouble('24.10.14', async (double) => {
      const other = await startEventStoreDouble();
      const store = await openEventStoreDb({ url: double.url, timeoutMs: LONG_MS });
      const replaceBy = (port: number): void => {
        double.way.turn(port);
        double.way.cut();
      };
      try {
        await fill(other.url);
        await store.append('a', [event()], 'none');
        const following = readUntil(store.follow(undefined), (all) => all.length === 2, LONG_MS);
        await until(() => double.running() === 1);
        following.catch(() => undefined);
        replaceBy(other.inner);
        for (const call of [
          async () => store.append('b', [event()], 'none'),
          async () => store.append('b', [event()], 'any'),
          async () => store.read('a'),
          async () => store.end(),
        ]) {
          const error = await failureOf(call());
          assert.instance(error, UnavailableError);
          assert.match((error as Error).message, 'holds another log');
        }
        const { publicReason } = (await failureOf(store.ping())) as UnavailableError;
        assert.is(publicReason, 'holds another log than before, or none');
        assert.is(await other.log.read('b', 0, 1), undefined);
        replaceBy(double.inner);
        await until(async () =>
          store.ping().then(
            () => true,
            () => false,
          ),
        );
        await store.append('a', [event()], 0);
        assert.is((await following).length, 2);
      } finally {
        await store.close();
        await other.close();
      }
    });
});

versions('an idle connection that is made anew is looked at as well', () =>
  onDouble('24.10.14', async (double) => {
    const store = await openEventStoreDb({ url: double.url, timeoutMs: LONG_MS });
    try {
      await store.ping();
      double.switches.version = '24.10.4';
      double.way.cut();
      const error = await failureOf(store.ping());
      assert.match((error as Error).message, /24\.10\.4 is refused/);
    } finally {
      await store.close();
    }
  }),
);

versions('a server that is silent when it is asked is given up in time, and asked again', () =>
  onDouble('24.10.14', async (double) => {
    double.way.freeze();
    const error = await within(LONG_MS, failureOf(openEventStoreDb({ url: double.url, timeoutMs: TIMEOUT_MS })));
    assert.instance(error, UnavailableError);
    const opening = openEventStoreDb({ url: double.url, timeoutMs: TIMEOUT_MS });
    setTimeout(() => double.way.thaw(), TIMEOUT_MS * 1.5);
    const store = await opening;
    await store.close();
  }),
);

versions.run();
