import { memoryKeys } from '../support/engines/memoryKeys.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DeadlineError, NoRespondersError, RemoteError } from '../../src/ports/bus.js';
import type { Engines } from '../../src/ports/engines.js';
import { checkpointName, collectionOf } from '../../src/runtime/readmodels/projection.js';
import { type ReadinessOptions, readinessOf } from '../../src/service/readiness.js';
import type { EventStore } from '../../src/ports/eventStore.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { watchAppends } from '../../src/runtime/supervision/appendWatch.js';
import { until } from '../support/assertions/until.js';
import { PROJECTIONS } from '../../src/projections/index.js';
import { buy, installed, type Installation, redeem, settled } from '../support/fixtures/projecting.js';

const test = suite('whether a process is ready');

type Parts = Awaited<ReturnType<ReturnType<typeof readinessOf>>>['parts'];

/** The details of each part. */
async function parts(
  { events, store }: Pick<Installation, 'events' | 'store'>,
  {
    request = async () => ({}),
    ...more
  }: Partial<ReadinessOptions> & { readonly request?: () => Promise<object> } = {},
): Promise<Parts> {
  const bus = { engine: 'none', ping: async () => undefined, request } as unknown as Engines['bus'];
  const config: ReadinessOptions['config'] = {
    payments: 'simulated',
    notifications: 'simulated',
    roles: new Set(['api']),
  };
  const leaders = { noLeaderSince: () => undefined };
  return (
    await readinessOf({
      engines: { events, store, bus },
      keyStore: memoryKeys(),
      config,
      projections: PROJECTIONS,
      holder: 'test',
      health: () => [],
      leaders,
      appends: { failing: () => undefined },
      outward: { state: () => ({ held: undefined, resumedAt: undefined }) },
      ...more,
    })()
  ).parts;
}

/** The details of each read model. */
async function told(installation: Installation): Promise<Parts> {
  return Object.fromEntries(
    Object.entries(await parts(installation)).flatMap(([part, health]) =>
      part.startsWith('projection ') ? [[part.slice('projection '.length), health]] : [],
    ),
  );
}

test(
  'is not ready before what every route answers from is built, but waits for nothing else',
  installed(async (installation) => {
    const models = await told(installation);
    const some = [
      'by_user',
      'feed',
      'parked',
      'password_costs',
      'redemptions',
      'reversals',
      'schedule',
      'voucher_codes',
      'webhook_endpoints',
    ];
    assert.equal(
      Object.keys(models)
        .filter((name) => models[name]?.ready)
        .sort(),
      some,
    );
    assert.is(models['gifts']?.detail, 'is being built for the first time');
    assert.is(
      models['redemptions']?.detail,
      'is being built for the first time: what is answered from it is refused meanwhile, and nothing else',
    );
  }),
);

test(
  'is not ready while any read model that is built is behind',
  installed(async (installation) => {
    const { events, project } = installation;
    const {
      gifts: [id = ''],
    } = await buy(events, [{}]);
    const projector = await project({ projections: PROJECTIONS });
    await settled(projector, events);
    assert.equal(
      Object.values(await told(installation)).filter(({ ready }) => !ready),
      [],
    );
    await projector.close();
    await redeem(events, id);
    assert.equal(
      new Set(Object.values(await told(installation)).map(({ ready, detail }) => `${ready} ${detail}`)),
      new Set(['false is behind']),
    );
  }),
);

test(
  "is not ready while a used read model's stored position is not a position in the log",
  installed(async (installation) => {
    const { events, store, project } = installation;
    await buy(events);
    const projector = await project({ projections: PROJECTIONS });
    await settled(projector, events);
    await projector.close();
    const gifts = PROJECTIONS.find(({ name }) => name === 'gifts')!;
    for (const position of ['0000000000999999', '18446744073709551615']) {
      await store.write([
        { collection: collectionOf(gifts), documents: [], checkpoint: { projection: checkpointName(gifts), position } },
      ]);
      const models = await told(installation);
      assert.equal(models['gifts'], {
        ready: false,
        detail: `its stored position, ${position}, is not a position in the log: it is built anew`,
      });
      assert.ok(models['transactions']?.ready);
    }
  }),
);

test(
  'is not ready while a follower of this process fails: with its name, since when and why',
  installed(async (installation) => {
    const found = await parts(installation, {
      health: () => [
        { part: 'charge outcomes', failing: false, failures: 0 },
        {
          part: 'process managers',
          failing: true,
          since: '2026-03-01T10:00:00.000Z',
          failures: 7,
          why: 'RangeError: see the log of that process',
        },
      ],
      leaders: { noLeaderSince: () => new Date() },
    });
    assert.equal(found['charge outcomes'], { ready: true, detail: 'works' });
    assert.equal(found['process managers'], {
      ready: false,
      detail: 'fails since 2026-03-01T10:00:00.000Z, 7 times in a row: RangeError: see the log of that process',
    });
  }),
);

