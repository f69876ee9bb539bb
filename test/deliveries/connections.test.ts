/** How a connection to a receiver comes about: which name servers are asked, and which addresses are tried. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { type AddressPolicy, publicAddresses } from '../../src/deliveries/addresses.js';
import { openSender, type Outcome } from '../../src/deliveries/sender.js';
import { VERSION } from '../../src/lib/version.js';
import { until } from '../support/assertions/until.js';
import { cleanEnv } from '../support/service/mainProcess.js';
import { GIFT, MAIN } from '../support/service/programs.js';
import { openReceiver } from '../support/service/receiver.js';

const test = suite('deliveries/connections');

const at = (...addresses: readonly string[]): AddressPolicy => ({
  isAllowed: () => true,
  resolve: async () => addresses,
});

async function send(port: number, addresses: AddressPolicy, url = `http://shop.test:${port}/`): Promise<Outcome> {
  const sender = openSender({ addresses, userAgent: 'test' });
  try {
    return await sender.send({ url, headers: {}, body: '{}' }, new AbortController().signal);
  } finally {
    sender.close();
  }
}

/** A server that accepts no connection before its thread goes on. */
const SERVER = `
  const { workerData: gate, parentPort } = require('node:worker_threads');
  const server = require('node:http').createServer((_, response) => response.end('from afar'));
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(gate, 0, 0));
  });
`;

test('waits for an address that is slow to connect, before it takes another for want of it', async () => {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(SERVER, { eval: true, workerData: gate });
  const fillers: Socket[] = [];
  try {
    const port = await new Promise<number>((resolve) => worker.once('message', resolve));
    // The system answers no further connection while as many wait as the server lets wait.
    for (let n = 0; n < 4; n++) fillers.push(connect(port, '127.0.0.1').on('error', () => undefined));
    await until(() => fillers.some(({ connecting }) => !connecting), 'a full queue');
    const sent = send(port, at('127.0.0.1', '255.255.255.255'));
    // Longer than Node waits for one of several addresses.
    await new Promise((resolve) => setTimeout(resolve, 400));
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    assert.deepEqual(await sent, { status: 200, response: 'from afar' });
  } finally {
    for (const socket of fillers) socket.destroy();
    await worker.terminate();
  }
});

test('takes a receiver for one that is not there where one address refuses, and there is no way to another', async () => {
  const gone = await openReceiver();
  await gone.close();
  const refused = { error: 'the connection was refused', refused: true };
  assert.deepEqual(await send(gone.port, at('127.0.0.1', '255.255.255.255')), refused);
});

test('says that nothing was reached where the system has no way to the address, and says so at once', async () => {
  const unreached = { error: 'its address can not be reached', unreached: true };
  assert.deepEqual(await send(80, at('255.255.255.255')), unreached);
  assert.deepEqual(await send(80, at('255.255.255.255', '255.255.255.255')), unreached);
  assert.deepEqual(await send(80, at(), 'http://255.255.255.255/'), unreached);
});

test('asks the name servers that the machine has by now, once the earlier ones are silent', async () => {
  let servers: 'old' | 'new' = 'old';
  const silent = async (): Promise<never> => Promise.reject(Object.assign(new Error('silent'), { code: 'ETIMEOUT' }));
  const { resolve } = publicAddresses(() =>
    servers === 'old'
      ? { resolve4: silent, resolve6: silent }
      : { resolve4: async () => ['93.184.216.34'], resolve6: silent },
  );
  servers = 'new';
  await assert.rejects(resolve('shop.test'), /can not be resolved/);
  assert.deepEqual(await resolve('shop.test'), ['93.184.216.34']);
});

test('gives providers and witnesses as long as receivers, in the service and on the command line', () => {
  const shown =
    'import net from "node:net"; process.on("exit", () => console.error(net.getDefaultAutoSelectFamilyAttemptTimeout()));';
  for (const program of [MAIN, GIFT]) {
    const options = { env: { ...cleanEnv(), PORT: 'none', DATA_DIR: tmpdir() }, encoding: 'utf8' } as const;
    const { stderr } = spawnSync(process.execPath, [`--import=data:text/javascript,${shown}`, program], options);
    assert.equal(stderr.trimEnd().split('\n').at(-1), '3000', stderr);
  }
});

test("gives witnesses as long in the projector's thread, which asks them to cosign", async () => {
  const shown =
    'import net from "node:net"; import { parentPort } from "node:worker_threads"; process.on("exit", () => parentPort.postMessage(net.getDefaultAutoSelectFamilyAttemptTimeout()));';
  const thread = new Worker(new URL('../../src/service/projector/projectorThread.js', import.meta.url), {
    execArgv: [`--import=data:text/javascript,${shown}`],
    workerData: { dataDir: join(tmpdir(), 'none'), level: 'silent', version: VERSION },
  });
  const messages: unknown[] = [];
  thread.on('message', (message) => messages.push(message)).on('error', () => undefined);
  await new Promise((ended) => thread.once('exit', ended));
  assert.equal(messages.at(-1), 3_000);
});

test.run();
