/**
 * Engines that can't be used as set: the process ends at once, with one line that names the setting and says what to
 * change.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { suite } from 'uvu';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { EngineError } from '../../src/lib/engineError.js';
import { openMongoReadStore } from '../../src/adapters/mongodb/readStore.js';
import { openReadStore } from '../../src/service/engines.js';
import type { NewEvent, RecordedEvent } from '../../src/ports/eventStore.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { putAnchor } from '../../src/runtime/log/logAnchor.js';
import { HOOKS_CERTIFICATE, HOOKS_KEY } from '../support/fixtures/hooksCertificate.js';
import { gift } from '../support/service/cli.js';
import { startEventStoreDouble } from '../support/engines/eventStoreDouble.js';
import { HELLO, openedWell, startFakeMongo } from '../support/engines/fakeMongo.js';
import { runs } from '../support/service/mainProcess.js';
import { contractServer, mongoMissing, newDatabase } from '../support/engines/mongoServer.js';
import { natsMissing, natsOfVersion, startNats } from '../support/engines/natsServer.js';
import { freePort } from '../support/engines/serverProcess.js';

const test = suite<{ dir: string }>('engines at start');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-engines-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

/** With an EventStoreDB these must be said. */
const SAID = {
  TOKEN_KEY: 'the key that signs the access tokens of tests',
  HASH_KEY: 'the key of the hashes in the stream names of tests',
  MASTER_KEY: 'the key that wraps the secrets of the key store of tests',
  SEAL_KEY: 'the key that signs the heads of the tree of tests',
  KEYS_URL: 'embedded',
  PAYMENTS: 'simulated',
  NOTIFICATIONS: 'simulated',
};
/** Stands in addresses, and in no message. */
const SECRET = 's3cret';

/** Ends with code 1 and this one line. */
async function refused(env: Readonly<Record<string, string>>, message: RegExp): Promise<void> {
  const { code, errors } = await runs({ PORT: '0', NODE_NO_WARNINGS: '1', ...env });
  assert.equal(code, 1, errors);
  assert.match(errors, message);
  assert.match(errors, /^[^\n]+\n$/, 'one line, no stack');
  assert.ok(!errors.includes(SECRET), errors);
}

test('names a certificate that can not be verified, and its setting, at once', async ({ dir }) => {
  const server = createServer({ cert: HOOKS_CERTIFICATE, key: HOOKS_KEY, ALPNProtocols: ['h2'] });
  // The clients end the handshakes.
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const inFolder = (name: string): Record<string, string> => ({
    DATA_DIR: join(dir, name),
    ENGINES_WAIT_MS: '600000',
  });
  const fault = (setting: string): RegExp =>
    new RegExp(
      `^${setting}: the server's certificate can't be verified \\(self-signed certificate\\): name the authority that signed it by tlsCAFile=… in the address, or in NODE_EXTRA_CA_CERTS`,
    );
  try {
    const addresses = [`esdb://x:${SECRET}@${at}`, `esdb://${at},${at}`, `esdb+discover://${at}`];
    await Promise.all([
      ...addresses.map(async (EVENTSTORE_URL, n) =>
        refused({ ...SAID, ...inFolder(`log-${n}`), EVENTSTORE_URL }, fault('EVENTSTORE_URL')),
      ),
      ...['MONGODB_URL', 'KEYS_URL'].map(async (setting) =>
        refused({ ...inFolder(setting), [setting]: `mongodb://${at}/gift?tls=true` }, fault(setting)),
      ),
    ]);
  } finally {
    server.close();
  }
});

test('EVENTSTORE_URL: reports a missing server, an invalid address, a server without TLS', async ({ dir }) => {
  const port = await freePort();
  const nobody =
    /^EVENTSTORE_URL: no EventStoreDB answers there: check the address, whether the server runs, and whether it has TLS/;
  const double = await startEventStoreDouble();
  await Promise.all([
    refused({ ...SAID, DATA_DIR: dir, EVENTSTORE_URL: `esdb://admin:${SECRET}@127.0.0.1:${port}?tls=false` }, nobody),
    refused({ ...SAID, DATA_DIR: join(dir, 'b'), EVENTSTORE_URL: double.url.replace('?tls=false', '') }, nobody),
    refused(
      { ...SAID, DATA_DIR: join(dir, 'c'), EVENTSTORE_URL: `esdb://admin:${SECRET}@host:port?tls=false` },
      /^EVENTSTORE_URL: the address of EventStoreDB can't be used \(esdb:\/\/HOST:PORT/,
    ),
  ]);
  await double.close();
});

