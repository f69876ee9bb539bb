/** The life of the service's process: signals, closed outputs, the folder it is started in. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { suite } from 'uvu';
import { cleanEnv } from '../support/service/mainProcess.js';
import { natsMissing, startNats } from '../support/engines/natsServer.js';
import { GIFT, MAIN } from '../support/service/programs.js';
import { freePort, killed } from '../support/engines/serverProcess.js';
import { request, startProcess, untilReady } from '../support/service/service.js';
import { testWhere } from '../support/assertions/testWhere.js';
import { eventually } from '../support/assertions/until.js';

const test = suite<{ dir: string }>("the service's process");

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-life-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

test('is neither held up nor ended by traces: a silent collector, a console without a reader', async ({ dir }) => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const env = {
    OTEL_TRACES_EXPORTER: 'otlp,console',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  const service = await startProcess({ DATA_DIR: dir, PORT: '0', LOG_LEVEL: 'info', ...env });
  try {
    const { url = '', child } = service;
    await untilReady(url);
    child.stdout?.destroy();
    child.stderr?.destroy();
    for (let n = 0; n < 20; n++) assert.equal((await request(`${url}/healthz`, 'GET')).status, 200);
    await eventually(() => connected(silent));
    assert.equal((await request(`${url}/api/v2/products`, 'GET')).status, 401);
    assert.equal(child.exitCode, null);
    await service.end('SIGTERM');
    assert.deepEqual([child.exitCode, child.signalCode], [0, null]);
  } finally {
    await service.end('SIGKILL');
    silent.close();
  }
});

const connected = async (server: ReturnType<typeof createServer>): Promise<boolean> =>
  new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count > 0) : reject(error))),
  );

/** Everything that a module loads before it runs, from the build. */
function loadedBefore(file: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/^import .*?["'](\.[^"']+)["'];/gm))
    loadedBefore(join(dirname(file), from), found);
  return found;
}

test('handles signals before anything large is loaded', () => {
  const bytes = [...loadedBefore(MAIN)].reduce((sum, file) => sum + statSync(file).size, 0);
  assert.ok(bytes < 20_000, `${bytes} bytes`);
});

/**
 * Says on standard output when the program begins to listen to SIGTERM. Before that Node itself catches it, and ends by
 * the signal's default, which the first process of a container does not have.
 */
const LISTENS = `process.on('newListener', (name) => { if (name === 'SIGTERM') queueMicrotask(() => require('node:fs').writeSync(1, 'listens')); });`;
const namespaces = spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0;

testWhere(
  test,
  namespaces,
  'no process namespaces can be made here',
  'as the first process of a container it ends by SIGTERM while it is still loading',
  async ({ dir }) => {
    writeFileSync(join(dir, 'listens.cjs'), LISTENS);
    const program = ['--require', join(dir, 'listens.cjs'), MAIN];
    const container = spawn('unshare', ['--pid', '--fork', process.execPath, ...program], {
      env: { ...cleanEnv(), DATA_DIR: join(dir, 'data'), PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(container, 'close');
    let output = '';
    container.stdout.on('data', (chunk: Buffer) => {
      if (output === '')
        process.kill(
          Number(/^\d+/.exec(readFileSync(`/proc/${container.pid}/task/${container.pid}/children`, 'utf8'))?.[0]),
          'SIGTERM',
        );
      output += chunk.toString();
    });
    assert.deepEqual(await ended, [143, null]);
    assert.equal(output, 'listens', 'nothing has started');
  },
);

test('says in a line that its working directory was removed, as the command line does', async ({ dir }) => {
  for (const program of [MAIN, GIFT]) {
    mkdirSync(join(dir, 'gone'));
    const child = spawn('sh', ['-c', 'rmdir ../gone; exec "$0" "$1"', process.execPath, program], {
      cwd: join(dir, 'gone'),
      env: { ...cleanEnv(), PORT: '0', DATA_DIR: dir },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    assert.deepEqual(
      [code, errors],
      [1, 'the folder that this program was started in is gone (ENOENT): start it in one that is there\n'],
    );
  }
});

test('takes no arguments: it says so where it is asked for help, and makes no data folder', async ({ dir }) => {
  for (const [argument, exit] of [
    ['--help', 0],
    ['import', 2],
  ] as const) {
    const child = spawn(process.execPath, [MAIN, argument], {
      env: { ...cleanEnv(), PORT: '0', DATA_DIR: join(dir, 'new') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const out of [child.stdout, child.stderr]) out.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    assert.equal(code, exit);
    assert.match(said, /This starts the service\. It takes no arguments: .* Commands: npx gift --help\n$/);
    assert.equal(existsSync(join(dir, 'new')), false);
  }
});

test('waits for an engine that does not answer, says for which, and ends at once by SIGTERM', async ({ dir }) => {
  const port = await freePort();
  const child = spawn(process.execPath, [MAIN], {
    env: { ...cleanEnv(), DATA_DIR: dir, PORT: '0', NATS_URL: `nats://127.0.0.1:${port}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await eventually(
    () => output.split('not started yet, trying again: NATS_URL: no NATS server answers there').length > 2,
    output,
  );
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [143, null]);
});

const missing = natsMissing({ own: true });
testWhere(
  test,
  missing === undefined,
  missing ?? '',
  'a start that waits for an engine goes on once it is there',
  async ({ dir }) => {
    const server = await startNats({ own: true });
    await killed(server.child!);
    const child = spawn(process.execPath, [MAIN], {
      env: { ...cleanEnv(), DATA_DIR: dir, PORT: '0', LOG_LEVEL: 'info', NATS_URL: server.url },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    try {
      await eventually(() => output.includes('not started yet, trying again'), 'its waiting');
      await server.restart();
      await eventually(() => output.includes('"started"'), 'its start');
      child.kill('SIGTERM');
      assert.deepEqual(await ended, [0, null]);
    } finally {
      child.kill('SIGKILL');
      await server.stop();
    }
  },
);

testWhere(
  test,
  missing === undefined,
  missing ?? '',
  'ends by SIGTERM with 0 while NATS is away, whether it is ended or silent',
  async ({ dir }) => {
    for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
      const server = await startNats({ own: true });
      const service = await startProcess({ DATA_DIR: dir, PORT: '0', LOG_LEVEL: 'info', NATS_URL: server.url });
      try {
        await untilReady(service.url ?? '');
        server.child?.kill(signal);
        await eventually(async () => (await request(`${service.url}/readyz`, 'GET')).status === 503);
        await service.end('SIGTERM');
        assert.deepEqual([service.child.exitCode, service.child.signalCode], [0, null], service.lines.join('\n'));
      } finally {
        await service.end('SIGKILL');
        await server.stop();
      }
    }
  },
);

test('ends by SIGTERM to npm start, not npm alone', async ({ dir }) => {
  const child = spawn('npm', ['start', '--silent'], {
    env: { ...process.env, DATA_DIR: dir, PORT: '0', LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child.stdout, 'close');
  let output = '';
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('"started"')) resolve();
    });
  });
  child.kill('SIGTERM');
  // Its output ends with the last process that has it.
  await ended;
  assert.match(output, /"stopped"/);
});

test.run();
