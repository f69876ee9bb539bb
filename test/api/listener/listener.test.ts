import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Socket, connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import { askForBody } from '../../../src/api/pipeline/askForBody.js';
import { peerNetwork } from '../../../src/api/auth/address.js';
import { connectionLimits } from '../../../src/api/listener/admission.js';
import { type Listener, listen } from '../../../src/api/listener/listener.js';
import { sendThenRead } from '../../support/service/rawHttp.js';
import { unexpected } from '../../support/assertions/unexpected.js';
import { eventually } from '../../support/assertions/until.js';

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Context {
  listener: Listener;
  /** What the application was given, in order. */
  requested: Asked[];
}

/** One side of a connection: what it has received so far. */
interface Caller {
  readonly socket: Socket;
  text(): string;
  /** The status of each answer so far. */
  statuses(): string[];
  closed: Promise<void>;
}

const test = suite<Context>('HTTP listener');

test.before.each(async (context) => {
  context.requested = [];
  context.listener = await listen(0, '127.0.0.1', unexpected);
  context.listener.serve((request, response) => void context.requested.push({ request, response }));
});
test.after.each(({ listener }) => listener.close());

function call({ listener }: Context, text: string, allowHalfOpen = false): Caller {
  const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen });
  let received = '';
  socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  socket.write(text);
  return {
    socket,
    text: () => received,
    statuses: () => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status),
    closed,
  };
}

