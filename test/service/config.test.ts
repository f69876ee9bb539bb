import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { suite } from 'uvu';
import { ALL_SETTINGS, ConfigError, loadConfig } from '../../src/service/config.js';

const test = suite('config');

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

test('runs whole without any setting', () => {
  const config = loadConfig({});
  assert.deepEqual(
    { ...config, roles: [...config.roles] },
    {
      processes: 1,
      port: 3000,
      host: '127.0.0.1',
      dataDir: resolve('data'),
      roles: ['api', 'projector', 'processor', 'worker'],
      trustedProxies: [],
      webhookRefusedNetworks: [],
      reminderDays: [30, 7],
      reminderHours: { from: 540, to: 1_200 },
      corsOrigins: [],
      webhookPrivateAddresses: 'refuse',
      sandbox: false,
      clientRateLimit: 600_000,
      userRateLimit: 60_000,
      unknownGiftsPerCaller: 200,
      unknownGiftsPerAddress: 400,
      chargeWaitMs: 2000,
      enginesWaitMs: 60_000,
      accessTokenTtl: 900,
      refreshTokenTtl: 2_592_000,
      sessionMaxAge: 7_776_000,
      sealEveryMs: 10_000,
      sealPublic: false,
      sealWitnesses: [],
      logLevel: 'info',
      payments: 'simulated',
      notifications: 'simulated',
      addressRateLimit: 12_000,
      requestWaitMs: 100,
      opsRateLimit: 6_000,
      erasureDelay: 259_200,
      erasuresPerDay: 20,
      personExportsPerDay: 50,
      personalReadsPerDay: 1_000,
      replacementsPerDay: 20,
      reversalsPerDay: 50,
    },
  );
});

test('reads every setting', () => {
  const key = 'k'.repeat(32);
  const config = loadConfig({
    PORT: '0',
    HOST: '::1',
    DATA_DIR: '/tmp/x',
    ROLES: 'api, worker',
    PUBLIC_URL: 'https://gifts.example/',
    APP_URL: 'https://app.example/open/',
    TRUSTED_PROXIES: '10.0.0.0/8, ::1/128',
    WEBHOOK_REFUSED_NETWORKS: '192.0.2.0/24',
    REMINDER_DAYS: '1, 14,1',
    REMINDER_HOURS: '08:30-24:00',
    CORS_ORIGINS: 'https://shop.example, http://localhost:5173',
    WEBHOOK_PRIVATE_ADDRESSES: 'allow',
    CLIENT_RATE_LIMIT: '4',
    USER_RATE_LIMIT: '3',
    ADDRESS_RATE_LIMIT: '5',
    OPS_RATE_LIMIT: '6',
    ERASURES_PER_DAY: '7',
    PERSON_EXPORTS_PER_DAY: '8',
    PERSONAL_READS_PER_DAY: '9',
    ERASURE_DELAY: '0',
    OPS_PORT: '9001',
    UNKNOWN_GIFTS_PER_CALLER: '0',
    UNKNOWN_GIFTS_PER_ADDRESS: '1',
    CHARGE_WAIT_MS: '0',
    ACCESS_TOKEN_TTL: '60',
    REFRESH_TOKEN_TTL: '61',
    SESSION_MAX_AGE: '62',
    LOG_LEVEL: 'debug',
    METRICS_PORT: '9000',
    TOKEN_KEY: `${key},${key}2`,
    HASH_KEY: key,
    MASTER_KEY: `${key},${key}3`,
    SEAL_KEY: `${key},${key}4`,
    SEAL_DIR: '/srv/tree/',
    SEAL_EVERY_MS: '100',
    SEAL_PUBLIC: '1',
    KEYS_URL: 'mongodb://keys/gift',
    PAYMENTS: 'simulated',
    NOTIFICATIONS: 'simulated',
    NATS_URL: 'nats://a:4222,nats://b:4222',
  });
  assert.equal(config.natsUrl, 'nats://a:4222,nats://b:4222');
  assert.deepEqual([...config.roles], ['api', 'worker']);
  assert.deepEqual(config.trustedProxies, ['10.0.0.0/8', '::1/128']);
  assert.deepEqual(config.webhookRefusedNetworks, ['192.0.2.0/24']);
  assert.equal(config.webhookPrivateAddresses, 'allow');
  assert.deepEqual([config.reminderDays, config.reminderHours], [[14, 1], { from: 510, to: 1_440 }]);
  assert.deepEqual(config.corsOrigins, ['https://shop.example', 'http://localhost:5173']);
  const { clientRateLimit, userRateLimit, unknownGiftsPerCaller, unknownGiftsPerAddress } = config;
  assert.deepEqual([clientRateLimit, userRateLimit, unknownGiftsPerCaller, unknownGiftsPerAddress], [4, 3, 0, 1]);
  assert.deepEqual([config.addressRateLimit, config.opsRateLimit, config.opsPort], [5, 6, 9001]);
  const { erasuresPerDay, personExportsPerDay, personalReadsPerDay, erasureDelay } = config;
  assert.deepEqual([erasuresPerDay, personExportsPerDay, personalReadsPerDay, erasureDelay], [7, 8, 9, 0]);
  assert.deepEqual(
    [config.publicUrl, config.appUrl, config.metricsPort, config.port, config.host],
    ['https://gifts.example', 'https://app.example/open/', 9000, 0, '::1'],
  );
  assert.deepEqual([config.tokenKeys, config.hashKey], [[key, `${key}2`], key]);
  assert.deepEqual([config.masterKeys, config.keysUrl], [[key, `${key}3`], 'mongodb://keys/gift']);
  assert.deepEqual(
    [config.sealKeys, config.sealDir, config.sealEveryMs, config.sealPublic],
    [[key, `${key}4`], '/srv/tree', 100, true],
  );
});

