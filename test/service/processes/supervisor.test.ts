/** Several processes behind one port (`PROCESSES`), as they are run for real: deaths, starts that fail, stops. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { suite } from 'uvu';
import { EMBEDDED } from '../../support/engines/engines.js';
import { freePort } from '../../support/engines/serverProcess.js';
import { eventually, FOR_EVER_MS } from '../../support/assertions/until.js';
import { buy } from '../../support/service/giftFlow.js';
import { runs } from '../../support/service/mainProcess.js';
import { releaseFolder } from '../../support/service/releaseFolder.js';
import { type RawReply, sendRaw } from '../../support/service/rawHttp.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import {
  clientTokenOf,
  request,
  type ServiceProcess,
  startProcess,
  startService,
  untilReady,
  userTokenOf,
} from '../../support/service/service.js';

interface Context {
  dir: string;
  settings: Record<string, string>;
  running: Running | undefined;
}

const test = suite<Context>('several processes behind one port');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-processes-'));
  context.settings = { DATA_DIR: context.dir, PORT: '0', LOG_LEVEL: 'info', PROCESSES: '2' };
  context.running = undefined;
});
test.after.each(async ({ dir, running }) => {
  if (running !== undefined && !isGone(running.child.pid!)) {
    // A process that lives a moment longer than its supervisor writes into the folder while it is removed. A frozen
    // supervisor starts no other.
    running.child.kill('SIGSTOP');
    const pids = running.workers();
    await running.end('SIGKILL');
    await eventually(() => pids.every(isGone));
  }
  rmSync(dir, { recursive: true, force: true });
});

interface Running extends ServiceProcess {
  readonly url: string;
  /** Ids of the processes that serve. */
  workers(): readonly number[];
}

