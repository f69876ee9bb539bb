/** Each code of the diagnosis, from the state that a fault leaves. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { diagnose, type DiagnosisSources, FINDING_CODES, settingsFindings } from '../../../src/ops/diagnosis/index.js';
import type { StatusEntry } from '../../../src/ops/status/status.js';
import { AlteredEventError, UnavailableError } from '../../../src/ports/unavailable.js';

const test = suite('diagnose');

const PROGRESS = { position: '1', invalid_position: null, lag_events: 0, lag_exact: true, lag_seconds: 0 };
const WELL = { ...PROGRESS, per_second: 0, holder: 'machine:1:a', last_holder: null };
const MODEL = {
  ...WELL,
  kind: 'projection',
  name: 'gifts',
  version: 1,
  build: 0,
  in_use: true,
  quarantined: 0,
  rebuild: null,
  served: null,
  previous: null,
  previous_release: null,
} as const satisfies StatusEntry;
const MANAGER = { ...WELL, kind: 'process', name: 'purchase', in_flight: 0, parked: 0 } as const satisfies StatusEntry;
const LAST = { process: 'machine:1:a', since: '2026-05-04T12:30:00.000Z', lives: null };
const PART = {
  kind: 'part',
  name: 'erasures',
  process: 'machine:1:a',
  since: '2026-05-04T12:30:00.000Z',
  failures: 7,
  why: 'an engine does not answer',
} as const satisfies StatusEntry;
const GROUP = {
  id: '5d41c0ffee12',
  step: 'charge',
  cause: 'the provider was in trouble for 24 hours',
  count: 3,
  first_at: '2026-05-04T12:30:00.000Z',
  last_at: '2026-05-04T12:41:00.000Z',
  example: '3f0b8a1de29c4f7d5a6b90c1e2d3f4a5',
};
const REBUILD = {
  target: 2,
  from: 1,
  kind: 'rebuild',
  state: 'building',
  by: 'sue',
  at: '2026-05-04T12:30:00.000Z',
} as const;

const ENDPOINT = { endpoint_id: 'abc', owner: 'client:app', failing: false, failures: 0, oldest: {} };
const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

function sources(changed: Partial<DiagnosisSources> = {}): DiagnosisSources {
  return {
    servers: new Set(),
    parts: async () => ({ 'event store': { ready: true, detail: 'embedded' } }),
    status: async () => [MODEL, MANAGER],
    outward: async () => ({ held: undefined }),
    sealed: async () => false,
    rebuilds: async () => [],
    parked: async () => [],
    interrupted: async () => [],
    lateSends: async () => ({ count: 0, more: false }),
    webhooks: async () => [],
    head: async () => ({ uncosigned: [] }),
    headsEveryMs: 10_000,
    clocks: async () => [],
    keys: async () => undefined,
    settings: { warnings: [], deadLinks: false },
    limits: async () => [],
    routines: async () => [{ of: 'backup', days: 7, last: minutesAgo(60), differing: [] }],
    freeBytes: async () => 50e9,
    metrics: async () => '',
    onFault: (error) => {
      throw error;
    },
    ...changed,
  };
}

const down = (part: string, detail: string): Partial<DiagnosisSources> => ({
  parts: async () => ({ [part]: { ready: false, detail } }),
});
const status = (...entries: StatusEntry[]): Partial<DiagnosisSources> => ({ status: async () => entries });
const away = async (): Promise<never> => {
  throw new UnavailableError('connect ECONNREFUSED 10.0.0.1:27017');
};

/** What a fault leaves behind, with the codes that name it and a part of what the first says. */
const TABLE: readonly (readonly [
  fault: string,
  left: Partial<DiagnosisSources>,
  codes: readonly string[],
  what: RegExp,
])[] = [
  [
    'a file of the log was removed under the service',
    down('event store', 'events.db-wal was removed or replaced under the service: writes are refused'),
    ['event_store_unavailable'],
    /events\.db-wal was removed/,
  ],
  [
    'the file of the read store was removed, or another holds its lock',
    down('read store', 'embedded, takes no writes: read.db-wal was removed or replaced'),
    ['read_store_unavailable'],
    /takes no writes/,
  ],
  ['the key store is away', down('key store', 'cannot be reached'), ['key_store_unavailable'], /key store: cannot/],
  ['the bus is away', down('bus', 'does not answer'), ['bus_unavailable'], /bus: does not answer/],
  ['a process has died', down('processes', '1 of 2 serve, process 2 starts'), ['part_not_ready'], /process 2 starts/],
  ['the log is sealed', { sealed: async () => true }, ['log_sealed'], /sealed/],
  [
    'all processes were killed',
    status({ ...MODEL, holder: null, last_holder: LAST }, { ...MANAGER, holder: null, last_holder: LAST }),
    ['service_stopped'],
    /the last was machine:1:a until 2026-05-04T12:30/,
  ],
  [
    'the projector was killed or frozen',
    status({ ...MODEL, holder: null, last_holder: { ...LAST, lives: true } }, MANAGER),
    ['read_models_without_leader'],
    /which lives, perhaps frozen/,
  ],
  [
    'the processor was killed',
    status(MODEL, { ...MANAGER, holder: null, lag_seconds: 9_000 }),
    ['process_managers_without_leader'],
    /no process leads the process managers/,
  ],
  [
    'a restored log is held',
    {
      ...status(MODEL, { ...MANAGER, holder: null }),
      outward: async () => ({ held: 'it was restored' }),
      webhooks: async () => [{ ...ENDPOINT, failures: 1, oldest: { untried: minutesAgo(6), failed: minutesAgo(6) } }],
    },
    ['outward_work_held'],
    /it was restored/,
  ],
  [
    'a provider does not answer',
    status(MODEL, { ...MANAGER, lag_seconds: 901, in_flight: 2 }),
    ['purchases_stuck'],
    /15 minutes old; 2 in flight/,
  ],
  [
    'a provider does not answer, as the process that leads shows',
    {
      ...status(MODEL, { ...MANAGER, lag_seconds: 9_001, in_flight: 2 }),
      metrics: async () => 'gift_process_oldest_open_seconds{process_number="2"} 1800.5',
    },
    ['purchases_stuck'],
    /30 minutes old; 2 in flight/,
  ],
  [
    'a read model is behind',
    status({ ...MODEL, lag_seconds: 31, lag_events: 7 }, MANAGER),
    ['read_model_behind'],
    /gifts is 7 events and 31 s behind/,
  ],
  [
    'a read store of another log',
    status({ ...MODEL, invalid_position: '77' }, MANAGER),
    ['read_model_invalid'],
    /77 is not a position/,
  ],
  [
    'a document can not be folded',
    status({ ...MODEL, quarantined: 1 }, MANAGER),
    ['documents_quarantined'],
    /gifts: 1 document is/,
  ],
  [
    'a part fails',
    status(MODEL, MANAGER, PART),
    ['part_failing'],
    /erasures of machine:1:a fails since .* 7 times in a row/,
  ],
  [
    'the log was altered, as the process that keeps the tree shows',
    { metrics: async () => 'gift_log_altered{process="1"} 0\ngift_log_altered{process="2"} 1' },
    ['log_altered'],
    /not what was signed/,
  ],
  ['the tree can not be kept', status(MODEL, MANAGER, { ...PART, name: 'tree' }), ['tree_failing'], /tree of machine/],
  [
    'a rebuild fails',
    { rebuilds: async () => [{ name: 'gifts', rebuild: { ...REBUILD, failure: 'it was altered' } }] },
    ['rebuild_failed'],
    /the rebuild of gifts that sue .* failed: it was altered/,
  ],
  [
    'a rebuild was left',
    { rebuilds: async () => [{ name: 'gifts', rebuild: REBUILD }] },
    ['rebuild_waits'],
    /has no process/,
  ],
  ...(['purchase', 'refund', 'dispute', 'notification'] as const).map(
    (process) =>
      [
        `a ${process} was parked`,
        { parked: async () => [{ ...GROUP, process }] },
        [`parked_${process}s`],
        /3 × .* the provider was in trouble/,
      ] as const,
  ),
  [
    'the discard of a charge died before it was declined',
    { interrupted: async () => [{ ...GROUP, process: 'purchase' }] },
    ['parked_purchases'],
    /discarded, but the discard was interrupted: 3 × /,
  ],
  [
    'the keys are those of another log',
    { keys: async () => 'HASH_KEY: this is not the key that the event log was made with' },
    ['keys_wrong'],
    /this is not the key/,
  ],
  [
    'a secret is set without its provider, and HOST is every address',
    { settings: { warnings: ['PAYMENTS is not set though STRIPE_SECRET_KEY is'], deadLinks: true } },
    ['settings_contradict', 'links_dead'],
    /PAYMENTS is not set/,
  ],
  [
    'the card provider is in trouble, and deliveries stand still',
    {
      metrics: async () =>
        [
          '# HELP gift_provider_breaker_state …',
          'gift_provider_breaker_state{provider="stripe",state="closed",process="0"} 0',
          'gift_provider_breaker_state{provider="stripe",state="open",process="0"} 1',
          'gift_provider_breaker_state{provider="twilio",state="open",process="0"} 0',
          'gift_webhook_endpoints{state="failing"} 3',
          'gift_webhook_endpoints{state="stalled"} 2',
        ].join('\n'),
    },
    ['provider_left_alone', 'webhooks_stalled'],
    /^stripe is in trouble/,
  ],
  [
    'one request tries the card provider, which does not answer',
    {
      metrics: async () =>
        [
          'gift_provider_breaker_state{provider="stripe",state="closed"} 0',
          'gift_provider_breaker_state{provider="stripe",state="half_open"} 1',
          'gift_provider_breaker_state{provider="stripe",state="open"} 0',
        ].join('\n'),
    },
    ['provider_left_alone'],
    /^stripe is in trouble/,
  ],
  [
    'what was to be sent is not sent',
    { lateSends: async () => ({ count: 2, more: false, example: '6ec0bd7f' }) },
    ['sends_late'],
    /^2 purchases were to be sent by now, such as 6ec0bd7f/,
  ],
  [
    'an event waits at an endpoint that answers',
    { webhooks: async () => [{ ...ENDPOINT, oldest: { untried: minutesAgo(6) } }] },
    ['webhooks_late'],
    /was not tried yet/,
  ],
  [
    'an endpoint refuses',
    { webhooks: async () => [{ ...ENDPOINT, failing: true, failures: 5, oldest: { failed: minutesAgo(1) } }] },
    ['webhook_endpoint_failing'],
    /endpoint abc of client:app failed 5 times in a row/,
  ],
  [
    'an endpoint was disabled',
    { webhooks: async () => [{ ...ENDPOINT, disabled: { by: 'failures', at: minutesAgo(60) } }] },
    ['webhook_endpoint_disabled'],
    /\(failures\)/,
  ],
  [
    'the key store has lost the secret of an endpoint',
    { webhooks: async () => [{ ...ENDPOINT, secretLost: true, oldest: { untried: minutesAgo(6) } }] },
    ['webhook_secret_lost'],
    /endpoint abc of client:app: its secret is not in the key store/,
  ],
  [
    'no head is signed any more',
    { head: async () => ({ last: { size: 7, at: 0 }, uncoveredSince: minutesAgo(11), uncosigned: [] }) },
    ['head_old'],
    /the last head is of 1970-01-01/,
  ],
  [
    'a witness does not answer',
    { head: async () => ({ uncosigned: ['witness.example'] }) },
    ['witness_missing'],
    /^witness\.example has not/,
  ],
  [
    'a clock is behind',
    { clocks: async () => [{ process: 'machine:1:a', aheadMs: 11_000 }] },
    ['clocks_apart'],
    /machine:1:a is 11 s behind/,
  ],
  [
    'a caller guesses gifts',
    { limits: async () => [{ limit: 'unknown-gifts', callers: 1, until: minutesAgo(-9) }] },
    ['limit_reached'],
    /^1 caller is at the limit unknown-gifts, until 2/,
  ],
  [
    'nobody backs up or reconciles',
    {
      routines: async () => [
        { of: 'backup', days: 7, last: undefined, differing: [] },
        { of: 'reconciliation', days: 7, last: undefined, differing: [] },
      ],
    },
    ['reconciliation_old', 'backup_old'],
    /payments were not reconciled within 7 days/,
  ],
  [
    'a reconciliation found differences',
    {
      routines: async () => [
        { of: 'reconciliation', days: 7, last: minutesAgo(60), differing: [{ day: '2026-05-04', differences: 2 }] },
      ],
    },
    ['reconciliation_differs'],
    /^the last reconciliation of 2026-05-04 found 2 differences$/,
  ],
  ['the disk fills up', { freeBytes: async () => 1.5e9 }, ['disk_short'], /^1\.5 GB are left/],
  ['an engine is away', { status: away, rebuilds: away }, ['not_known'], /leaders.*: an engine does not answer$/],
];