test('EVENTSTORE_URL: reports refused credentials, and a server that is too old', async ({ dir }) => {
  const [guarded, old] = await Promise.all([startEventStoreDouble(), startEventStoreDouble({ version: '22.10.1' })]);
  guarded.switches.refuse = { code: 16, details: 'Unauthenticated' };
  await Promise.all([
    refused(
      { ...SAID, DATA_DIR: dir, EVENTSTORE_URL: guarded.url.replace('//', `//admin:${SECRET}@`) },
      /^EVENTSTORE_URL: EventStoreDB refuses access to .*Unauthenticated/,
    ),
    refused(
      { ...SAID, DATA_DIR: join(dir, 'b'), EVENTSTORE_URL: old.url },
      /^EVENTSTORE_URL: EventStoreDB 22\.10\.1 is too old: use 23\.10 or later/,
    ),
  ]);
  await Promise.all([guarded.close(), old.close()]);
});

test('MONGODB_URL: reports a missing server, refused credentials, and a server that is too old', async ({ dir }) => {
  const port = await freePort();
  const guarded = await startFakeMongo((command) =>
    'saslStart' in command
      ? { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg: 'Authentication failed.' }
      : (openedWell(command) ?? {}),
  );
  const old = await startFakeMongo(() => ({}), { ...HELLO, maxWireVersion: 6 });
  await Promise.all([
    refused(
      { DATA_DIR: dir, MONGODB_URL: `mongodb://u:${SECRET}@127.0.0.1:${port}/gift` },
      new RegExp(`^MONGODB_URL: no MongoDB answers at 127\\.0\\.0\\.1:${port}`),
    ),
    refused(
      { DATA_DIR: join(dir, 'b'), MONGODB_URL: guarded.url.replace('//', `//u:${SECRET}@`) },
      /^MONGODB_URL: the credentials are refused/,
    ),
    refused(
      { DATA_DIR: join(dir, 'c'), MONGODB_URL: old.url },
      /^MONGODB_URL: the server's version does not fit, MongoDB 7\.0 or later does/,
    ),
  ]);
  await Promise.all([guarded.stop(), old.stop()]);
});

test('NATS_URL: reports a missing server, and a server that is too old', async ({ dir }) => {
  const port = await freePort();
  const old = await natsOfVersion('2.1.9');
  await Promise.all([
    refused(
      { DATA_DIR: dir, NATS_URL: `nats://u:${SECRET}@127.0.0.1:${port}` },
      /^NATS_URL: no NATS server answers there/,
    ),
    refused({ DATA_DIR: join(dir, 'b'), NATS_URL: old.url }, /^NATS_URL: NATS 2\.1\.9 is too old: use 2\.9 or later/),
  ]);
  await old.close();
});

const noNats = natsMissing({ own: true });
if (noNats === undefined) {
  test('NATS_URL: names a certificate that can not be verified, at once', async ({ dir }) => {
    const [cert, key] = ['certificate.pem', 'key.pem'].map((name) => join(dir, name)) as [string, string];
    writeFileSync(cert, HOOKS_CERTIFICATE);
    writeFileSync(key, HOOKS_KEY);
    const nats = await startNats({ args: ['--tls', '--tlscert', cert, '--tlskey', key] });
    try {
      for (const NATS_URL of [nats.url, nats.url.replace('nats:', 'tls:')])
        await refused(
          { DATA_DIR: dir, ENGINES_WAIT_MS: '600000', NATS_URL },
          /^NATS_URL: the server's certificate can't be verified \(self-signed certificate\): name .* NODE_EXTRA_CA_CERTS/,
        );
    } finally {
      await nats.stop();
    }
  });

  test('NATS_URL: reports refused credentials', async ({ dir }) => {
    const server = await startNats({ args: ['--user', 'u', '--pass', 'p'] });
    await refused(
      { DATA_DIR: dir, NATS_URL: server.url.replace('//', `//u:${SECRET}@`) },
      /^NATS_URL: the credentials are refused/,
    );
    await server.stop();
  });
} else console.log(`skipped: NATS_URL: credentials that are refused, and certificates: ${noNats}`);