test(
  'says in every process that none leads; would-be leaders of process managers are not ready',
  installed(async (installation) => {
    const { events, project } = installation;
    const projector = await project({ projections: PROJECTIONS });
    const {
      gifts: [id = ''],
    } = await buy(events, [{}]);
    await settled(projector, events);
    const leaders = { noLeaderSince: () => new Date('2026-03-01T10:00:00.000Z') };
    const all = await parts(installation, { leaders });
    const detail =
      'no process leads them since 2026-03-01T10:00:00.000Z: purchases are taken, and charged, issued and sent once one does';
    assert.equal(all['process managers'], { ready: true, detail });
    assert.equal(all['projection gifts'], {
      ready: true,
      detail: 'caught up, but no process keeps the read models up to date since 2026-03-01T10:00:00.000Z',
    });
    const config: ReadinessOptions['config'] = {
      payments: 'simulated',
      notifications: 'simulated',
      roles: new Set(['processor']),
    };
    assert.equal((await parts(installation, { leaders, config }))['process managers'], { ready: false, detail });
    await projector.close();
    await redeem(events, id);
    assert.equal((await parts(installation, { leaders }))['projection gifts'], {
      ready: false,
      detail: 'is behind: no process keeps the read models up to date since 2026-03-01T10:00:00.000Z',
    });
  }),
);

test(
  'says in every process that no worker answers; would-be leaders of process managers are not ready after a while',
  installed(async (installation) => {
    const { events, project } = installation;
    await buy(events, [{}]);
    await settled(await project({ projections: PROJECTIONS }), events);
    const failing = (error: Error) => async () => Promise.reject(error);
    const held = { state: () => ({ held: '2026-03-01T10:00:00.000Z', resumedAt: undefined }) };
    const rolesOf = (role: 'api' | 'processor'): ReadinessOptions['config'] => ({
      payments: 'simulated',
      notifications: 'simulated',
      roles: new Set([role]),
    });
    for (const error of [new NoRespondersError('workers.alive'), new DeadlineError('workers.alive', 1_000)])
      for (const [role, noWorkerMs, ready] of [
        ['api', 0, true],
        ['processor', 0, false],
        ['processor', 60_000, true],
      ] as const) {
        const silent = { request: failing(error), config: rolesOf(role), noWorkerMs };
        const { workers } = await parts(installation, silent);
        assert.is(workers?.ready, ready, `${role} ${noWorkerMs}`);
        assert.match(
          workers?.detail ?? '',
          /^none answers since \d{4}-\S+Z: purchases are taken, and charged and sent once one does$/,
        );
        assert.is((await parts(installation, { ...silent, outward: held }))['workers'], undefined);
      }
    for (const request of [async () => ({}), failing(new UnavailableError('away')), failing(new RemoteError('broken'))])
      assert.is(
        (await parts(installation, { request, config: rolesOf('processor'), noWorkerMs: 0 }))['workers'],
        undefined,
      );
  }),
);

test(
  'is not ready while the log takes no appends, until one is stored or none is tried',
  installed(async (installation) => {
    let full = true;
    const append: EventStore['append'] = async (...requested) =>
      full
        ? Promise.reject(new UnavailableError('events.db', { publicReason: 'its disk is full' }))
        : installation.events.append(...requested);
    const watch = watchAppends({ ...installation.events, append }, 1_500);
    const logPart = async () =>
      (await parts({ ...installation, events: watch.events }, { appends: watch }))['event store'];
    const tries = async (): Promise<boolean> =>
      buy(watch.events).then(
        () => true,
        () => false,
      );
    assert.equal(await logPart(), { ready: true, detail: 'embedded' });
    assert.not(await tries());
    const since = watch.failing()?.since.toISOString();
    assert.not(await tries());
    assert.equal(await logPart(), {
      ready: false,
      detail: `embedded, takes no appends since ${since}: its disk is full`,
    });
    await until(() => watch.failing() === undefined, 'the failure to be of the past');
    assert.ok((await logPart())?.ready);
    assert.not(await tries());
    full = false;
    assert.ok(await tries());
    assert.ok((await logPart())?.ready);
  }),
);

test(
  'is not ready while the read store takes no writes, though it can be read',
  installed(async (installation) => {
    let full = true;
    const put: ReadStore['records']['put'] = async (...requested) =>
      full
        ? Promise.reject(new UnavailableError('read.db', { publicReason: 'its disk is full' }))
        : installation.store.records.put(...requested);
    const store = { ...installation.store, records: { ...installation.store.records, put } };
    assert.equal((await parts({ ...installation, store }))['read store'], {
      ready: false,
      detail: 'embedded, takes no writes: its disk is full',
    });
    full = false;
    assert.equal((await parts({ ...installation, store }))['read store'], { ready: true, detail: 'embedded' });
  }),
);

test.run();
