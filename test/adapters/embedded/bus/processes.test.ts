import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedBus } from '../../../../src/adapters/embedded/bus/bus.js';
import { encodeFrame } from '../../../../src/adapters/embedded/bus/frames.js';
import { openFileLock } from '../../../../src/adapters/embedded/fileLock.js';
import type { Bus } from '../../../../src/ports/bus.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { openBusInProcess } from '../../../support/engines/busProcess.js';
import { eventually, until } from '../../../support/assertions/until.js';

interface Context {
  dir: string;
  errors: Error[];
  open: (dir?: string) => Promise<Bus>;
  clients: Bus[];
}
const test = suite<Context>('embedded bus across processes');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'bus-'));
  context.errors = [];
  context.clients = [];
  context.open = async (dir = context.dir) => {
    const bus = await openEmbeddedBus({ dir, onError: (error) => context.errors.push(error as Error) });
    context.clients.push(bus);
    return bus;
  };
});
test.after.each(async ({ clients, dir }) => {
  await Promise.all(clients.map((client) => client.close()));
  rmSync(dir, { recursive: true });
});

/** Asks until it is answered. */
async function answered(bus: Bus, subject: string): Promise<unknown> {
  return eventually(() => bus.request<object>(subject, {}, { timeoutMs: 500 }).catch(() => undefined), subject);
}

const refusal = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => new Error('it was not refused'),
    (error: Error) => error,
  );

test('finds a new broker soon after the old one was killed, and serves and hears as before', async ({ dir, open }) => {
  const broker = await openBusInProcess({ dir });
  const [one, two] = [await open(), await open()];
  const heard: unknown[] = [];
  await one.serve('who', 'who', async () => ({ by: 'one' }));
  await one.subscribe('news', (news) => heard.push(news));
  let release = (): void => undefined;
  await two.serve(
    'hangs',
    'hangs',
    () =>
      new Promise((resolve) => {
        release = () => resolve({});
      }),
  );
  const hanging = refusal(one.request('hangs', {}, { timeoutMs: 10_000 }));
  await sleep(50);
  await broker.kill();
  const error = await hanging;
  assert.instance(error, UnavailableError);
  assert.ok((error as UnavailableError).outcomeUnknown);
  release();

  assert.equal(await answered(two, 'who'), { by: 'one' });
  await two.publish('news', { n: 1 });
  await answered(two, 'who');
  assert.equal(heard, [{ n: 1 }]);

  const third = await openBusInProcess({ dir });
  assert.equal(await third.request('who', {}, { timeoutMs: 10_000 }), { by: 'one' });
  await third.close();
});

test('ends the requests of a killed process at once, not at their deadlines', async ({ dir, open }) => {
  const bus = await open();
  const other = await openBusInProcess({ dir });
  await other.serve('hangs', 'hangs', () => new Promise(() => undefined));
  const hanging = refusal(bus.request('hangs', {}, { timeoutMs: 10_000 }));
  await sleep(50);
  await other.kill();
  assert.instance(await hanging, UnavailableError);
  assert.is((await refusal(bus.request('hangs', {}, { timeoutMs: 10_000 }))).name, 'NoRespondersError');
});

test('hands over to another broker when the first one closes', async ({ open }) => {
  const [broker, one, two] = [await open(), await open(), await open()];
  await one.serve('who', 'who', async () => ({ by: 'one' }));
  await Promise.all([broker.close(), broker.close()]);
  assert.equal(await answered(two, 'who'), { by: 'one' });
});

test('holds a request made without a broker for the next one', async ({ dir, open }) => {
  const broker = await openBusInProcess({ dir });
  const bus = await open();
  await bus.serve('who', 'who', async () => ({ by: 'me' }));
  await broker.kill();
  await sleep(1);
  assert.equal(await answered(bus, 'who'), { by: 'me' });
  await bus.ping();
});

test('connects many processes that open at once', async ({ open }) => {
  const clients = await Promise.all(Array.from({ length: 8 }, () => open()));
  await Promise.all(clients.map((client, n) => client.serve(`m${n}`, 'q', async () => ({ n }))));
  for (const client of clients) {
    const answers = await Promise.all(
      clients.map((_, n) => client.request<{ n: number }>(`m${n}`, {}, { timeoutMs: 10_000 })),
    );
    assert.equal(
      answers.map(({ n }) => n),
      clients.map((_, n) => n),
    );
  }
});