const post = (body = '{}', more = ''): string =>
  `POST /x HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;

const requestedOf = (context: Context, count: number): Promise<Asked[]> =>
  eventually(async () => (context.requested.length >= count ? context.requested : undefined));

/** Answers with this text. */
function done(requested: Asked | undefined, text: string): void {
  requested?.response.writeHead(201, { 'Content-Length': text.length }).end(text);
}

/** Until whatever the listener was about to write at once has come. */
async function settled(): Promise<void> {
  for (let count = 0; count < 20; count++) await turn();
}

test('answers a whole request before it refuses what follows, then ends the connection', async (context) => {
  const tails: [tail: string, status: string][] = [
    ['GARBAGE\r\n\r\n', '400'],
    ['\0', '400'],
    ['}', '400'],
    ['GET /y HTTP/1.1\r\n\r\n', '400'],
    ['GET /y HTTP/1.1\r\nHost: y\r\nHOST: z\r\n\r\n', '400'],
    ['CONNECT y:1 HTTP/1.1\r\nHost: y\r\n\r\n', '404'],
    [`GET /${'y'.repeat(20_000)} HTTP/1.1\r\nHost: y\r\n\r\n`, '431'],
    [`GET /y HTTP/1.1\r\nHost: y\r\nX-Long: ${'y'.repeat(20_000)}\r\n\r\n`, '431'],
  ];
  for (const [tail, status] of tails) {
    for (const apart of [false, true]) {
      context.requested.length = 0;
      const caller = call(context, apart ? post() : post() + tail);
      const [first] = await requestedOf(context, 1);
      if (apart) caller.socket.write(tail);
      await settled();
      assert.equal(caller.text(), '', JSON.stringify(tail));
      done(first, 'bought');
      await caller.closed;
      assert.deepEqual(
        [caller.statuses(), caller.text().includes('\r\n\r\nbought')],
        [['201', status], true],
        JSON.stringify(tail),
      );
      assert.match(caller.text().split('HTTP/1.1').at(-1) ?? '', /Connection: close\r\n/);
      assert.equal(context.requested.length, 1);
    }
  }
});

test('of several requests under way each gets its answer, in their order, before the refusal', async (context) => {
  const caller = call(context, `${post()}${post()}GARBAGE\r\n\r\n`);
  const [first, second] = await requestedOf(context, 2);
  done(second, 'second');
  await settled();
  assert.equal(caller.text(), '');
  done(first, 'first');
  await caller.closed;
  assert.deepEqual(caller.text().match(/first|second|Malformed request\./g), ['first', 'second', 'Malformed request.']);
});

test('finishes a started answer before the refusal, and writes nothing into it', async (context) => {
  const caller = call(context, `${post()}GARBAGE\r\n\r\n`);
  const [first] = await requestedOf(context, 1);
  first?.response.writeHead(200, { 'Content-Length': 10 }).write('12345');
  await eventually(async () => caller.text().endsWith('12345'));
  first?.response.end('67890');
  await caller.closed;
  assert.match(caller.text(), /\r\n\r\n1234567890HTTP\/1\.1 400 /);
});

test('a later handler waits for no request of a caller that left, though several came at once', async (context) => {
  const caller = call(context, post().repeat(3));
  const [, second] = await requestedOf(context, 3);
  caller.socket.destroy();
  context.listener.serve(() => undefined);
  await context.listener.settled();
  done(second, 'too late');
});

test('a later handler takes the requests from then on, while those of the earlier are finished', async (context) => {
  const { listener } = context;
  const early = call(context, post());
  const [first] = await requestedOf(context, 1);
  listener.serve((_, response) => response.writeHead(503, { 'Content-Length': 0 }).end());
  let over = false;
  const waiting = listener.settled().then(() => (over = true));
  const late = call(context, post());
  await eventually(async () => late.statuses().length > 0);
  await settled();
  assert.deepEqual([late.statuses(), early.statuses(), over, context.requested.length], [['503'], [], false, 1]);
  done(first, 'first');
  await waiting;
  await eventually(async () => early.text().endsWith('first'));
  early.socket.write(post());
  await eventually(async () => early.statuses().length > 1);
  assert.deepEqual(early.statuses(), ['201', '503']);
  await listener.settled();
});

test('refuses a malformed body once, behind the answers before it', async (context) => {
  const chunked = 'POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
  const caller = call(context, post() + chunked);
  const [first] = await requestedOf(context, 2);
  await settled();
  assert.equal(caller.text(), '');
  done(first, 'first');
  await caller.closed;
  assert.deepEqual(caller.statuses(), ['201', '400']);

  context.requested.length = 0;
  const early = call(context, chunked.slice(0, -4));
  const [only] = await requestedOf(context, 1);
  done(only, 'refused early');
  await eventually(async () => early.text().includes('refused early'));
  early.socket.write('zz\r\n');
  await early.closed;
  assert.deepEqual(early.statuses(), ['201']);
});

test('starts no request after a refused one: it could not be answered', async (context) => {
  const caller = call(context, `GET /y HTTP/1.1\r\n\r\n${post()}`);
  await caller.closed;
  assert.deepEqual([caller.statuses(), context.requested.length], [['400'], 0]);
});

test('after an answer that was to be the last nothing else is said', async (context) => {
  const caller = call(context, `${post('{}', 'Connection: close\r\n')}GARBAGE\r\n\r\n`);
  const [first] = await requestedOf(context, 1);
  done(first, 'bought');
  await caller.closed;
  assert.deepEqual(caller.statuses(), ['201']);
});

test('a caller who has gone before the answer leaves nothing behind', async (context) => {
  const caller = call(context, `${post()}GARBAGE\r\n\r\n`);
  const [first] = await requestedOf(context, 1);
  await settled();
  caller.socket.resetAndDestroy();
  await new Promise<void>((resolve) => {
    first?.response.once('close', () => resolve());
  });
  done(first, 'bought');
});

test('a client that ends its side after the request gets the answer, then the end', async (context) => {
  for (const [text, count] of [
    [post(), 1],
    [post() + post(), 2],
  ] as const) {
    context.requested.length = 0;
    const caller = call(context, text, true);
    caller.socket.end();
    const requested = await requestedOf(context, count);
    const [first] = requested;
    await eventually(async () => first?.request.socket.readableEnded === true);
    for (const one of requested) done(one, 'bought');
    await caller.closed;
    assert.deepEqual(caller.statuses(), Array(count).fill('201'));
  }
  const broken = call(context, post().slice(0, -1), true);
  broken.socket.end();
  await broken.closed;
  assert.deepEqual(broken.statuses(), ['400']);
});

test('waits for no refused connection when it stops; a reset one is no fault of the process', async (context) => {
  const callers = ['CONNECT y:1 HTTP/1.1\r\nHost: y\r\n\r\n', 'GARBAGE\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n'].map((text) =>
    call(context, text, true),
  );
  for (const caller of callers) await eventually(async () => caller.statuses().length > 0);
  for (let count = 0; count < 20; count++) {
    const reset = call(context, 'CONNECT y:1 HTTP/1.1\r\nHost: y\r\n\r\n');
    reset.socket.once('connect', () => reset.socket.resetAndDestroy());
    await reset.closed;
  }
  await context.listener.close();
  for (const caller of callers) {
    caller.socket.destroy();
    await caller.closed;
  }
});

test('ends connections with its answers while it closes, and starts no later request', async (context) => {
  const waiting = call(context, post());
  const pipelined = call(context, `${post()}${post()}`);
  const half = call(context, post('{}').slice(0, -1));
  const [one, two, three, four] = await requestedOf(context, 4);
  const closed = context.listener.close();
  for (const { socket } of [waiting, pipelined]) socket.write(post());
  half.socket.write('}');
  await settled();
  assert.equal(context.requested.length, 4, "nothing behind an answer that is its connection's last");
  for (const [requested, text] of [
    [one, 'first'],
    [two, 'second'],
    [three, 'third'],
    [four, 'fourth'],
  ] as const)
    done(requested, text);
  await Promise.all([closed, waiting.closed, pipelined.closed, half.closed]);
  const all = [waiting, pipelined, half].map((caller) =>
    caller
      .text()
      .match(/first|second|third|fourth|Connection: [\w-]+/g)
      ?.join(' '),
  );
  assert.deepEqual(
    new Set(all),
    new Set([
      'Connection: close first',
      'Connection: close fourth',
      'Connection: keep-alive second Connection: close third',
    ]),
  );
});

test('delivers an answer before the body has come, then ends or keeps the connection as it said', async (context) => {
  context.listener.serve((_, response) => response.writeHead(401, { 'Content-Length': 7 }).end('refused'));
  const url = `http://127.0.0.1:${context.listener.port}`;
  const bytes = 5_000_000;
  for (const connection of ['close', 'keep-alive']) {
    for (const [pieceBytes, pauseMs] of [
      [65_536, 0],
      [1_000_000, 30],
    ] as const) {
      for (const chunked of [false, true]) {
        const length = chunked
          ? `Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n`
          : `Content-Length: ${bytes}\r\n\r\n`;
        const sent = await Promise.all(
          Array.from({ length: 5 }, () =>
            sendThenRead(url, `POST /x HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n${length}`, bytes, {
              pieceBytes,
              pauseMs,
              waitMs: connection === 'close' ? 5_000 : 300,
            }),
          ),
        );
        const what = `${connection} ${pauseMs} ${chunked}`;
        assert.deepEqual(
          sent.map(({ error }) => error),
          Array(5).fill(undefined),
          what,
        );
        for (const { text, ended } of sent)
          assert.deepEqual([/^HTTP\/1\.1 401 [^]*refused$/.test(text), ended], [true, connection === 'close'], what);
      }
    }
  }
  // Those who were refused by the parser, too.
  const malformed = await sendThenRead(url, `POST /x HTTP/1.1\r\nContent-Length: ${bytes}\r\n\r\n`, bytes);
  assert.deepEqual(
    [malformed.error, malformed.text.startsWith('HTTP/1.1 400 '), malformed.ended],
    [undefined, true, true],
  );
});

