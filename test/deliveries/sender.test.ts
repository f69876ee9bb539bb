/** One request to an address that a stranger chose. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { AddressPolicy } from '../../src/deliveries/addresses.js';
import { addressPolicy, anyAddresses, publicAddresses } from '../../src/deliveries/addresses.js';
import { openSender, type Outcome, type SenderOptions } from '../../src/deliveries/sender.js';
import { eventually } from '../support/assertions/until.js';
import { HOOKS_CERTIFICATE, HOOKS_HOST, HOOKS_KEY } from '../support/fixtures/hooksCertificate.js';
import { type Answer, openReceiver, type Receiver, type ReceiverOptions } from '../support/service/receiver.js';

const test = suite('deliveries/sender');
const BODY = JSON.stringify({ id: 'event-1', type: 'gift.issued', data: {} });

/** Names of these addresses, which count as public. */
const named = (...answers: readonly (readonly string[])[]): AddressPolicy & { readonly requested: number } => {
  let requested = 0;
  return {
    get requested() {
      return requested;
    },
    isAllowed: (address) => address === '127.0.0.1',
    resolve: async () => answers[Math.min(requested++, answers.length - 1)] ?? [],
  };
};

async function send(url: string, options: Partial<SenderOptions> = {}): Promise<Outcome> {
  const sender = openSender({ addresses: anyAddresses(), userAgent: 'test', ...options });
  try {
    return await sender.send({ url, headers: {}, body: BODY }, new AbortController().signal);
  } finally {
    sender.close();
  }
}

async function withReceiver(
  answer: Answer,
  work: (receiver: Receiver) => Promise<void>,
  options?: ReceiverOptions,
): Promise<void> {
  const receiver = await openReceiver(answer, options);
  try {
    await work(receiver);
  } finally {
    await receiver.close();
  }
}

test('posts the body as JSON, and gives status and beginning of the answer', async () => {
  await withReceiver(
    (_, response) => void response.writeHead(201, { 'Content-Type': 'text/plain' }).end('thanks'),
    async ({ url, received }) => {
      assert.deepEqual(await send(url), { status: 201, response: 'thanks' });
      const [one] = received;
      assert.equal(one?.text, BODY);
      assert.equal(one.headers['content-type'], 'application/json; charset=utf-8');
      assert.equal(one.headers['user-agent'], 'test');
    },
  );
});

test('leaves no trace of a request in the signal that could have ended it', async () => {
  const { signal } = new AbortController();
  const sender = openSender({ addresses: anyAddresses(), userAgent: 'test' });
  await withReceiver(
    (_, response) => void response.end(),
    async ({ url }) => {
      for (let n = 0; n < 20; n++) await sender.send({ url, headers: {}, body: BODY }, signal);
    },
  );
  sender.close();
  const held = Object.getOwnPropertySymbols(signal).map(
    (key) => (signal as unknown as Record<symbol, { readonly size?: number } | null>)[key]?.size ?? 0,
  );
  assert.ok(Math.max(...held) === 0, String(held));
});

test('follows no redirect', async () => {
  await withReceiver(
    () => undefined,
    async (other) =>
      withReceiver(
        (_, response) => void response.writeHead(307, { Location: other.url }).end(),
        async ({ url }) => {
          assert.deepEqual(await send(url), { status: 307, response: '' });
          assert.equal(other.connections, 0);
        },
      ),
  );
});

test('reads 1,024 bytes of an answer that never ends', async () => {
  let closed = false;
  await withReceiver(
    (_, response) => {
      response.on('close', () => (closed = true));
      response.writeHead(200);
      const more = (): void => {
        if (!closed) response.write('x'.repeat(10_000), () => setImmediate(more));
      };
      more();
    },
    async ({ url }) => {
      const outcome = await send(url);
      assert.deepEqual(outcome, { status: 200, response: 'x'.repeat(1_024) });
      await eventually(() => closed, 'the end of the connection');
    },
  );
});

test('waits two seconds for an answer’s body, and counts its status', async () => {
  await withReceiver(
    (_, response) => void response.writeHead(202).write('begun'),
    async ({ url }) => {
      assert.deepEqual(await send(url), { status: 202, response: 'begun' });
    },
  );
});

