/** The engines of `npm run engines`: what the compose file starts is what `npm test -- --every-engine` looks for. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { freePort } from '../support/engines/serverProcess.js';
import { natsMissing, startNats } from '../support/engines/natsServer.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('docs: engines for tests');

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly image: string;
        readonly ports?: readonly string[];
        readonly volumes?: readonly string[];
        readonly environment?: Readonly<Record<string, string>>;
        readonly command?: readonly string[];
        readonly tmpfs?: readonly string[];
      }
    >
  >;
}

type Settings = Readonly<Record<string, string>>;
const { TEST_ENGINES, answeringEngines } = (await import(
  pathToFileURL(join(ROOT, 'scripts/testEngines.mjs')).href
)) as {
  TEST_ENGINES: Settings;
  answeringEngines: (env: Settings, addresses?: Settings) => Promise<Settings>;
};

const composeAt = (file: string): Compose => parse(readFileSync(join(ROOT, file), 'utf8')) as Compose;
const { services } = composeAt('test/engines/docker-compose.yml');

test('each engine listens on the loopback address, at the port where tests look for it', () => {
  const published = Object.values(services).map(({ ports = [] }) => ports.map((port) => port.split(':')));
  assert.ok(published.every((ports) => ports.length === 1 && ports[0]?.[0] === '127.0.0.1'));
  const looked = Object.values(TEST_ENGINES).map((url) => /:\/\/127\.0\.0\.1:(\d+)/.exec(url)?.[1] ?? '');
  assert.equal(published.map(([port]) => port?.[1] ?? '').toSorted(), looked.toSorted());
});

test('the images are those that the service runs with', () => {
  const deployed = composeAt('docker-compose.yml').services;
  for (const [name, { image }] of Object.entries(services)) assert.is(image, deployed[name]?.image, name);
});

test('nothing is kept', () => {
  for (const [name, { volumes = [] }] of Object.entries(services)) assert.equal(volumes, [], name);
  assert.is(services['eventstore']?.environment?.['EVENTSTORE_MEM_DB'], 'true');
  assert.ok(services['mongodb']?.tmpfs?.includes('/data/db'));
  assert.not(services['nats']?.command?.includes('--jetstream'));
});

test('an engine that does not answer is no default of a setting', async () => {
  const port = await freePort();
  const nowhere = {
    TEST_EVENTSTORE_URL: `esdb://127.0.0.1:${port}?tls=false`,
    TEST_MONGODB_URL: `mongodb://127.0.0.1:${port}/`,
    TEST_NATS_URL: `nats://127.0.0.1:${port}`,
  };
  assert.equal(await answeringEngines({}, nowhere), {});
});

const missing = natsMissing({ own: true });
if (missing !== undefined) console.log(`skipped: an engine that answers is the default of its setting: ${missing}`);
(missing === undefined ? test : test.skip)('an engine that answers is the default of its setting', async () => {
  const server = await startNats({ own: true });
  try {
    const addresses = { TEST_NATS_URL: server.url };
    assert.equal(await answeringEngines({}, addresses), addresses);
    assert.equal(await answeringEngines({ TEST_NATS_URL: 'nats://127.0.0.1:1' }, addresses), {});
    assert.equal(await answeringEngines({ TEST_NATS_URL: '' }, addresses), {});
  } finally {
    await server.stop();
  }
});

test.run();