test('starts no request behind a last answer, be it in the rest of the body or after it', async (context) => {
  const caller = call(
    context,
    'POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n12345',
    true,
  );
  const [first] = await requestedOf(context, 1);
  first?.response.writeHead(401, { 'Content-Length': 2 }).end('no');
  await eventually(async () => caller.text().endsWith('no'));
  caller.socket.write(`67890${post()}`);
  await settled();
  caller.socket.end();
  await caller.closed;
  assert.deepEqual([caller.statuses(), context.requested.length], [['401'], 1]);
});

test('a caller who waits to be asked for the body is asked only when it is read', async (context) => {
  const head = 'POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n';
  const refused = call(context, head);
  const [first] = await requestedOf(context, 1);
  first?.response.writeHead(401, { 'Content-Length': 2 }).end('no');
  await refused.closed;
  assert.deepEqual(refused.statuses(), ['401']);
  const old = call(context, head.replace('HTTP/1.1', 'HTTP/1.0'));
  const [, second] = await requestedOf(context, 2);
  const read = call(context, head.replace('5000000', '2'));
  const [, , third] = await requestedOf(context, 3);
  for (const requested of [second, third]) {
    if (requested !== undefined)
      for (let times = 0; times < 2; times++) askForBody(requested.request, requested.response);
  }
  await eventually(async () => read.statuses().length > 0);
  read.socket.write('{}');
  third?.request.resume();
  await eventually(async () => third?.request.complete === true);
  done(third, 'bought');
  done(second, 'bought');
  await eventually(async () => read.statuses().length > 1 && old.statuses().length > 0);
  assert.deepEqual([read.statuses(), old.statuses()], [['100', '201'], ['201']]);
  read.socket.destroy();
  old.socket.destroy();
});