test('fails where a receiver says nothing, closes, speaks no HTTP, or is not there', async () => {
  await withReceiver(
    () => undefined,
    async ({ url }) => assert.deepEqual(await send(url, { answerMs: 200 }), { error: 'no answer within 0.2 s' }),
  );
  await withReceiver(
    (_, response) => void response.socket?.destroy(),
    async ({ url }) => assert.deepEqual(await send(url), { error: 'the connection was closed without an answer' }),
  );
  await withReceiver(
    (_, response) => void response.socket?.end('SSH-2.0-OpenSSH\r\n\r\n'),
    async ({ url }) => assert.deepEqual(await send(url), { error: 'its answer is no HTTP' }),
  );
  await withReceiver(
    (_, response) =>
      void response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
    async ({ url }) => assert.deepEqual(await send(url), { error: 'the connection was closed without an answer' }),
  );
  const gone = await openReceiver();
  await gone.close();
  assert.deepEqual(await send(gone.url), { error: 'the connection was refused', refused: true });
});

test('never ends by hints that follow each other', async () => {
  await withReceiver(
    (_, response) => {
      const timer = setInterval(() => response.writeEarlyHints({ link: '</a>; rel=preload' }), 5);
      response.on('close', () => clearInterval(timer));
    },
    async ({ url }) => assert.deepEqual(await send(url, { answerMs: 300 }), { error: 'no answer within 0.3 s' }),
  );
});

test('connects to no address that is not public', async () => {
  await withReceiver(
    () => assert.fail('a request arrived'),
    async ({ port, url }) => {
      const literal = { addresses: publicAddresses() };
      const refused = { error: 'its address is not public' };
      assert.deepEqual(await send(url, literal), refused);
      assert.deepEqual(await send(`http://[::ffff:127.0.0.1]:${port}/`, literal), refused);
      assert.deepEqual(await send(`http://0x7f000001:${port}/`, literal), refused);
      const { isAllowed } = publicAddresses();
      const byName = async (...addresses: readonly string[]): Promise<Outcome> =>
        send(`http://private.test:${port}/`, { addresses: { isAllowed, resolve: async () => addresses } });
      assert.deepEqual(await byName('127.0.0.1'), refused);
      assert.deepEqual(await byName('93.184.216.34', '10.0.0.1'), refused);
      assert.deepEqual(await byName('2606:4700::1111', '::1'), refused);
      assert.deepEqual(await byName('169.254.169.254'), refused);
      assert.deepEqual(await byName(), { error: 'its name has no address' });
    },
  );
});

test('connects to no address of a refused network, though private addresses are allowed', async () => {
  await withReceiver(
    () => assert.fail('a request arrived'),
    async ({ port, url }) => {
      const addresses = addressPolicy({ privateAddresses: true, refusedNetworks: ['127.0.0.0/8', '::1/128'] });
      const refused = { error: 'its address is not public' };
      assert.deepEqual(await send(url, { addresses }), refused);
      assert.deepEqual(await send(`http://[::ffff:127.0.0.1]:${port}/`, { addresses }), refused);
      assert.deepEqual(await send(`http://localhost:${port}/`, { addresses }), refused);
      assert.deepEqual(await send(`http://0.0.0.0:${port}/`, { addresses }), refused);
      assert.deepEqual(await send(`http://[::]:${port}/`, { addresses }), refused);
    },
  );
});

test('connects to the address that was checked, though the name has another by then', async () => {
  await withReceiver(
    (_, response) => void response.end('checked'),
    async (receiver) => {
      const addresses = named(['127.0.0.1'], ['127.0.0.2']);
      assert.deepEqual(await send(`http://moving.test:${receiver.port}/`, { addresses }), {
        status: 200,
        response: 'checked',
      });
      assert.equal(addresses.requested, 1);
      assert.equal(receiver.connections, 1);
      assert.equal(receiver.received[0]?.headers.host, `moving.test:${receiver.port}`);
    },
  );
});

test('tells a name without an address from name servers that fail', async () => {
  const failing = (code: string) => async () => Promise.reject(Object.assign(new Error(code), { code }));
  const said = async (code4: string, code6: string): Promise<Outcome> =>
    send('https://shop.test/', {
      addresses: publicAddresses(() => ({ resolve4: failing(code4), resolve6: failing(code6) })),
    });
  assert.deepEqual(await said('ENOTFOUND', 'ENODATA'), { error: 'its name has no address' });
  assert.deepEqual(await said('EBADNAME', 'EBADNAME'), { error: 'its name has no address' });
  const unresolved = { error: 'its name can not be resolved', unreached: true };
  assert.deepEqual(await said('ESERVFAIL', 'ENODATA'), unresolved);
  assert.deepEqual(await said('ETIMEOUT', 'ETIMEOUT'), unresolved);
});

