import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openConnection } from '../../../../src/adapters/embedded/bus/connection.js';
import { encodeFrame, frameReader, type Frame } from '../../../../src/adapters/embedded/bus/frames.js';
import { openBusClient } from '../../../../src/adapters/embedded/bus/client.js';
import { openRouter, type Peer } from '../../../../src/adapters/embedded/bus/router.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { until } from '../../../support/assertions/until.js';

const test = suite('parts of the embedded bus');

const refusal = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => new Error('it was not refused'),
    (error: Error) => error,
  );

/** The number of a frame. */
const numberOf = (frame: Frame | undefined): number =>
  frame !== undefined && 'i' in frame.header ? frame.header.i : Number.NaN;

/** Two ends of one socket. */
async function pair(): Promise<{ near: Socket; far: Socket; end: () => void }> {
  const dir = mkdtempSync(join(tmpdir(), 'pair-'));
  const server = createServer().listen(join(dir, 's'));
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const near = connect(join(dir, 's'));
  const [far] = await accepted;
  far.on('error', () => undefined);
  return {
    near,
    far,
    end() {
      near.destroy();
      far.destroy();
      server.close();
      rmSync(dir, { recursive: true });
    },
  };
}

test('reads whole frames however their bytes are cut', () => {
  const frames: Frame[] = [
    { header: { t: 'err', i: 2, m: 'no' }, body: '' },
    { header: { t: 'pub', s: 'a.b' }, body: '{"text":"ü😀"}' },
    // The shortest last: it waits for nothing more.
    { header: { t: 'ping', i: 1 }, body: '' },
  ];
  const bytes = Buffer.concat(frames.map(encodeFrame));
  for (const size of [1, 2, 3, 5, 7, 20, bytes.length]) {
    const reader = frameReader(() => assert.unreachable());
    const got: Frame[] = [];
    for (let at = 0; at < bytes.length; at += size) got.push(...reader.read(bytes.subarray(at, at + size)));
    assert.equal(got, frames, `in pieces of ${size}`);
  }
});

test('a ping waits for the broker that takes over, also where the last one has ended with it', async () => {
  const client = openBusClient(() => undefined);
  const silent = { send: () => undefined, congested: () => undefined };
  const answering: Pick<Peer, 'send' | 'congested'> = {
    ...silent,
    send({ header }) {
      if (header.t === 'ping') client.receive({ header: { t: 'pong', i: header.i }, body: '' });
    },
  };
  const early = client.ping();
  client.attach(answering);
  await early;
  client.detach();
  client.attach(silent);
  const lost = client.ping();
  // The next broker ends, too, as where a service of several processes stops.
  for (const next of [silent, answering]) {
    client.detach();
    client.attach(next);
    await sleep(1);
  }
  await lost;
  await client.close();
});

test('refuses requests and publications without a connection as unavailable, with nothing sent', async () => {
  const client = openBusClient(() => undefined);
  const error = await refusal(client.request('a', {}, { timeoutMs: 30 }));
  assert.instance(error, UnavailableError);
  assert.not((error as UnavailableError).outcomeUnknown);
  assert.instance(await refusal(client.ping()), UnavailableError);
  assert.instance(await refusal(client.publish('a', {})), UnavailableError);
  await client.serve('a', 'q', async () => ({}));
  const waiting = refusal(client.request('a', {}, { timeoutMs: 5_000 }));
  await client.close();
  assert.not(((await waiting) as UnavailableError).outcomeUnknown);
});

test('holds a request while the connection is congested, and never sends it after its deadline', async () => {
  const client = openBusClient(() => undefined);
  const sent: Frame[] = [];
  let room = (): void => undefined;
  let wait: Promise<void> | undefined = new Promise((resolve) => {
    room = () => {
      wait = undefined;
      resolve();
    };
  });
  client.attach({ send: (frame) => void sent.push(frame), congested: () => wait });
  const late = refusal(client.request('a', {}, { timeoutMs: 20 }));
  const answer = client.request('b', {}, { timeoutMs: 2_000 });
  const published = client.publish('c', {});
  assert.instance(await late, UnavailableError);
  assert.equal(sent, []);
  room();
  await published;
  assert.equal(
    sent.map(({ header }) => header.t),
    ['req', 'pub'],
  );
  const [request] = sent;
  client.receive({ header: { t: 'rep', i: numberOf(request) }, body: '{"n":1}' });
  assert.equal(await answer, { n: 1 });
});

test('waits for a busy broker to take its services, and fails none of them', async () => {
  const client = openBusClient(() => undefined);
  const sent: Frame[] = [];
  client.attach({ send: (frame) => void sent.push(frame), congested: () => undefined });
  const [served] = await Promise.all([
    client.serve('a', 'q', async () => ({ n: 1 })),
    client.subscribe('b', () => undefined),
  ]);
  assert.equal(
    sent.filter(({ header }) => header.t === 'serve' || header.t === 'sub').map(({ header }) => header),
    [
      { t: 'serve', s: 'a', q: 'q' },
      { t: 'sub', s: 'b' },
    ],
  );
  client.receive({ header: { t: 'ask', i: 7, s: 'a', q: 'q' }, body: '{}' });
  await served();
  assert.equal(
    sent.find(({ header }) => header.t === 'rep'),
    { header: { t: 'rep', i: 7 }, body: '{"n":1}' },
  );
});