test('refuses an origin that no browser sends', () => {
  for (const origin of ['*', 'null', 'shop.example', 'https://shop.example/', 'https://Shop.example', 'ftp://a', ''])
    assert.match(faultsOf({ CORS_ORIGINS: `https://a.example,${origin}` }).join(), /CORS_ORIGINS must be/, origin);
});

test('refuses networks and addresses that would be read as others than they look', () => {
  for (const cidr of ['10/8', '10.0.0/8', '010.0.0.0/8'])
    for (const name of ['TRUSTED_PROXIES', 'WEBHOOK_REFUSED_NETWORKS'])
      assert.deepEqual(faultsOf({ [name]: cidr }), [
        `${name} must be a list of CIDRs such as 10.0.0.0/8; "${cidr}" is none`,
      ]);
  assert.deepEqual(faultsOf({ TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32, ::ffff:10.0.0.0/104' }), []);
  const addresses = ['https:gifts.example', 'https://gifts.example/?', 'https://gifts.example#', 'https://x/ y'];
  for (const url of [...addresses, 'https:///gifts.example', String.raw`https://gifts.example\x`])
    assert.deepEqual(faultsOf({ PUBLIC_URL: url }), [
      `PUBLIC_URL must be an http or https address without query, not ${JSON.stringify(url)}`,
    ]);
});

test('refuses a sandbox with a real provider, in one line that says what to change', () => {
  const said = (faults: readonly string[]): readonly string[] => faults.filter((fault) => fault.startsWith('SANDBOX'));
  for (const real of [{ PAYMENTS: 'stripe' }, { NOTIFICATIONS: 'real' }] as const)
    assert.deepEqual(said(faultsOf({ SANDBOX: '1', ...real })), [
      'SANDBOX moves time ahead, which no real provider follows: set PAYMENTS=simulated and NOTIFICATIONS=simulated, or SANDBOX=0',
    ]);
  assert.deepEqual(said(faultsOf({ PAYMENTS: 'stripe', SANDBOX: '0' })), []);
  assert.deepEqual(faultsOf({ SANDBOX: '1' }), []);
  assert.deepEqual(faultsOf({ SANDBOX: 'yes' }), ['SANDBOX must be 0 or 1, not "yes"']);
});

test('names every fault at once, and shows no secret', () => {
  const faults = faultsOf({
    PORT: '65536',
    METRICS_PORT: 'x',
    ROLES: 'api,cook',
    PUBLIC_URL: 'ftp://x',
    APP_URL: 'https://x/?a=1',
    TRUSTED_PROXIES: '10.0.0.1',
    REMINDER_DAYS: '7,soon',
    REMINDER_HOURS: '20:00-09:00',
    CORS_ORIGINS: '*',
    CHARGE_WAIT_MS: '-1',
    ACCESS_TOKEN_TTL: '0',
    LOG_LEVEL: 'loud',
    TOKEN_KEY: `${'k'.repeat(32)},hunter2`,
    HASH_KEY: 'hunter3',
    MASTER_KEY: 'hunter7',
    SEAL_KEY: 'hunter9',
    SEAL_EVERY_MS: '99',
    SEAL_PUBLIC: 'yes',
    KEYS_URL: 'http://u:hunter8@x',
    PAYMENTS: 'cash',
    NOTIFICATIONS: 'pigeon',
    EVENTSTORE_URL: 'http://u:hunter4@x',
    NATS_URL: 'http://u:hunter5@x',
    MONGODB_URL: 'http://u:hunter6@x',
  });
  const names = [
    'PORT',
    'METRICS_PORT',
    'ROLES',
    'PUBLIC_URL',
    'APP_URL',
    'TRUSTED_PROXIES',
    'REMINDER_DAYS',
    'REMINDER_HOURS',
    'CORS_ORIGINS',
    'CHARGE_WAIT_MS',
    'ACCESS_TOKEN_TTL',
    'LOG_LEVEL',
    'TOKEN_KEY',
    'HASH_KEY',
    'MASTER_KEY',
    'SEAL_KEY',
    'SEAL_EVERY_MS',
    'SEAL_PUBLIC',
    'KEYS_URL',
    'PAYMENTS',
    'NOTIFICATIONS',
    'EVENTSTORE_URL',
    'NATS_URL',
    'MONGODB_URL',
  ];
  for (const name of names)
    assert.ok(
      faults.some((fault) => fault.startsWith(`${name} `)),
      name,
    );
  assert.equal(faults.length, names.length);
  assert.ok(!faults.join().includes('hunter'));
  assert.throws(
    () => loadConfig({ PORT: 'x' }),
    /settings are wrong:\n {2}PORT must be a whole number from 0 to 65535, not "x"/,
  );
});

const { privateKey: rsa } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const hex = '0123456789abcdef'.repeat(2);
const real = {
  PAYMENTS: 'stripe',
  STRIPE_SECRET_KEY: 'sk_test_hunter1',
  STRIPE_API_URL: 'http://127.0.0.1:4000/',
  STRIPE_WEBHOOK_SECRET: 'whsec_hunter5',
  NOTIFICATIONS: 'real',
  TWILIO_ACCOUNT_SID: `AC${hex}`,
  TWILIO_AUTH_TOKEN: hex,
  TWILIO_FROM: '+447700900000',
  TWILIO_API_URL: 'https://twilio.test',
  FCM_PROJECT_ID: 'gifts-test',
  FCM_CLIENT_EMAIL: 'a@gifts-test.iam.gserviceaccount.com',
  FCM_PRIVATE_KEY: rsa.replaceAll('\n', '\\n'),
  FCM_API_URL: 'https://fcm.test',
  FCM_TOKEN_URL: 'https://fcm.test/token',
};

test('wants signs in the user and password of NATS percent-encoded', () => {
  assert.deepEqual(faultsOf({ NATS_URL: 'nats://u:hunter%2@a:4222' }), [
    'NATS_URL must have the signs in its user and password percent-encoded',
  ]);
  for (const mixed of ['nats://a:4222, tls://b:4222', 'tls://u:hunter2@a,nats://b'])
    assert.deepEqual(faultsOf({ NATS_URL: mixed }), [
      'NATS_URL must have addresses that all begin with nats://, or all with tls://',
    ]);
  assert.equal(loadConfig({ NATS_URL: 'nats://u:hunter%252@a:4222' }).natsUrl, 'nats://u:hunter%252@a:4222');
});

test('reads the settings of the real providers', () => {
  const { payments, notifications, stripe, stripeWebhookSecret, twilio, fcm } = loadConfig(real);
  assert.equal(stripeWebhookSecret, 'whsec_hunter5');
  assert.deepEqual([payments, notifications], ['stripe', 'real']);
  assert.deepEqual(stripe, { secretKey: 'sk_test_hunter1', apiUrl: 'http://127.0.0.1:4000' });
  assert.deepEqual(twilio, {
    accountSid: `AC${hex}`,
    authToken: hex,
    from: '+447700900000',
    apiUrl: 'https://twilio.test',
  });
  const account = {
    projectId: 'gifts-test',
    clientEmail: 'a@gifts-test.iam.gserviceaccount.com',
    privateKey: rsa.trim(),
  };
  assert.deepEqual(
    { ...fcm, privateKey: fcm?.privateKey.trim() },
    { ...account, apiUrl: 'https://fcm.test', tokenUrl: 'https://fcm.test/token' },
  );

  const json = JSON.stringify({
    type: 'service_account',
    project_id: 'gifts-test',
    client_email: account.clientEmail,
    private_key: rsa,
  });
  const other = loadConfig({
    NOTIFICATIONS: 'real',
    FCM_SERVICE_ACCOUNT: json,
    TWILIO_ACCOUNT_SID: `AC${hex}`,
    TWILIO_AUTH_TOKEN: hex,
    TWILIO_MESSAGING_SERVICE_SID: `MG${hex}`,
  });
  assert.deepEqual({ ...other.fcm, privateKey: other.fcm?.privateKey.trim() }, account);
  assert.deepEqual(other.twilio, { accountSid: `AC${hex}`, authToken: hex, messagingServiceSid: `MG${hex}` });
  assert.deepEqual([other.stripe, other.stripeWebhookSecret], [undefined, undefined]);
  assert.equal(
    loadConfig({ STRIPE_WEBHOOK_SECRET: 'whsec_hunter5' }).stripeWebhookSecret,
    'whsec_hunter5',
    'with simulated payments too',
  );
});

test('wants all settings of the real providers, and shows none of them', () => {
  const names = (env: Record<string, string>): string[] => faultsOf(env).map((fault) => fault.split(' ')[0] ?? '');
  const missing = [
    'STRIPE_WEBHOOK_SECRET',
    'STRIPE_SECRET_KEY',
    'TWILIO_ACCOUNT_SID',
    'TWILIO_AUTH_TOKEN',
    'TWILIO_FROM',
    'FCM_PROJECT_ID',
    'FCM_CLIENT_EMAIL',
    'FCM_PRIVATE_KEY',
  ];
  assert.deepEqual(names({ PAYMENTS: 'stripe', NOTIFICATIONS: 'real' }), missing);
  assert.deepEqual(names({ ...real, PAYMENTS: 'simulated', NOTIFICATIONS: 'simulated', STRIPE_API_URL: 'x' }), []);
  const wrong = {
    ...real,
    STRIPE_SECRET_KEY: 'hunter1',
    STRIPE_API_URL: 'https://stripe.test/v1',
    STRIPE_WEBHOOK_SECRET: 'hunter 6',
    TWILIO_ACCOUNT_SID: 'hunter2',
    TWILIO_AUTH_TOKEN: 'hunter 3',
    TWILIO_FROM: '07700',
    TWILIO_API_URL: 'ftp://x',
    FCM_PROJECT_ID: 'x y',
    FCM_CLIENT_EMAIL: 'nobody',
    FCM_PRIVATE_KEY: 'hunter4',
    FCM_API_URL: 'x',
    FCM_TOKEN_URL: 'https://x/?y',
  };
  const changed = Object.keys(wrong).filter(
    (name) => wrong[name as keyof typeof wrong] !== real[name as keyof typeof real],
  );
  assert.deepEqual(names(wrong).toSorted(), changed.toSorted());
  assert.doesNotMatch(faultsOf(wrong).join(), /hunter/);
  assert.deepEqual(
    names({ ...real, FCM_PRIVATE_KEY: '-----BEGIN PRIVATE KEY-----\nhunter\n-----END PRIVATE KEY-----' }),
    ['FCM_PRIVATE_KEY'],
  );
  assert.deepEqual(names({ ...real, TWILIO_MESSAGING_SERVICE_SID: 'x' }), [
    'TWILIO_FROM',
    'TWILIO_MESSAGING_SERVICE_SID',
  ]);
  assert.deepEqual(names({ ...real, FCM_SERVICE_ACCOUNT: '{hunter' }), ['FCM_SERVICE_ACCOUNT']);
  assert.deepEqual(names({ ...real, FCM_SERVICE_ACCOUNT: '{"project_id":7}' }), [
    'FCM_PROJECT_ID',
    'FCM_CLIENT_EMAIL',
    'FCM_PRIVATE_KEY',
  ]);
});

test('wants the providers said with another event store', () => {
  const faults = faultsOf({ EVENTSTORE_URL: 'esdb://x' });
  for (const name of ['PAYMENTS', 'NOTIFICATIONS'])
    assert.ok(
      faults.some((fault) => fault.startsWith(`${name} must be one of`)),
      name,
    );
});

test('takes several hosts in the addresses of engines', () => {
  const config = loadConfig({
    EVENTSTORE_URL: 'esdb://a:2113,b:2113?tls=false',
    MONGODB_URL: 'mongodb://u:p@a:27017,b:27017/gift?replicaSet=r',
    TOKEN_KEY: 'k'.repeat(32),
    HASH_KEY: 'k'.repeat(32),
    MASTER_KEY: 'k'.repeat(32),
    SEAL_KEY: 'k'.repeat(32),
    KEYS_URL: 'embedded',
    PAYMENTS: 'simulated',
    NOTIFICATIONS: 'simulated',
  });
  assert.equal(config.eventStoreUrl, 'esdb://a:2113,b:2113?tls=false');
  assert.equal(config.mongodbUrl, 'mongodb://u:p@a:27017,b:27017/gift?replicaSet=r');
});

test('wants keys and providers said with an event store that others share', () => {
  const faults = faultsOf({ EVENTSTORE_URL: 'esdb+discover://events.example' });
  for (const name of ['TOKEN_KEY', 'HASH_KEY', 'MASTER_KEY', 'SEAL_KEY', 'KEYS_URL', 'PAYMENTS', 'NOTIFICATIONS'])
    assert.equal(faults.filter((fault) => fault.startsWith(`${name} must be `)).length, 1, name);
});

test('wants a port each for the API, its health and /ops', () => {
  for (const [env, fault] of [
    [{ PORT: '4000', METRICS_PORT: '4000' }, 'METRICS_PORT must be another than PORT'],
    [{ METRICS_PORT: '3000' }, 'METRICS_PORT must be another than PORT'],
    [{ OPS_PORT: '3000' }, 'OPS_PORT must be another than PORT'],
    [{ METRICS_PORT: '9000', OPS_PORT: '9000' }, 'OPS_PORT must be another than METRICS_PORT'],
  ] as const)
    assert.deepEqual(
      faultsOf(env).map((one) => one.split(',')[0]),
      [fault],
    );
  for (const env of [
    { PORT: '0', METRICS_PORT: '0', OPS_PORT: '0' },
    { METRICS_PORT: '9000', OPS_PORT: '9001' },
    { PORT: '4000', METRICS_PORT: '4000', ROLES: 'worker' },
  ])
    assert.deepEqual(faultsOf(env), []);
});

test('reports a misspelt exporter of traces', () => {
  assert.deepEqual(faultsOf({ OTEL_TRACES_EXPORTER: 'otpl' }), [
    'OTEL_TRACES_EXPORTER must be a list of otlp, console, zipkin, none; "otpl" is none of them',
  ]);
  assert.deepEqual(faultsOf({ OTEL_TRACES_EXPORTER: 'console' }), []);
});

test('takes an empty variable for absent', () => {
  assert.equal(loadConfig({ PORT: '', ROLES: ' ', TOKEN_KEY: '' }).port, 3000);
});

test("warns of a real provider's secret without a choice of the provider, and never shows it", () => {
  const warnings = (env: Record<string, string>): readonly string[] | undefined => loadConfig(env).warnings;
  const secrets = { STRIPE_SECRET_KEY: 'sk_live_hunter1', TWILIO_AUTH_TOKEN: 'hunter2', FCM_PRIVATE_KEY: 'hunter3' };
  assert.deepEqual(warnings(secrets), [
    'PAYMENTS is not set though STRIPE_SECRET_KEY is, so nobody is charged: say PAYMENTS=stripe, or PAYMENTS=simulated',
    'NOTIFICATIONS is not set though TWILIO_AUTH_TOKEN, FCM_PRIVATE_KEY is, so nobody is told: say NOTIFICATIONS=real, or NOTIFICATIONS=simulated',
  ]);
  assert.equal(warnings({ ...secrets, PAYMENTS: 'simulated', NOTIFICATIONS: 'simulated' }), undefined, 'a drill');
  assert.equal(warnings({ STRIPE_WEBHOOK_SECRET: 'whsec_1' }), undefined, 'clients are tried so');
});

test('shows the table of settings in docs/settings.md and .env.example (npm run settings writes them)', async () => {
  const root = new URL('../../../', import.meta.url);
  const { settingsTable, withTable, envExample } = (await import(new URL('scripts/settings.mjs', root).href)) as {
    settingsTable(settings: typeof ALL_SETTINGS): string[];
    withTable(page: string, table: string[]): string;
    envExample(settings: typeof ALL_SETTINGS): string;
  };
  const page = readFileSync(new URL('docs/settings.md', root), 'utf8');
  const table = settingsTable(ALL_SETTINGS);
  assert.equal(withTable(page, table), page);
  assert.ok(ALL_SETTINGS.every(({ name }) => table.some((line) => line.startsWith(`| \`${name}\` |`))));
  assert.equal(envExample(ALL_SETTINGS), readFileSync(new URL('.env.example', root), 'utf8'));
});

test('serves by as many processes as there are processors where PROCESSES is auto', () => {
  assert.equal(loadConfig({ PROCESSES: 'auto' }).processes, availableParallelism());
  assert.equal(loadConfig({ PROCESSES: '3' }).processes, 3);
  for (const wrong of ['0', '65', 'all'])
    assert.deepEqual(faultsOf({ PROCESSES: wrong }), [
      `PROCESSES must be auto, or a whole number from 1 to 64, not ${JSON.stringify(wrong)}`,
    ]);
});

test.run();