test('says that nothing was reached where there was no connection, and no word why', async () => {
  const failing = (code: string): AddressPolicy => ({
    isAllowed: () => true,
    resolve: async () => Promise.reject(Object.assign(new Error(code), { code })),
  });
  const said = async (addresses: AddressPolicy): Promise<Outcome> =>
    send('https://shop.test/', { addresses, answerMs: 200 });
  assert.deepEqual(await said(failing('EAI_AGAIN')), { error: 'its name can not be resolved', unreached: true });
  assert.deepEqual(await said(failing('EMFILE')), { error: 'the request failed: EMFILE', unreached: true });
  assert.deepEqual(await said(failing('ENOTFOUND')), { error: 'its name has no address' });
  const silent = { isAllowed: () => true, resolve: async () => new Promise<never>(() => undefined) };
  assert.deepEqual(await said(silent), { error: 'no answer within 0.2 s', unreached: true });
});

test('resolves a name anew for a new connection', async () => {
  await withReceiver(
    (_, response) => void response.writeHead(200, { Connection: 'close' }).end(),
    async ({ port }) => {
      const addresses = named(['127.0.0.1'], ['127.0.0.2']);
      const sender = openSender({ addresses, userAgent: 'test' });
      const delivery = { url: `http://moving.test:${port}/`, headers: {}, body: BODY };
      const { signal } = new AbortController();
      assert.deepEqual(await sender.send(delivery, signal), { status: 200, response: '' });
      assert.deepEqual(await sender.send(delivery, signal), { error: 'its address is not public' });
      sender.close();
    },
  );
});

test('keeps a connection for the next event, and repeats at once on one that was closed', async () => {
  await withReceiver(
    (_, response) => void response.end(),
    async (receiver) => {
      const sender = openSender({ addresses: anyAddresses(), userAgent: 'test' });
      const delivery = { url: receiver.url, headers: {}, body: BODY };
      const { signal } = new AbortController();
      await sender.send(delivery, signal);
      await sender.send(delivery, signal);
      assert.equal(receiver.connections, 1);
      // Closed without an answer to what came on the kept connection.
      let first = true;
      receiver.answer = (_, response) => {
        if (first) response.socket?.destroy();
        else response.end('again');
        first = false;
      };
      assert.deepEqual(await sender.send(delivery, signal), { status: 200, response: 'again' });
      assert.equal(receiver.connections, 2);
      sender.close();
    },
  );
});

test('trusts a certificate of the host’s name alone', async () => {
  const tls = { key: HOOKS_KEY, cert: HOOKS_CERTIFICATE };
  await withReceiver(
    (_, response) => void response.end('safe'),
    async ({ port }) => {
      const addresses = named(['127.0.0.1']);
      const ca = HOOKS_CERTIFICATE;
      assert.deepEqual(await send(`https://${HOOKS_HOST}:${port}/`, { addresses, ca }), {
        status: 200,
        response: 'safe',
      });
      const other = await send(`https://other.test:${port}/`, { addresses, ca });
      assert.deepEqual(other, { error: 'its certificate does not hold: ERR_TLS_CERT_ALTNAME_INVALID' });
      const unknown = await send(`https://${HOOKS_HOST}:${port}/`, { addresses });
      assert.deepEqual(unknown, { error: 'its certificate does not hold: DEPTH_ZERO_SELF_SIGNED_CERT' });
    },
    { tls },
  );
});

test('uses no proxy of the environment', async () => {
  await withReceiver(
    (_, response) => void response.end('direct'),
    async ({ url }) => {
      const before = process.env['HTTP_PROXY'];
      process.env['HTTP_PROXY'] = 'http://127.0.0.1:1/';
      process.env['NODE_USE_ENV_PROXY'] = '1';
      try {
        assert.deepEqual(await send(url), { status: 200, response: 'direct' });
      } finally {
        delete process.env['NODE_USE_ENV_PROXY'];
        if (before === undefined) delete process.env['HTTP_PROXY'];
        else process.env['HTTP_PROXY'] = before;
      }
    },
  );
});

test.run();