for (const [fault, left, codes, what] of TABLE)
  test(`names what is wrong when ${fault}`, async () => {
    const found = await diagnose(sources(left));
    assert.deepEqual(
      found.map(({ code }) => code),
      codes,
    );
    assert.match(found[0]?.what ?? '', what);
    for (const { means, command } of found) assert.ok(means.length > 0 && command.length > 0);
  });

test('has a fault for each code', () => {
  const named = new Set([
    ...TABLE.flatMap(([, , codes]) => codes),
    ...settingsFindings(['PORT']).map(({ code }) => code),
  ]);
  assert.deepEqual([...named].toSorted(), [...FINDING_CODES].toSorted());
});

test('finds nothing where nothing is wrong, or not wrong for long enough', async () => {
  assert.deepEqual(await diagnose(sources()), []);
  const almost = sources({
    ...status({ ...MODEL, lag_seconds: 29 }, { ...MANAGER, lag_seconds: 899 }),
    webhooks: async () => [
      { ...ENDPOINT, failures: 2, oldest: { untried: minutesAgo(4), failed: minutesAgo(4) } },
      { ...ENDPOINT, disabled: { by: 'failures', at: minutesAgo(8 * 24 * 60) } },
    ],
    head: async () => ({ last: { size: 7, at: 0 }, uncoveredSince: minutesAgo(9), uncosigned: [] }),
    // The last renewal of a process that has ended tells nothing of its clock.
    clocks: async () => [
      { process: 'machine:1:a', aheadMs: 1_000 },
      { process: 'machine:2:b', aheadMs: 99_000 },
    ],
    freeBytes: async () => undefined,
  });
  assert.deepEqual(await diagnose(almost), []);
});