test('waits 5 s for a silent client behind a last answer, and holds nothing', async (context) => {
  const callers = ['Connection: close\r\n', ''].map((more) =>
    call(context, `POST /x HTTP/1.1\r\nHost: x\r\n${more}Content-Length: 10\r\n\r\n12345`, true),
  );
  const requested = await requestedOf(context, 2);
  const closed = requested.map(
    ({ request: { socket } }) =>
      new Promise<void>((resolve) => {
        socket.once('close', () => resolve());
      }),
  );
  for (const { response } of requested) response.writeHead(401, { 'Content-Length': 2 }).end('no');
  const began = performance.now();
  await Promise.all(closed);
  const took = performance.now() - began;
  assert.ok(took > 4_500, `${took} ms`);
  assert.deepEqual(
    callers.map((caller) => caller.statuses()),
    [['401'], ['401']],
  );
  for (const { socket } of callers) socket.destroy();
});

test('stopping does not wait for those who send on and on after their answer', async (context) => {
  context.listener.serve((_, response) => response.writeHead(401, { 'Content-Length': 2 }).end('no'));
  const callers = ['close', 'keep-alive'].map((connection) =>
    call(
      context,
      `POST /x HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nContent-Length: 100000000\r\n\r\n`,
      true,
    ),
  );
  const sending = setInterval(() => callers.forEach(({ socket }) => void (socket.writable && socket.write('x'))), 20);
  try {
    for (const caller of callers) await eventually(async () => caller.statuses().length > 0);
    await context.listener.close();
    await Promise.all(callers.map(({ closed }) => closed));
  } finally {
    clearInterval(sending);
  }
});

const LIMITS = { limits: { all: 3, ofAddress: 2 } };
const REFUSED = /^HTTP\/1\.1 503 Service Unavailable\r\n[^]*Error-Code: unavailable\r\n[^]*Service unavailable\./;

test('refuses connections beyond the share of their address with 503, and takes others once some have ended', async () => {
  const few = await listen(0, '127.0.0.1', unexpected, LIMITS);
  few.serve((_, response) => void response.end('ok'));
  const context = { listener: few, requested: [] };
  try {
    const silent = [call(context, ''), call(context, '')];
    await eventually(async () => few.connections().open === 2);
    const third = call(context, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await third.closed;
    assert.match(third.text(), REFUSED);
    assert.deepEqual(few.connections(), { open: 2, refused: { all: 0, address: 1, unheard: 0 } });
    silent[0]?.socket.destroy();
    await eventually(async () => few.connections().open === 1);
    const later = call(context, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await later.closed;
    assert.deepEqual(later.statuses(), ['200']);
    silent[1]?.socket.destroy();
  } finally {
    await few.close();
  }
});

test('gives trusted proxies more than the share of an address, and nobody more than all', async () => {
  const few = await listen(0, '127.0.0.1', unexpected, { ...LIMITS, networkOf: peerNetwork(['127.0.0.0/8']) });
  few.serve((_, response) => void response.end('ok'));
  const context = { listener: few, requested: [] };
  try {
    const silent = Array.from({ length: 3 }, () => call(context, ''));
    await eventually(async () => few.connections().open === 3);
    const refused = call(context, '');
    await refused.closed;
    assert.match(refused.text(), REFUSED);
    assert.deepEqual(few.connections(), { open: 3, refused: { all: 1, address: 0, unheard: 0 } });
    for (const { socket } of silent) socket.destroy();
  } finally {
    await few.close();
  }
});

test('ends a connection whose headers do not come, silent ones too', async () => {
  const hasty = await listen(0, '127.0.0.1', unexpected, { headersMs: 100 });
  hasty.serve((_, response) => void response.end('ok'));
  const context = { listener: hasty, requested: [] };
  try {
    const slow = ['', 'GET / HTTP/1.1\r\nHost: x\r\n'].map((text) => call(context, text));
    for (const { closed, statuses } of slow) {
      await closed;
      assert.deepEqual(statuses(), ['408']);
    }
  } finally {
    await hasty.close();
  }
});

test('leaves descriptors to the engines, however many or few there are', () => {
  for (const [descriptors, all] of [
    [1_024, 640],
    [4_096, 2_944],
    [20_000, 10_000],
    [1_048_576, 10_000],
    [256, 64],
  ] as const)
    assert.deepEqual(connectionLimits(descriptors), { all, ofAddress: all / 4 });
  assert.ok(connectionLimits().all >= 64);
});

test.run();