async function start(
  context: Context,
  settings: Readonly<Record<string, string>> = {},
  { main, node }: { readonly main?: string; readonly node?: string } = {},
): Promise<Running> {
  const started = await startProcess({ ...context.settings, ...settings }, main, node);
  const { url = '', child } = started;
  const running = { ...started, url, workers: () => childrenOf(child.pid!) };
  context.running = running;
  await untilReady(url);
  return running;
}

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`);

/** Gifts of one purchase, made before the processes start. */
async function giftsIn(dir: string, count: number): Promise<readonly string[]> {
  const service = await startService({ dataDir: dir, engines: EMBEDDED, catalogue: CATALOGUE, split: false });
  try {
    return await buy(
      service,
      'latte',
      Array.from({ length: count }, (_, n) => ({ phone_number: `+4477009001${String(n).padStart(2, '0')}` })),
    );
  } finally {
    await service.close();
  }
}

const partsOf = async (url: string): Promise<Record<string, { ready: boolean; detail: string }>> =>
  (await request(`${url}/readyz`, 'GET')).json.parts;

test('goes on and loses no acknowledged redemption when a process is killed, and starts it again', async (context) => {
  const gifts = await giftsIn(context.dir, 40);
  const { url, workers, child } = await start(context);
  const [killed = 0, other = 0] = workers();
  const token = await userTokenOf(url, 'till-coffee');
  const statuses: number[] = [];
  let broken = 0;

  async function redeemed(gift: string): Promise<void> {
    const key = randomUUID();
    // Another try, with the same key, only where the connection broke: its process was killed.
    for (;;) {
      const reply = await request(`${url}/api/v2/gifts/${gift}/redemptions`, 'POST', {
        token,
        key,
        body: { location_id: 'bean-soho' },
      }).catch(() => undefined);
      if (reply === undefined) broken += 1;
      else return void statuses.push(reply.status);
    }
  }
  const waiting = [...gifts];
  const till = async (): Promise<void> => {
    for (let gift = waiting.pop(); gift !== undefined; gift = waiting.pop()) {
      await redeemed(gift);
      if (statuses.length === 10) process.kill(killed, 'SIGKILL');
    }
  };
  await Promise.all(Array.from({ length: 6 }, till));
  assert.deepEqual(
    statuses,
    gifts.map(() => 201),
    `${broken} connections broke`,
  );
  for (const gift of gifts) {
    const { data } = (await request(`${url}/api/v2/gifts/${gift}`, 'GET', { token })).json;
    assert.equal(data.gift_status, 'redeemed');
  }
  await eventually(async () => (await partsOf(url))['processes']?.detail === '2 of 2 serve');
  assert.ok(workers().includes(other) && !workers().includes(killed));
  const metrics = (await request(`${url}/metrics`, 'GET')).text;
  assert.match(metrics, /^gift_process_deaths_total\{process_number="1"\} 1$/m);
  assert.equal(child.exitCode, null);
});

test('hands no connection to a process that does not serve yet, also where all have died', async (context) => {
  const { url, workers } = await start(context);
  const pids = workers();
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await eventually(() => pids.every(isGone));
  const statuses: number[] = [];
  await eventually(async () => {
    const reply = await request(`${url}/healthz`, 'GET').catch(() => undefined);
    if (reply !== undefined) statuses.push(reply.status);
    return (await partsOf(url).catch(() => undefined))?.['processes']?.detail === '2 of 2 serve';
  });
  assert.deepEqual(new Set(statuses), new Set([200]));
});

test('starts a process again once the system can start processes again', async (context) => {
  const node = join(context.dir, 'node');
  copyFileSync(process.execPath, node);
  const { url, workers, child, lines, end } = await start(context, {}, { node });
  // As while a package manager replaces Node, or where the limit of processes is reached.
  renameSync(node, `${node}.away`);
  process.kill(workers()[0]!, 'SIGKILL');
  await eventually(() => lines.some((line) => line.includes('ENOENT')));
  assert.match((await partsOf(url))['processes']?.detail ?? '', /^1 of 2 serve, process \d has died/);
  renameSync(`${node}.away`, node);
  await eventually(async () => (await partsOf(url))['processes']?.detail === '2 of 2 serve');
  await end('SIGTERM');
  assert.deepEqual([child.exitCode, child.signalCode], [0, null], lines.join('\n'));
});

test('starts no process of another release in the place of one that died', async (context) => {
  const { main, remove } = releaseFolder();
  try {
    const { url, workers, lines } = await start(context, {}, { main });
    // As while a deployment has put the next release in place, and has not restarted the service yet.
    const file = join(dirname(main), '..', '..', 'package.json');
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), version: '99.0.0' }));
    process.kill(workers()[0]!, 'SIGKILL');
    await eventually(() => lines.some((line) => line.startsWith('this is release 99.0.0, ')));
    assert.match((await partsOf(url))['processes']?.detail ?? '', /^1 of 2 serve, process \d has died/);
  } finally {
    remove();
  }
});

test('shows all processes on one page of metrics and in one readiness, whichever answers', async (context) => {
  const { url, workers } = await start(context);
  const metrics = (await request(`${url}/metrics`, 'GET')).text;
  const helps = [...metrics.matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name);
  assert.equal(new Set(helps).size, helps.length);
  for (const number of [1, 2]) {
    assert.match(metrics, new RegExp(`^gift_process_serves\\{process_number="${number}"\\} 1$`, 'm'));
    assert.match(metrics, new RegExp(`^process_start_time_seconds\\{process_number="${number}"\\} \\d+$`, 'm'));
  }
  const [frozen = 0] = workers();
  process.kill(frozen, 'SIGSTOP');
  // One connection at most waits for the frozen process, so another one is answered.
  const shown = Array.from({ length: 2 }, () => sendRaw(url, get('/readyz'), { waitMs: FOR_EVER_MS }));
  try {
    const reply = await Promise.race(shown);
    assert.match(reply?.body ?? '', /process \d does not answer/);
    assert.equal(reply?.status, 503);
    const page = Array.from({ length: 2 }, () => sendRaw(url, get('/metrics'), { waitMs: FOR_EVER_MS }));
    shown.push(...page);
    const { body = '' } = (await Promise.race(page)) ?? {};
    const serving = [...body.matchAll(/^gift_process_serves\{process_number="\d"\} (\d)$/gm)].map(
      ([, value = '']) => value,
    );
    assert.deepEqual(serving.toSorted(), ['0', '1'], 'an alert tells of the frozen one');
  } finally {
    process.kill(frozen, 'SIGCONT');
  }
  await Promise.all(shown);
  await untilReady(url);
});

test('ends the connection that a process was handed and died without accepting', async (context) => {
  const { url, workers } = await start(context);
  const [frozen = 0] = workers();
  process.kill(frozen, 'SIGSTOP');
  // One of the first two is handed to the frozen process, so that two answers tell that it was.
  const replies: (RawReply | undefined)[] = [];
  const connections = Array.from({ length: 3 }, async () =>
    replies.push(await sendRaw(url, get('/healthz'), { waitMs: FOR_EVER_MS })),
  );
  await eventually(() => replies.length === 2);
  process.kill(frozen, 'SIGKILL');
  await Promise.all(connections);
  assert.deepEqual(
    replies.map((reply) => reply?.status),
    [200, 200, undefined],
  );
});

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

test('ends with the words and the exit code of a process that can not start', async ({ dir, settings }) => {
  const taken = createServer().listen(0, '127.0.0.1');
  const file = join(dir, 'file');
  writeFileSync(file, '');
  try {
    const port = await new Promise<number>((resolve) =>
      taken.once('listening', () => resolve((taken.address() as { port: number }).port)),
    );
    const { code, errors } = await runs({ ...settings, PORT: String(port) });
    assert.deepEqual([code, errors], [1, `port ${port} of 127.0.0.1 is taken: set PORT to a free one\n`]);
  } finally {
    taken.close();
  }
  const { code, errors } = await runs({ ...settings, DATA_DIR: file });
  assert.equal(code, 1);
  assert.match(errors, /^DATA_DIR: .* a file stands there[^\n]*\n$/);
});

test('finishes requests at SIGTERM and ends with 0, and no process is left', async (context) => {
  const { url, workers, child, lines, end } = await start(context);
  const pids = workers();
  // More connections than processes, so that each has a request under way when the signal comes.
  const requests = Array.from({ length: 4 }, () => slowRequest(url));
  await Promise.all(requests.map(async ({ begun }) => begun));
  const stopped = end('SIGTERM');
  await eventually(() => lines.filter((line) => line.includes('"stopping"')).length > pids.length);
  for (const { finish } of requests) finish();
  await stopped;
  assert.deepEqual([child.exitCode, child.signalCode], [0, null], lines.join('\n'));
  for (const { answer } of requests) assert.match(await answer, /\r\n\r\nHTTP\/1\.1 401 /);
  assert.ok(pids.every(isGone));
});

interface SlowRequest {
  /** Resolves once the process waits for the rest of the body. */
  readonly begun: Promise<boolean>;
  readonly answer: Promise<string>;
  finish(): void;
}

function slowRequest(url: string): SlowRequest {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const body = JSON.stringify({ grant_type: 'client_credentials', client_id: 'x', client_secret: 'y' });
  socket.write(
    `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return {
    begun: eventually(() => text.startsWith('HTTP/1.1 100 ')),
    answer: new Promise((resolve) => socket.once('close', () => resolve(text))),
    finish: () => void socket.write(body),
  };
}

test('leaves no process behind when the one that supervises is killed', async (context) => {
  const port = String(await freePort());
  const { workers, child, end } = await start(context, { PORT: port });
  const pids = workers();
  assert.equal(pids.length, 2);
  await end('SIGKILL');
  assert.equal(child.signalCode, 'SIGKILL');
  await eventually(() => pids.every(isGone));
  // Port and data folder are free.
  const again = await start(context, { PORT: port });
  await again.end();
});

test('refuses to reset a sandbox that several processes serve', async (context) => {
  await giftsIn(context.dir, 1);
  const { url } = await start(context, { SANDBOX: '1' });
  const reply = await request(`${url}/sandbox/reset`, 'POST', { token: await clientTokenOf(url) });
  assert.deepEqual([reply.status, reply.headers.get('error-code')], [409, 'reset_refused'], reply.text);
});

test.run();