test('finds nothing stuck where only a limit of our own holds back what is open', async () => {
  const held = status(MODEL, { ...MANAGER, lag_seconds: 5_000, in_flight: 3 });
  const page = (seconds: number): Partial<DiagnosisSources> => ({
    metrics: async () => `gift_process_oldest_open_seconds ${seconds}\n`,
  });
  assert.deepEqual(await diagnose(sources({ ...held, ...page(0) })), []);
  assert.equal((await diagnose(sources({ ...held, ...page(4_000) }))).length, 1);
  assert.equal((await diagnose(sources(held))).length, 1, 'no process shows it');
});

test('puts the greatest harm first, and names one reason once', async () => {
  const found = await diagnose(
    sources({
      ...status(MODEL, MANAGER, { ...PART, name: 'tree' }),
      ...down('event store', 'does not answer'),
      sealed: away,
      parked: away,
      rebuilds: away,
    }),
  );
  assert.deepEqual(
    found.map(({ code, harm }) => `${code} ${harm}`),
    ['event_store_unavailable money', 'not_known people', 'tree_failing evidence'],
  );
  assert.match(found[1]?.what ?? '', /the seal of the log.*parked work|parked work.*the seal of the log/);
});

test('gives owners of disabled endpoints a command that the API takes, but inactive ones', async () => {
  const disabled = async (by: string): Promise<string | undefined> => {
    const webhooks: DiagnosisSources['webhooks'] = async () => [{ ...ENDPOINT, disabled: { by, at: minutesAgo(60) } }];
    return (await diagnose(sources({ webhooks })))[0]?.command;
  };
  assert.equal(
    await disabled('gone'),
    `curl -X PATCH -H 'Content-Type: application/json' -d '{"disabled":false}' -H "Authorization: Bearer $OWNER_TOKEN" $API/api/v2/webhook-endpoints/abc`,
  );
  assert.match((await disabled('inactive')) ?? '', /gift import the owner with "active": true/);
});

