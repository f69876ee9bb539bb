import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore.js';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore.js';
import { importCatalogue } from '../../src/commands/import/importCatalogue.js';
import { loadConfig } from '../../src/config.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { openEventStore } from '../../src/engines.js';
import { loadKeys } from '../../src/keys.js';
import { gifts } from '../../src/projections/gifts.js';
import { collectionOf } from '../../src/projections/projection.js';
import { startEventStoreDouble } from '../support/eventStoreDouble.js';
import { openFcmServer } from '../support/fcmServer.js';
import { purchaseOf } from '../support/giftFlow.js';
import { missingIn, readRunbook, runCommand, type RunbookCommand } from '../support/runbook.js';
import { eventually, type Reply, request, type ServiceProcess, startProcess, untilReady } from '../support/service.js';
import { openStripeServer, type StripeServer } from '../support/stripeServer.js';
import { CATALOGUE } from '../support/testCatalogue.js';
import { openTwilioServer } from '../support/twilioServer.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const chapters = readRunbook(join(ROOT, 'docs/runbook.md'));
const ran = new Set<RunbookCommand>();
const test = suite('runbook');

/** A chapter's trouble: a data folder, processes of the service, and what a command line needs. */
interface Trouble {
  readonly dir: string;
  readonly env: Record<string, string>;
  /** Starts a process of the service. */
  start(more?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  /** Runs the chapter's commands from where it is, up to the first that `last` matches, or the end. */
  follow(last?: RegExp): Promise<void>;
  /** As `ann`. */
  ask(url: string, method: string, path: string, body?: object): Promise<Reply>;
}

/** Everything that the commands of a chapter are run in. */
async function inTrouble(chapter: string, settings: Readonly<Record<string, string>>, use: (trouble: Trouble) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'gift-runbook-'));
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'gift'), `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, 'dist/src/cli/gift.js')}" "$@"\n`);
  chmodSync(join(bin, 'gift'), 0o755);
  const env: Record<string, string> = { PATH: `${bin}:${process.env['PATH'] ?? ''}`, DATA_DIR: join(dir, 'data'), BACKUPS: dir, CLIENT: 'app', SECRET: 'app-secret', ...settings };
  const { PATH: _path, BACKUPS: _b, CLIENT: _c, SECRET: _s, ...service } = env;
  const processes: ServiceProcess[] = [];
  const waiting = [...(chapters.get(chapter) ?? [])];
  const tokens = new Map<string, string>();
  try {
    const config = loadConfig(service);
    const { hashKey } = loadKeys(config);
    const events = await openEventStore(config);
    await importCatalogue({ events, hash: keyedHash(hashKey), now: () => new Date().toISOString() }, CATALOGUE, { by: { user: 'cli:test' } });
    await events.close();
    await use({
      dir,
      env,
      async start(more = {}) {
        const started = await startProcess({ ...service, PORT: '0', CHARGE_WAIT_MS: '300', ...more });
        processes.push(started);
        if (started.url !== undefined) Object.assign(env, { API: started.url, METRICS: started.url });
        return started;
      },
      async follow(last) {
        for (let command = waiting.shift(); command !== undefined; command = waiting.shift()) {
          await runCommand(command, env);
          ran.add(command);
          if (last?.test(command.command) === true) return;
        }
        assert.equal(last, undefined, `${chapter}: no command is like ${String(last)}`);
      },
      async ask(url, method, path, body) {
        if (!tokens.has(url)) {
          const client = await request(`${url}/oauth/token`, 'POST', { body: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' } });
          const grant = { grant_type: 'password', username: 'ann@test.example', password: 'ann-password' };
          tokens.set(url, (await request(`${url}/oauth/token`, 'POST', { token: client.json.access_token as string, body: grant })).json.access_token as string);
        }
        return request(url + path, method, { token: tokens.get(url) ?? '', ...(body === undefined ? {} : { body }) });
      },
    });
  } finally {
    for (const one of processes.reverse()) await one.end('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Buys a gift, by default one to be shared; notes it and its transaction for the commands. */
async function buyInto({ env, ask }: Trouble, url: string, receivers?: readonly object[]): Promise<string> {
  const reply = await ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte', receivers));
  assert.equal(reply.status, 201, reply.text);
  Object.assign(env, { TRANSACTION: reply.json.data.id as string, GIFT: reply.json.data.gifts[0] as string });
  return env['GIFT'] ?? '';
}

test('first of all', async () => {
  await inTrouble('', {}, async ({ start, follow }) => {
    const { url = '' } = await start();
    await untilReady(url);
    await follow();
  });
});

test('wrong read model: a document that says something else than the log', async () => {
  await inTrouble('Wrong read model', {}, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    const gift = await buyInto(trouble, url);
    await eventually(async () => ((await readLog(trouble.env['DATA_DIR'] ?? '', gift)) > 0 ? true : undefined));
    const store = await openEmbeddedReadStore({ dir: trouble.env['DATA_DIR'] ?? '' });
    try {
      await eventually(async () => {
        const served = await store.get(collectionOf(gifts), gift);
        if (served === undefined) return undefined;
        const [corrected] = await store.correct(collectionOf(gifts), [{ id: gift, expected: served.position, document: { ...served, body: { ...served.body, message_id: 'falsified' } } }]);
        return corrected === true ? true : undefined;
      });
    } finally {
      await store.close();
    }
    await trouble.follow();
  });
});

test('growing lag: the projector is gone, and comes back', async () => {
  await inTrouble('Growing lag', {}, async (trouble) => {
    const first = await trouble.start();
    await untilReady(first.url ?? '');
    await buyInto(trouble, first.url ?? '');
    await first.end();
    const api = await trouble.start({ ROLES: 'api,processor,worker' });
    const gift = trouble.env['GIFT'] ?? '';
    const redeemed = await eventually(async () => {
      const reply = await trouble.ask(api.url ?? '', 'POST', `/api/v2/gifts/${gift}/redemptions`, { location_id: 'bean-soho' });
      return reply.status === 503 ? undefined : reply;
    });
    assert.equal(redeemed.status, 201, redeemed.text);
    await trouble.follow(/projections status/);
    await trouble.start({ ROLES: 'projector' });
    await trouble.follow();
  });
});

test('parked purchases: a charge that the provider refuses to make', async () => {
  await withProviders(async (settings, stripe) => {
    await inTrouble('Parked purchases', settings, async (trouble) => {
      const { url = '' } = await trouble.start();
      await untilReady(url);
      const refusal = { error: { type: 'invalid_request_error', code: 'resource_missing', param: 'payment_method', message: 'No such PaymentMethod' } };
      stripe.fault = () => ({ kind: 'answer', answer: { status: 400, body: refusal } });
      await buyInto(trouble, url);
      trouble.env['OTHER'] = trouble.env['TRANSACTION'] ?? '';
      await buyInto(trouble, url);
      await trouble.follow(/parked show/);
      stripe.fault = () => undefined;
      await trouble.follow();
      assert.deepEqual([stripe.charges(trouble.env['TRANSACTION'] ?? ''), stripe.charges(trouble.env['OTHER'] ?? '')], [1, 0]);
    });
  });
});

test('provider down: charges wait, and are made when it is back', async () => {
  await withProviders(async (settings, stripe) => {
    await inTrouble('Provider down', settings, async (trouble) => {
      const { url = '' } = await trouble.start();
      await untilReady(url);
      stripe.fault = () => ({ kind: 'lost', when: 'undone' });
      for (let n = 0; n < 6; n++) await buyInto(trouble, url);
      await trouble.follow(/gift_process_/);
      stripe.fault = () => undefined;
      await trouble.follow();
      assert.equal(stripe.charges(trouble.env['TRANSACTION'] ?? ''), 1);
    });
  });
});

/** Stand-ins for the real providers, and the settings that name them. */
async function withProviders(use: (settings: Record<string, string>, stripe: StripeServer) => Promise<void>): Promise<void> {
  const [stripe, twilio, fcm] = await Promise.all([openStripeServer(), openTwilioServer(), openFcmServer()]);
  const settings = {
    PAYMENTS: 'stripe', STRIPE_SECRET_KEY: stripe.secretKey, STRIPE_WEBHOOK_SECRET: 'whsec_of_a_test', STRIPE_API_URL: stripe.url,
    NOTIFICATIONS: 'real', TWILIO_ACCOUNT_SID: twilio.accountSid, TWILIO_AUTH_TOKEN: twilio.authToken, TWILIO_FROM: '+447700900000', TWILIO_API_URL: twilio.url,
    FCM_PROJECT_ID: fcm.projectId, FCM_CLIENT_EMAIL: fcm.clientEmail, FCM_PRIVATE_KEY: fcm.privateKey, FCM_API_URL: fcm.url, FCM_TOKEN_URL: fcm.tokenUrl,
  };
  try {
    await use(settings, stripe);
  } finally {
    await Promise.all([stripe, twilio, fcm].map((one) => one.close()));
  }
}

test('lost engine: an EventStoreDB that is gone for a while', async () => {
  const double = await startEventStoreDouble();
  const settings = { EVENTSTORE_URL: double.url, TOKEN_KEY: 't'.repeat(40), HASH_KEY: 'h'.repeat(40), PAYMENTS: 'simulated', NOTIFICATIONS: 'simulated' };
  try {
    await inTrouble('Lost engine', settings, async (trouble) => {
      const { url = '' } = await trouble.start();
      await untilReady(url);
      await buyInto(trouble, url);
      await double.way.down();
      await trouble.follow(/gift history/);
      await double.way.up();
      await trouble.follow();
    });
  } finally {
    await double.close();
  }
});

test('full disk: appends fail, a backup is made all the same, and room is enough to go on', async () => {
  await inTrouble('Full disk', {}, async (trouble) => {
    const service = await trouble.start();
    const { url = '' } = service;
    await untilReady(url);
    const gift = await buyInto(trouble, url);
    // Files that may not grow are a full disk to who writes them.
    const limit = (bytes: string): void => void execFileSync('prlimit', ['--pid', String(service.child.pid), `--fsize=${bytes}:unlimited`]);
    const data = trouble.env['DATA_DIR'] ?? '';
    limit(String(Math.max(...['events.db', 'events.db-wal'].map((name) => statSync(join(data, name)).size))));
    const refused = await eventually(async () => {
      const reply = await trouble.ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte', Array(500).fill({})));
      return reply.status === 503 ? reply : undefined;
    });
    assert.deepEqual(refused.json, { error: 'Service unavailable.' });
    assert.equal((await trouble.ask(url, 'GET', `/api/v2/gifts/${gift}`)).status, 200);
    await trouble.follow(/gift backup/);
    limit('unlimited');
    await trouble.follow();
    assert.equal((await trouble.ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte'))).status, 201);
  });
});

test('lost machine: restored from the latest backup', async () => {
  await inTrouble('Lost machine', {}, async (trouble) => {
    const { env, dir } = trouble;
    const service = await trouble.start();
    await untilReady(service.url ?? '');
    const gift = await buyInto(trouble, service.url ?? '');
    const backup = { line: 0, command: 'gift backup $BACKUPS/latest.log', expected: [], exitCode: 0 };
    await eventually(async () => ((await readLog(env['DATA_DIR'] ?? '', gift)) > 0 ? true : undefined));
    await runCommand(backup, env);
    await service.end('SIGKILL');
    const lost = env['DATA_DIR'] ?? '';
    env['DATA_DIR'] = join(dir, 'new');
    mkdirSync(env['DATA_DIR']);
    for (const key of ['hash.key', 'token.key']) cpSync(join(lost, key), join(env['DATA_DIR'], key));
    await trouble.follow(/gift restore/);
    const again = await startProcess({ DATA_DIR: env['DATA_DIR'], PORT: '0' });
    try {
      await untilReady(again.url ?? '');
      await trouble.follow();
    } finally {
      await again.end();
    }
  });
});

test('a ticket about one gift', async () => {
  await inTrouble('A ticket about one gift', {}, async (trouble) => {
    const { url = '' } = await trouble.start();
    await untilReady(url);
    await buyInto(trouble, url, [{ phone_number: '07700 900002' }]);
    await trouble.follow();
  });
});

/** How many events the gift's stream has. */
async function readLog(dataDir: string, gift: string): Promise<number> {
  const events = await openEmbeddedEventStore({ dir: dataDir });
  try {
    return (await events.read(`gift-${gift}`)).length;
  } finally {
    await events.close();
  }
}

test('every command of the runbook has been run', () => {
  const all = [...chapters.values()].flat();
  assert.ok(all.length > 20);
  assert.deepEqual(all.filter((command) => !ran.has(command)).map(({ line, command }) => `${line}: ${command}`), []);
});

test('the check sees what is missing', () => {
  const command = { expected: ['a … c', 'd.'], exitCode: 0 };
  assert.equal(missingIn('x\na b c\ny\nd.\n', command, 0), undefined);
  assert.equal(missingIn('d.\na b c\n', command, 0), 'd.');
  assert.equal(missingIn('a b c\ndx\n', command, 0), 'd.');
  assert.match(missingIn('a b c\nd.\n', command, 1) ?? '', /exit code 0, not 1/);
});

test.run();