test('gives socket and lock to their owner alone, and removes the socket with the last process', async ({
  dir,
  open,
  clients,
}) => {
  await open();
  for (const name of ['bus.sock', 'bus.lock']) assert.is(statSync(join(dir, name)).mode & 0o777, 0o600, name);
  await clients.pop()?.close();
  assert.equal(readdirSync(dir), ['bus.lock']);
});

test('takes over the socket of a killed process', async ({ dir, open }) => {
  const first = await openBusInProcess({ dir });
  await first.kill();
  assert.ok(statSync(join(dir, 'bus.sock')).isSocket());
  const bus = await open();
  await bus.ping();
  assert.equal(
    await openBusInProcess({ dir }).then(async (second) => {
      await second.ping();
      await second.close();
      return 'met';
    }),
    'met',
  );
});

test('uses a short path for a folder whose path is too long for a socket', async ({ dir, open, clients }) => {
  const long = join(dir, 'x'.repeat(60), 'y'.repeat(60));
  const [one, two] = [await open(long), await open(long)];
  await one.serve('who', 'who', async () => ({ by: 'one' }));
  assert.equal(await two.request('who', {}, { timeoutMs: 10_000 }), { by: 'one' });
  const socket = readFileSync(join(long, 'bus.path'), 'utf8');
  assert.ok(socket.startsWith(tmpdir()) && socket.length < 100);
  assert.is(statSync(join(socket, '..')).mode & 0o777, 0o700);
  await Promise.all(clients.map((client) => client.close()));
  rmSync(join(socket, '..'), { recursive: true });
});

test('waits for a broker that has not written yet where it listens', async ({ dir, open }) => {
  const long = join(dir, 'x'.repeat(60), 'y'.repeat(60));
  mkdirSync(long, { recursive: true });
  const lock = openFileLock(join(long, 'bus.lock'));
  assert.ok(lock.claim());
  writeFileSync(join(long, 'bus.path'), '');
  const opening = open(long).then(
    () => 'open',
    (error: Error) => error.message,
  );
  assert.is(await Promise.race([opening, sleep(200, 'waits')]), 'waits');
  lock.close();
  assert.is(await opening, 'open');
  rmSync(join(readFileSync(join(long, 'bus.path'), 'utf8'), '..'), { recursive: true });
});

