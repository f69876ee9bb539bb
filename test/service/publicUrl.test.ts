import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';
import { createLogger } from '../../src/lib/logging/logger.js';
import { addressOf } from '../../src/lib/urls.js';
import { makesDeadLinks } from '../../src/service/deadLinks.js';

const test = suite('where callers reach the service');

test('puts an IPv6 host in brackets', () => {
  assert.equal(
    [addressOf('::1', 3000), addressOf('127.0.0.1', 80), addressOf('gifts.local', 1)],
    ['http://[::1]:3000', 'http://127.0.0.1:80', 'http://gifts.local:1'],
  );
});

test('finds links dead that start with an unspecified address', () => {
  const dead = (env: Record<string, string>): boolean => makesDeadLinks(loadConfig(env));
  for (const HOST of ['0.0.0.0', '::', '::0']) {
    assert.is(dead({ HOST }), true, HOST);
    assert.is(dead({ HOST, ROLES: 'processor' }), true, 'receivers are sent links');
    assert.is(dead({ HOST, ROLES: 'projector,worker' }), false, 'no link is made');
    assert.is(dead({ HOST, PUBLIC_URL: 'https://gifts.example' }), false);
  }
  for (const HOST of ['127.0.0.1', '::1', '10.0.0.7', 'gifts.local']) assert.is(dead({ HOST }), false, HOST);
});

test("warns at a start whose links can't be opened, naming the setting", async () => {
  const dir = mkdtempSync(join(tmpdir(), 'public-url-'));
  try {
    for (const [more, warnings] of [
      [{}, 1],
      [{ PUBLIC_URL: 'https://gifts.example' }, 0],
    ] as const) {
      const lines: string[] = [];
      const logger = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
      // This role makes links and listens nowhere.
      const app = await startApp(
        loadConfig({ DATA_DIR: dir, HOST: '::', PORT: '3000', ROLES: 'processor', ...more }),
        logger,
      );
      await app.close();
      const found = lines.filter((line) => line.includes('PUBLIC_URL is not set'));
      assert.is(found.length, warnings);
      if (warnings > 0) assert.ok(found[0]?.includes('http://[::]:3000'), found[0]);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("warns at a start with a provider's secret and no choice of it", async () => {
  const dir = mkdtempSync(join(tmpdir(), 'unsaid-'));
  try {
    const lines: string[] = [];
    const logger = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
    const app = await startApp(
      loadConfig({ DATA_DIR: dir, ROLES: 'processor', STRIPE_SECRET_KEY: 'sk_live_hunter1' }),
      logger,
    );
    await app.close();
    assert.is(lines.filter((line) => line.includes('PAYMENTS is not set though STRIPE_SECRET_KEY is')).length, 1);
    assert.not.match(lines.join(''), /hunter1/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test.run();
