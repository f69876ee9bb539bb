import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, headers } from 'nats';
import { suite } from 'uvu';
import { EngineError } from '../../src/adapters/engineError.js';
import { openNatsBus } from '../../src/adapters/nats.js';
import { type Bus, NoRespondersError, RemoteError } from '../../src/ports/bus.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { busContract } from '../contract/bus.js';
import { type NatsServer, freePort, natsMissing, startNats } from '../support/natsServer.js';

const missing = natsMissing();
const ignore = (): void => undefined;

if (missing === undefined) {
  const shared = await startNats();
  busContract('NATS', async () => {
    const logId = randomUUID();
    const members: Bus[] = [];
    const open = async (): Promise<Bus> => {
      const bus = await openNatsBus({ url: shared.url, logId, onError: ignore });
      members.push(bus);
      return bus;
    };
    return {
      bus: await open(),
      second: open,
      async destroy() {
        await Promise.all(members.map((member) => member.close()));
      },
    };
  });

  const test = suite<{ server: NatsServer; logId: string }>('NATS');
  test.before.each(async (context) => {
    context.server = await startNats();
    context.logId = randomUUID();
  });
  test.after.each(({ server }) => server.stop());
  test.after(() => shared.stop());

  test('installations that share a NATS do not hear each other', async ({ server, logId }) => {
    const one = await openNatsBus({ url: server.url, logId, onError: ignore });
    const other = await openNatsBus({ url: server.url, logId: randomUUID(), onError: ignore });
    await one.serve('work', 'q', async () => ({ by: 'one' }));
    await assert.rejects(other.request('work', {}, { timeoutMs: 500 }), NoRespondersError);
    assert.deepEqual(await one.request('work', {}, { timeoutMs: 500 }), { by: 'one' });
    await Promise.all([one.close(), other.close()]);
  });

  test('what is no JSON is refused and told of once, with its subject and nothing of what it holds', async ({ server, logId }) => {
    const errors: Error[] = [];
    const bus = await openNatsBus({ url: server.url, logId, onError: (error) => errors.push(error as Error) });
    let handled = 0;
    await bus.serve('work', 'q', async () => ({ done: ++handled }));
    await bus.subscribe('news', () => void handled++);
    const stranger = await connect({ servers: server.url });
    const on = (subject: string): string => `gift.${logId}.${subject}`;
    stranger.publish(on('work'), '+447700900123 {{{');
    stranger.publish(on('news'), '');
    const reply = await stranger.request(on('work'), '{"to":"+447700900123"', { timeout: 1_000 });
    assert.match(decodeURIComponent(reply.headers?.get('Gift-Failed') ?? ''), /^a message on work that is no JSON$/);
    stranger.subscribe(on('odd'), { callback: (_, message) => void message.respond('447700900123') });
    stranger.subscribe(on('worse'), { callback: (_, message) => void message.respond('{"to":') });
    const header = headers();
    header.set('Gift-Failed', '%E2%82');
    stranger.subscribe(on('worst'), { callback: (_, message) => void message.respond('', { headers: header }) });
    await stranger.flush();
    for (const [subject, message] of [['worse', 'a message on worse that is no JSON'], ['worst', 'the other side failed to answer']] as const) {
      await assert.rejects(bus.request(subject, {}, { timeoutMs: 1_000 }), (error: unknown) => error instanceof RemoteError && error.message === message);
    }
    assert.equal(await bus.request<unknown>('odd', {}, { timeoutMs: 1_000 }), 447_700_900_123, 'JSON, whatever it says: who asked has to check it');
    assert.deepEqual(errors.map(({ message }) => message).toSorted(), ['a message on news that is no JSON', 'a message on work that is no JSON', 'a message on work that is no JSON']);
    assert.equal(handled, 0);
    assert.deepEqual(await bus.request('work', {}, { timeoutMs: 1_000 }), { done: 1 });
    await Promise.all([bus.close(), stranger.close()]);
  });

  for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
    test(`goes on by itself after the server met ${signal}`, async ({ server, logId }) => {
      if (server.child === undefined) return;
      const errors: unknown[] = [];
      const bus = await openNatsBus({ url: server.url, logId, onError: (error) => errors.push(error) });
      const second = await openNatsBus({ url: server.url, logId, onError: ignore });
      await second.serve('work', 'q', async () => ({ done: true }));
      server.child.kill(signal);
      await assert.rejects(bus.request('work', {}, { timeoutMs: 300 }));
      await assert.rejects(bus.ping(), UnavailableError);
      if (signal === 'SIGKILL') await server.restart();
      else server.child.kill('SIGCONT');
      let answer: object | undefined;
      for (let wait = 0; wait < 100 && answer === undefined; wait++) {
        answer = await bus.request<object>('work', {}, { timeoutMs: 300 }).catch(() => undefined);
        if (answer === undefined) await sleep(50);
      }
      assert.deepEqual(answer, { done: true });
      if (signal === 'SIGKILL') assert.ok(errors.length > 0, 'the loss is told');
      await Promise.all([bus.close(), second.close()]);
    });
  }

  test('credentials: taken from the address, refused clearly', async ({ logId }) => {
    const guarded = await startNats(['--user', 'u', '--pass', 'p/w']);
    const { host } = new URL(guarded.url);
    const bus = await openNatsBus({ url: `nats://u:p%2Fw@${host}`, logId, onError: ignore });
    await bus.ping();
    await bus.close();
    await assert.rejects(openNatsBus({ url: `nats://u:wrong@${host}`, logId, onError: ignore }), (error: unknown) => error instanceof EngineError && error.message.startsWith('NATS_URL: the credentials are refused') && !error.message.includes('wrong'));
    await guarded.stop();
    const tokened = await startNats(['--auth', 's3cret']);
    const other = await openNatsBus({ url: `nats://s3cret@${new URL(tokened.url).host}`, logId, onError: ignore });
    await other.ping();
    await other.close();
    await tokened.stop();
  });

  test('nobody there: a clear message at start', async ({ logId }) => {
    const port = await freePort();
    await assert.rejects(openNatsBus({ url: `nats://127.0.0.1:${port}`, logId, onError: ignore }), /^EngineError: NATS_URL: no NATS server answers there/);
  });

  test.run();
} else {
  console.log(`skipped: NATS: ${missing}`);
}