test('restarts no part for an engine that is away', async () => {
  const catalogue = { ready: false, detail: 'fails since 2026-05-04T12:30:00.000Z: an engine does not answer' };
  const codes = async (parts: Awaited<ReturnType<DiagnosisSources['parts']>>): Promise<string[]> =>
    (await diagnose(sources({ parts: async () => parts, status: away }))).map(({ code }) => code);
  assert.deepEqual(await codes({ catalogue, 'read store': { ready: false, detail: 'cannot be reached' } }), [
    'read_store_unavailable',
    'not_known',
  ]);
  assert.deepEqual(await codes({ catalogue, 'read store': { ready: true, detail: 'mongodb' } }), [
    'part_not_ready',
    'not_known',
  ]);
});

test('starts a server again, not the service, where an engine is one', async () => {
  const [found] = await diagnose(sources({ ...down('bus', 'does not answer'), servers: new Set(['bus']) }));
  assert.equal(found?.command, 'start the server of NATS_URL; the service goes on by itself');
});

test('sends to the verification where an event is damaged, and still names a rebuild that it ended', async () => {
  const damaged = async (): Promise<never> => {
    throw new AlteredEventError('the event at position 7 can not be read');
  };
  const rebuilds = [
    { name: 'gifts', rebuild: { ...REBUILD, failure: 'it was altered' } },
    { name: 'parked', rebuild: REBUILD },
  ];
  const found = await diagnose(sources({ status: damaged, rebuilds: async () => rebuilds }));
  assert.deepEqual(
    found.map(({ code, command }) => [code, command]),
    [
      ['rebuild_failed', 'gift projections rebuild gifts --abort'],
      ['not_known', 'gift audit verify'],
    ],
  );
});

test('names what it could not look at where the program is at fault, and tells of the error', async () => {
  const faults: unknown[] = [];
  const error = new RangeError('secret');
  const found = await diagnose(
    sources({
      sealed: async () => {
        throw error;
      },
      onFault: (fault) => void faults.push(fault),
    }),
  );
  assert.deepEqual([found.map(({ code }) => code), faults], [['not_known'], [error]]);
  assert.ok(!JSON.stringify(found).includes('secret'));
});

test.run();
