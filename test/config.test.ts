import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { suite } from 'uvu';
import { ConfigError, loadConfig } from '../src/config.js';

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

test('without any setting the service runs whole', () => {
  const config = loadConfig({});
  assert.deepEqual(
    { ...config, roles: [...config.roles] },
    {
      port: 3000,
      host: '127.0.0.1',
      dataDir: resolve('data'),
      roles: ['api', 'projector', 'processor', 'worker'],
      trustedProxies: [],
      chargeWaitMs: 2000,
      accessTokenTtl: 900,
      refreshTokenTtl: 2_592_000,
      sessionMaxAge: 7_776_000,
      logLevel: 'info',
      payments: 'simulated',
      notifications: 'simulated',
    },
  );
});

test('every setting', () => {
  const key = 'k'.repeat(32);
  const config = loadConfig({
    PORT: '0', HOST: '::1', DATA_DIR: '/tmp/x', ROLES: 'api, worker', PUBLIC_URL: 'https://gifts.example/', APP_URL: 'https://app.example', TRUSTED_PROXIES: '10.0.0.0/8, ::1/128',
    CHARGE_WAIT_MS: '0', ACCESS_TOKEN_TTL: '60', REFRESH_TOKEN_TTL: '61', SESSION_MAX_AGE: '62', LOG_LEVEL: 'debug', METRICS_PORT: '9000', TOKEN_KEY: `${key},${key}2`, HASH_KEY: key,
    PAYMENTS: 'simulated', NOTIFICATIONS: 'simulated', NATS_URL: 'nats://a:4222,nats://b:4222',
  });
  assert.equal(config.natsUrl, 'nats://a:4222,nats://b:4222');
  assert.deepEqual([...config.roles], ['api', 'worker']);
  assert.deepEqual(config.trustedProxies, ['10.0.0.0/8', '::1/128']);
  assert.deepEqual([config.publicUrl, config.appUrl, config.metricsPort, config.port, config.host], ['https://gifts.example', 'https://app.example', 9000, 0, '::1']);
  assert.deepEqual([config.tokenKeys, config.hashKey], [[key, `${key}2`], key]);
});

test('every fault is named at once, and no secret shown', () => {
  const faults = faultsOf({
    PORT: '65536', METRICS_PORT: 'x', ROLES: 'api,cook', PUBLIC_URL: 'ftp://x', APP_URL: 'https://x/?a=1', TRUSTED_PROXIES: '10.0.0.1', CHARGE_WAIT_MS: '-1', ACCESS_TOKEN_TTL: '0',
    LOG_LEVEL: 'loud', TOKEN_KEY: `${'k'.repeat(32)},hunter2`, HASH_KEY: 'hunter3', PAYMENTS: 'cash', NOTIFICATIONS: 'pigeon', EVENTSTORE_URL: 'esdb://u:hunter4@x', NATS_URL: 'http://u:hunter5@x',
  });
  const names = ['PORT', 'METRICS_PORT', 'ROLES', 'PUBLIC_URL', 'APP_URL', 'TRUSTED_PROXIES', 'CHARGE_WAIT_MS', 'ACCESS_TOKEN_TTL', 'LOG_LEVEL', 'TOKEN_KEY', 'HASH_KEY', 'PAYMENTS', 'NOTIFICATIONS', 'EVENTSTORE_URL', 'NATS_URL'];
  for (const name of names) assert.ok(faults.some((fault) => fault.startsWith(`${name} `)), name);
  assert.equal(faults.length, names.length);
  assert.ok(!faults.join().includes('hunter'));
  assert.throws(() => loadConfig({ PORT: 'x' }), /settings are wrong:\n {2}PORT must be a whole number from 0 to 65535, not "x"/);
});

test('an empty variable counts as absent', () => {
  assert.equal(loadConfig({ PORT: '', ROLES: ' ', TOKEN_KEY: '' }).port, 3000);
});

test.run();