test('reports frames that only a broker should get', () => {
  const errors: unknown[] = [];
  openBusClient((error) => errors.push(error)).receive({ header: { t: 'serve', s: 'a', q: 'b' }, body: '' });
  assert.is(errors.length, 1);
});

test('drops the second answer of two groups, and one after the requester has left', () => {
  const refused: Error[] = [];
  const router = openRouter((error) => refused.push(error));
  const peer = (): Peer & { got: Frame[] } => {
    const got: Frame[] = [];
    return { got, send: (frame) => void got.push(frame), congested: () => undefined, hold: () => undefined };
  };
  const [asker, one, two] = [peer(), peer(), peer()];
  const say = (from: Peer, header: Frame['header'], body = ''): void => router.receive(from, { header, body });
  const askOf = (who: { got: Frame[] }): number => numberOf(who.got.at(-1));
  say(one, { t: 'serve', s: 'a', q: 'one' });
  say(two, { t: 'serve', s: 'a', q: 'two' });
  say(asker, { t: 'req', i: 7, s: 'a' });
  say(one, { t: 'rep', i: askOf(one) }, '1');
  say(two, { t: 'rep', i: askOf(two) }, '2');
  assert.equal(asker.got, [{ header: { t: 'rep', i: 7 }, body: '1' }]);

  say(asker, { t: 'req', i: 8, s: 'a' });
  say(one, { t: 'none', i: askOf(one) });
  assert.is(asker.got.length, 1, 'the other group may still answer');
  router.leave(two);
  assert.equal(asker.got.at(-1)?.header, { t: 'gone', i: 8 });

  say(asker, { t: 'req', i: 9, s: 'a' });
  router.leave(asker);
  say(one, { t: 'rep', i: askOf(one) }, '3');
  assert.is(asker.got.length, 2);

  say(asker, { t: 'req', i: 10, s: 'a' });
  say(asker, { t: 'drop', i: 10 });
  say(one, { t: 'rep', i: askOf(one) }, '4');
  assert.is(asker.got.length, 2);
  assert.equal(refused, []);
  say(two, { t: 'rep', i: 12 });
  assert.is(refused.length, 1);
});

test('holds the sender to a congested peer until the peer has caught up', async () => {
  const router = openRouter(() => undefined);
  const caughtUp = Promise.resolve();
  const holds: Promise<void>[] = [];
  const sender: Peer = { send: () => undefined, congested: () => undefined, hold: (until) => void holds.push(until) };
  const slow: Peer = { send: () => undefined, congested: () => caughtUp, hold: () => undefined };
  router.receive(slow, { header: { t: 'sub', s: 'news' }, body: '' });
  router.receive(sender, { header: { t: 'pub', s: 'news' }, body: '{}' });
  assert.is(holds[0], caughtUp);
});

test('reports a connection as congested until the other side has caught up', async () => {
  const { near, far, end } = await pair();
  far.pause();
  const connection = openConnection(near, {
    onFrame: () => undefined,
    onClose: () => undefined,
    onError: () => undefined,
  });
  const body = JSON.stringify({ text: 'x'.repeat(900_000) });
  assert.is(connection.congested(), undefined);
  connection.send({ header: { t: 'pub', s: 'a' }, body });
  const wait = connection.congested();
  assert.ok(wait);
  assert.is(connection.congested(), wait);
  far.resume();
  await wait;
  assert.is(connection.congested(), undefined);
  end();
});

test('disconnects a peer that takes nothing for too long', async () => {
  const { near, far, end } = await pair();
  far.pause();
  const errors: Error[] = [];
  let closed = false;
  const connection = openConnection(
    near,
    {
      onFrame: () => undefined,
      onClose() {
        closed = true;
      },
      onError: (error) => errors.push(error),
    },
    50,
  );
  connection.send({ header: { t: 'pub', s: 'a' }, body: JSON.stringify({ text: 'x'.repeat(900_000) }) });
  await connection.congested();
  await until(() => closed, 'the end of the connection');
  assert.match(errors[0]?.message ?? '', 'takes no messages');
  connection.send({ header: { t: 'pub', s: 'a' }, body: '{}' });
  assert.is(connection.congested(), undefined);
  end();
});

test('reads nothing from a held connection, and closes even if the other side does not', async () => {
  const { near, far, end } = await pair();
  const got: Frame[] = [];
  const connection = openConnection(near, {
    onFrame: (frame) => void got.push(frame),
    onClose: () => undefined,
    onError: () => undefined,
  });
  let first = (): void => undefined;
  let second = (): void => undefined;
  connection.hold(new Promise((resolve) => (first = resolve)));
  connection.hold(new Promise((resolve) => (second = resolve)));
  far.write(encodeFrame({ header: { t: 'ping', i: 1 }, body: '' }));
  await sleep(20);
  first();
  await sleep(20);
  assert.equal(got, []);
  second();
  await until(() => got.length === 1, 'the frame');
  far.allowHalfOpen = true;
  await connection.end();
  end();
});

test.run();