test("DATA_DIR: refuses another installation's read store in every role and command", async ({ dir }) => {
  const events = await openEmbeddedEventStore({ dir });
  const { logId } = events;
  await events.close();
  const store = await openEmbeddedReadStore({ dir });
  await store.boundTo('another-log');
  await store.close();
  const message = new RegExp(
    `^DATA_DIR: ${join(dir, 'read.db')} was filled from the log another-log, and the event store holds the log ${logId}: delete it while the service is stopped .+ its log is a new one: put its data back instead`,
  );
  for (const ROLES of ['api', 'projector', 'processor', 'worker']) await refused({ DATA_DIR: dir, ROLES }, message);
  const { code, err } = await gift(dir, ['projections', 'status']);
  assert.equal(code, 1);
  assert.match(err, /was filled from the log another-log/);
  const again = await openEmbeddedReadStore({ dir });
  assert.equal(await again.boundTo(logId), 'another-log');
  await again.close();
});

test('DATA_DIR: refuses a read store that is ahead of its log in every role and command', async ({ dir }) => {
  const events = await openEmbeddedEventStore({ dir });
  const event = (): NewEvent => ({
    id: randomUUID(),
    type: 'ServiceNoted',
    at: new Date().toISOString(),
    data: {},
    metadata: { commandId: randomUUID(), correlationId: randomUUID(), by: {} },
  });
  const kept = event();
  await events.append('notes', [kept], 'none');
  const store = await openReadStore({ dataDir: dir }, events);
  // The last event of the log, or an earlier one.
  await putAnchor(store.records, { stream: 'notes', revision: 0, id: kept.id });
  await events.append('notes', [event()], 0);
  await (await openReadStore({ dataDir: dir }, events)).close();
  for (const lost of [
    { stream: 'notes', revision: 1, id: randomUUID() },
    { stream: 'notes', revision: 7, id: randomUUID() },
  ]) {
    await putAnchor(store.records, lost);
    await assert.rejects(
      openReadStore({ dataDir: dir }, events),
      (error: unknown) =>
        error instanceof EngineError && error.setting === 'DATA_DIR' && error.message.includes(lost.id),
    );
  }
  await store.close();
  await events.close();
  const message = new RegExp(
    `^DATA_DIR: ${join(dir, 'read.db')} has seen the event [\\w-]+ of the log [\\w-]+, which does not hold it: the log was put back to an earlier time: delete it while the service is stopped`,
  );
  // Each looks for the event again for some seconds, since a log may be late.
  const [{ code, err }] = await Promise.all([
    gift(dir, ['projections', 'status']),
    ...['api', 'projector', 'processor', 'worker'].map(async (ROLES) => refused({ DATA_DIR: dir, ROLES }, message)),
  ]);
  assert.equal(code, 1);
  assert.match(err, /the log was put back to an earlier time/);
});

test('blames no read store for a log that does not answer while it is opened', async ({ dir }) => {
  const read = async (): Promise<never> => Promise.reject(new UnavailableError('gone'));
  const store = await openReadStore({ dataDir: dir }, { logId: 'log', read });
  await putAnchor(store.records, { stream: 'notes', revision: 0, id: randomUUID() });
  await (await openReadStore({ dataDir: dir }, { logId: 'log', read })).close();
  await store.close();
});

const noMongo = mongoMissing();
if (noMongo === undefined || (process.env['TEST_MONGODB_URL'] ?? '') !== '') {
  test("MONGODB_URL: refuses another installation's database", async ({ dir }) => {
    const server = await contractServer();
    const database = newDatabase(server.url);
    const store = await openMongoReadStore({ url: database.url });
    await store.boundTo('another-log');
    await store.close();
    await refused(
      { DATA_DIR: dir, MONGODB_URL: database.url, ROLES: 'api' },
      /^MONGODB_URL: the database was filled from the log another-log, and the event store holds the log [\w-]+: name an empty one .+; where that has lost its data, its log is a new one: put its data back instead/,
    );
    await database.destroy();
    await server.stop();
  });
} else console.log(`skipped: MONGODB_URL: a database of another installation: ${noMongo}`);

test('binds an empty read store to the log that opens it first', async ({ dir }) => {
  const [one, other] = [randomUUID(), randomUUID()];
  const read = async (): Promise<RecordedEvent[]> => [];
  const opened: ReadStore[] = [
    await openReadStore({ dataDir: dir }, { logId: one, read }),
    await openReadStore({ dataDir: dir }, { logId: one, read }),
  ];
  await assert.rejects(
    openReadStore({ dataDir: dir }, { logId: other, read }),
    (error: unknown) => error instanceof EngineError && error.setting === 'DATA_DIR',
  );
  for (const store of opened) await store.close();
});

test.run();