test('joins a folder and a short link to it on one bus, whatever TMPDIR is', async ({ dir, open, clients }) => {
  const before = process.env['TMPDIR'];
  const long = join(dir, 'x'.repeat(60), 'y'.repeat(60));
  mkdirSync(long, { recursive: true });
  symlinkSync(long, join(dir, 'link'));
  const sockets = new Set<string>();
  try {
    for (const place of [before, '/proc', join(tmpdir(), 'z'.repeat(120)), '/nowhere']) {
      if (place === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = place;
      const [one, two] = [await open(join(dir, 'link')), await open(long)];
      await two.serve('who', 'who', async () => ({ by: 'two' }));
      assert.equal(await one.request('who', {}, { timeoutMs: 10_000 }), { by: 'two' });
      sockets.add(readFileSync(join(long, 'bus.path'), 'utf8'));
      await Promise.all(clients.splice(0).map((client) => client.close()));
    }
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    for (const socket of sockets) rmSync(join(socket, '..'), { recursive: true, force: true });
  }
});

test("names files that are not the bus's and leaves them alone", async ({ dir, open }) => {
  writeFileSync(join(dir, 'bus.lock'), 'a diary, long enough to be no empty file'.repeat(50));
  assert.match((await refusal(open())).message, "bus.lock is not the bus's lock file");
  assert.match(readFileSync(join(dir, 'bus.lock'), 'utf8'), 'a diary');
  rmSync(join(dir, 'bus.lock'));
  writeFileSync(join(dir, 'bus.sock'), 'a sock');
  assert.match((await refusal(open())).message, "bus.sock is not the bus's socket");
  assert.is(readFileSync(join(dir, 'bus.sock'), 'utf8'), 'a sock');
  rmSync(join(dir, 'bus.sock'));
  mkdirSync(join(dir, 'bus.sock'));
  assert.match((await refusal(open())).message, "bus.sock is not the bus's socket");
  rmSync(join(dir, 'bus.sock'), { recursive: true });
  await open();
});

test("names a folder that can't be used", async ({ dir, open }) => {
  writeFileSync(join(dir, 'file'), '');
  assert.match((await refusal(open(join(dir, 'file', 'data')))).message, /bus.lock can't be made/);
});

test("reports that it can't take over, and tries again until it can", async ({ dir, open, errors }) => {
  const broker = await openBusInProcess({ dir });
  const bus = await open();
  await bus.serve('who', 'who', async () => ({ by: 'me' }));
  rmSync(join(dir, 'bus.sock'));
  mkdirSync(join(dir, 'bus.sock'));
  await broker.kill();
  while (errors.length === 0) await sleep(5);
  assert.match(errors[0]?.message ?? '', "not the bus's socket");
  assert.instance(await refusal(bus.ping()), UnavailableError);
  rmSync(join(dir, 'bus.sock'), { recursive: true });
  assert.equal(await answered(bus, 'who'), { by: 'me' });
});

test('asks no handler that has just gone', async ({ open }) => {
  const bus = await open();
  const stop = await bus.serve('brief', 'brief', async () => ({}));
  const answer = bus.request('brief', {}, { timeoutMs: 10_000 });
  const stopped = stop();
  assert.equal([(await Promise.allSettled([answer]))[0].status, await stopped], ['rejected', undefined]);
  assert.is((await refusal(answer)).name, 'NoRespondersError');
});

test('refuses and reports invalid bytes, while other connections go on', async ({ dir, open, errors }) => {
  const bus = await open();
  await bus.serve('who', 'who', async () => ({ by: 'me' }));
  /** Says it. @returns whether the bus has hung up by the time that `heard` holds */
  const say = async (heard: () => boolean, ...chunks: Buffer[]): Promise<boolean> => {
    const socket = connect(join(dir, 'bus.sock'));
    socket.on('error', () => undefined);
    let closed = false;
    socket.on('close', () => {
      closed = true;
    });
    for (const chunk of chunks) {
      socket.write(chunk);
      await sleep(5);
    }
    await until(() => closed || heard(), 'the bus to hear it');
    await sleep(20);
    const cutOff = closed;
    socket.destroy();
    return cutOff;
  };
  const raw = (head: string, body = ''): Buffer => encodeFrame({ header: JSON.parse(head) as never, body });
  const words = Buffer.from('GET / HTTP/1.1\r\n\r\n');
  assert.ok(await say(() => false, words), 'cut off');
  assert.match(errors.at(-1)?.message ?? '', /frame of \d+ bytes/);
  const refused = errors.length;
  const notJson = Buffer.concat([Buffer.from([0, 0, 0, 7, 0, 0, 0, 3]), Buffer.from('{{{')]);
  const tooLongHeader = Buffer.from([0, 0, 0, 4, 0, 0, 0, 9]);
  const odd = [
    '7',
    'null',
    '{}',
    '{"t":"what"}',
    '{"t":"constructor"}',
    '{"t":"req","i":"1","s":"who"}',
    '{"t":"serve","s":"who"}',
    '{"t":"ask","i":1,"s":"a","q":"b"}',
    '{"t":"rep","i":99}',
    '{"t":"gone","i":1}',
    '{"t":"pong","i":1}',
  ];
  const nonsense = [notJson, tooLongHeader, ...odd.map((head) => raw(head))];
  assert.not(await say(() => errors.length >= refused + nonsense.length, ...nonsense), 'still connected');
  assert.is(errors.length, refused + nonsense.length);
  assert.not(
    await say(
      () => true,
      raw('{"t":"drop","i":5}'),
      raw('{"t":"unserve","s":"no","q":"no"}'),
      raw('{"t":"unsub","s":"no"}'),
    ),
  );
  const before = errors.length;
  assert.not(
    await say(() => errors.length > before, raw('{"t":"req","i":1,"s":"who"}', 'not json')),
    'the handler never sees it',
  );
  assert.equal(
    errors.slice(before).map(({ message }) => message),
    ['a message on who that is no JSON'],
  );
  assert.equal(await bus.request('who', {}, { timeoutMs: 10_000 }), { by: 'me' });
});

test.run();
