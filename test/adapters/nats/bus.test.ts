import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, headers } from 'nats';
import { suite } from 'uvu';
import { EngineError } from '../../../src/lib/engineError.js';
import { openNatsBus } from '../../../src/adapters/nats/bus.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError } from '../../../src/ports/bus.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { busContract } from '../../contract/bus.js';
import { type BusProcess, openBusInProcess } from '../../support/engines/busProcess.js';
import { type NatsServer, natsMissing, natsOfVersion, startNats } from '../../support/engines/natsServer.js';
import { freePort, killed } from '../../support/engines/serverProcess.js';
import { skipSuite } from '../../support/assertions/testWhere.js';
import { eventually, FOR_EVER_MS } from '../../support/assertions/until.js';

const missing = natsMissing();
const ownMissing = natsMissing({ own: true });
const ignore = (): void => undefined;
/** The answer of `work`, once there is one. */
const worked = (bus: Bus): Promise<object> =>
  eventually(() => bus.request<object>('work', {}, { timeoutMs: 300 }).catch(() => undefined), 'an answer');
const answers = (bus: Bus): Promise<boolean> =>
  bus.ping().then(
    () => true,
    () => false,
  );

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

  const after = suite('NATS contract: what was started');
  after('is ended', () => shared.stop());
  after.run();
} else {
  skipSuite('bus: NATS', missing);
}

const versions = suite('NATS: versions');

versions('one that is too old is refused and left', async () => {
  for (const [version, refused] of [
    ['2.1.9', true],
    ['1.4.1', true],
    ['2.8.4', true],
    ['2.9.0', false],
    ['2.12.1', false],
    ['3.0.0-beta', false],
  ] as const) {
    const server = await natsOfVersion(version);
    const opened = await openNatsBus({ url: server.url, logId: 'x', onError: ignore }).catch((error: unknown) => error);
    if (refused) {
      assert.ok(opened instanceof EngineError, version);
      assert.equal(opened.message, `NATS_URL: NATS ${version} is too old: use 2.9 or later`);
    } else {
      assert.ok(!(opened instanceof Error), `${version}: ${String(opened)} ${String((opened as Error).cause)}`);
      await (opened as Bus).close();
    }
    await server.close();
  }
});

versions.run();

if (ownMissing === undefined) {
  const test = suite<{ server: NatsServer; logId: string }>('NATS');
  test.before.each(async (context) => {
    context.server = await startNats({ own: true });
    context.logId = randomUUID();
  });
  test.after.each(({ server }) => server.stop());

  test('keeps installations that share a server apart', async ({ server, logId }) => {
    const one = await openNatsBus({ url: server.url, logId, onError: ignore });
    const other = await openNatsBus({ url: server.url, logId: randomUUID(), onError: ignore });
    await one.serve('work', 'q', async () => ({ by: 'one' }));
    await assert.rejects(other.request('work', {}, { timeoutMs: 10_000 }), NoRespondersError);
    assert.deepEqual(await one.request('work', {}, { timeoutMs: 10_000 }), { by: 'one' });
    await Promise.all([one.close(), other.close()]);
  });

  test('refuses and reports what is not JSON once, by its subject alone', async ({ server, logId }) => {
    const errors: Error[] = [];
    const bus = await openNatsBus({ url: server.url, logId, onError: (error) => errors.push(error as Error) });
    let handled = 0;
    await bus.serve('work', 'q', async () => ({ done: ++handled }));
    await bus.subscribe('news', () => void handled++);
    const stranger = await connect({ servers: server.url });
    const on = (subject: string): string => `gift.${logId}.${subject}`;
    for (const nothing of ['+447700900123 {{{', '']) stranger.publish(on('work'), nothing);
    stranger.publish(on('news'), '');
    const reply = await stranger.request(on('work'), '{"to":"+447700900123"', { timeout: 10_000 });
    assert.match(decodeURIComponent(reply.headers?.get('Gift-Failed') ?? ''), /^a message on work that is no JSON$/);
    stranger.subscribe(on('odd'), { callback: (_, message) => void message.respond('447700900123') });
    stranger.subscribe(on('worse'), { callback: (_, message) => void message.respond('{"to":') });
    const header = headers();
    header.set('Gift-Failed', '%E2%82');
    stranger.subscribe(on('worst'), { callback: (_, message) => void message.respond('', { headers: header }) });
    await stranger.flush();
    for (const [subject, message] of [
      ['worse', 'a message on worse that is no JSON'],
      ['worst', 'the other side failed to answer'],
    ] as const) {
      await assert.rejects(
        bus.request(subject, {}, { timeoutMs: 10_000 }),
        (error: unknown) => error instanceof RemoteError && error.message === message,
      );
    }
    assert.equal(
      await bus.request<unknown>('odd', {}, { timeoutMs: 10_000 }),
      447_700_900_123,
      'JSON, whatever it says: who asked has to check it',
    );
    assert.deepEqual(errors.map(({ message }) => message).toSorted(), [
      'a message on news that is no JSON',
      ...Array.from({ length: 3 }, () => 'a message on work that is no JSON'),
    ]);
    assert.equal(handled, 0);
    assert.deepEqual(await bus.request('work', {}, { timeoutMs: 10_000 }), { done: 1 });
    await Promise.all([bus.close(), stranger.close()]);
  });

  for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
    test(`goes on by itself after the server met ${signal}`, async ({ server, logId }) => {
      const errors: unknown[] = [];
      const bus = await openNatsBus({ url: server.url, logId, onError: (error) => errors.push(error) });
      const second = await openNatsBus({ url: server.url, logId, onError: ignore });
      await second.serve('work', 'q', async () => ({ done: true }));
      server.child?.kill(signal);
      // The signal takes its time.
      await sleep(50);
      await assert.rejects(bus.request('work', {}, { timeoutMs: 300 }));
      await assert.rejects(bus.ping(), UnavailableError);
      if (signal === 'SIGKILL') await server.restart();
      else server.child?.kill('SIGCONT');
      assert.deepEqual(await worked(bus), { done: true });
      if (signal === 'SIGKILL') assert.ok(errors.length > 0, 'the loss is told');
      await Promise.all([bus.close(), second.close()]);
    });
  }

  test('looks for the server however long it is gone, and serves and hears again as before', async ({
    server,
    logId,
  }) => {
    const [bus, other] = [
      await openNatsBus({ url: server.url, logId, onError: ignore }),
      await openNatsBus({ url: server.url, logId, onError: ignore }),
    ];
    const heard: object[] = [];
    await other.serve('work', 'q', async () => ({ done: true }));
    await other.subscribe<object>('told', (message) => void heard.push(message));
    server.child?.kill('SIGKILL');
    // Less than ten tries, where the client gives up by itself.
    await sleep(7_000);
    await server.restart();
    assert.deepEqual(await worked(bus), { done: true });
    await bus.publish('told', { n: 1 });
    await eventually(() => heard.length > 0);
    assert.deepEqual(heard, [{ n: 1 }]);
    await Promise.all([bus.close(), other.close()]);
  });

  test('goes on by itself after the server refused its credentials for a while', async ({ logId }) => {
    const args = ['--user', 'u', '--pass', 'right'];
    const guarded = await startNats({ args });
    const errors: Error[] = [];
    const url = guarded.url.replace('//', '//u:right@');
    const bus = await openNatsBus({ url, logId, onError: (error) => errors.push(error as Error) });
    await bus.serve('work', 'q', async () => ({ done: true }));
    await guarded.restart(['--user', 'u', '--pass', 'other']);
    const refused = 'NATS: error (AUTHORIZATION_VIOLATION)';
    await eventually(() => errors.some(({ message }) => message === refused), refused);
    // At the second refusal the client would give up by itself.
    await sleep(2_000);
    await assert.rejects(bus.ping(), UnavailableError);
    const said = errors.map(({ message }) => message);
    assert.deepEqual(said, [...new Set(said)], 'each trouble of an outage once');
    await guarded.restart(args);
    await eventually(() => answers(bus));
    assert.deepEqual(await bus.request('work', {}, { timeoutMs: 10_000 }), { done: true });
    await bus.close();
    await guarded.stop();
  });

  test('tells refused credentials at the start from an outage in a cluster too', async ({ logId }) => {
    const routes = await freePort();
    const guard = ['--user', 'u', '--pass', 'right', '--cluster_name', 'c'];
    const one = await startNats({ args: [...guard, '--cluster', `nats://127.0.0.1:${routes}`] });
    const other = await startNats({
      args: [...guard, '--cluster', 'nats://127.0.0.1:-1', '--routes', `nats://127.0.0.1:${routes}`],
    });
    const inCluster = await connect({ servers: one.url, user: 'u', pass: 'right' });
    // Each server names the other: the client would try them in turn for ever.
    await eventually(() => (inCluster.info?.connect_urls?.length ?? 0) > 1);
    await inCluster.close();
    await assert.rejects(
      openNatsBus({ url: one.url.replace('//', '//u:wrong@'), logId, onError: ignore }),
      /^EngineError: NATS_URL: the credentials are refused/,
    );
    await Promise.all([one.stop(), other.stop()]);
  });

  test('finds a server of its addresses that was not there at the start', async ({ server, logId }) => {
    const late = await startNats({ own: true });
    await killed(late.child!);
    const url = `${late.url},${server.url}`;
    // The client tries the addresses in any order.
    const buses = await Promise.all(
      Array.from({ length: 5 }, async () => openNatsBus({ url, logId, onError: ignore })),
    );
    await killed(server.child!);
    await late.restart();
    for (const bus of buses) await eventually(() => answers(bus));
    await Promise.all(buses.map((bus) => bus.close()));
    await late.stop();
  });

  test('stops serving and closes while the server is ended or silent', async ({ logId }) => {
    for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
      const server = await startNats({ own: true });
      const bus = await openNatsBus({ url: server.url, logId, onError: ignore });
      const stops = await Promise.all(['a', 'b', 'c'].map((subject) => bus.serve(subject, 'q', async () => ({}))));
      server.child?.kill(signal);
      await sleep(50);
      await Promise.all(stops.map((stop) => stop()));
      await bus.close();
      await server.stop();
      let connections = 0;
      const listener = createServer((socket) => {
        connections += 1;
        socket.destroy();
      }).listen(Number(new URL(server.url).port), '127.0.0.1');
      await once(listener, 'listening');
      await sleep(1_500);
      listener.close();
      assert.equal(connections, 0, `${signal}: a closed bus looks for no server`);
    }
  });

  test('fails to serve as an outage while the server is away', async ({ server, logId }) => {
    const bus = await openNatsBus({ url: server.url, logId, onError: ignore });
    await killed(server.child!);
    await assert.rejects(
      bus.serve('work', 'q', async () => ({ done: true })),
      UnavailableError,
    );
    await server.restart();
    await eventually(() => answers(bus));
    await assert.rejects(bus.request('work', {}, { timeoutMs: 10_000 }), NoRespondersError);
    await bus.close();
  });

  const members = async (
    url: string,
    logId: string,
  ): Promise<{ readonly asker: Bus; readonly one: BusProcess; readonly other: BusProcess; close(): Promise<void> }> => {
    const asker = await openNatsBus({ url, logId, onError: ignore });
    const [one, other] = await Promise.all([openBusInProcess({ url, logId }), openBusInProcess({ url, logId })]);
    return {
      asker,
      one,
      other,
      close: async () => void (await Promise.all([asker, one, other].map((bus) => bus.close()))),
    };
  };

  test('asks others in place of a frozen member of a queue group, which repeats nothing later', async ({
    server,
    logId,
  }) => {
    const { asker, one, other, close } = await members(server.url, logId);
    const done = new Map<number, number>();
    const count = async ({ n }: { n: number }): Promise<object> => {
      done.set(n, (done.get(n) ?? 0) + 1);
      return { n };
    };
    for (const member of [one, other]) await member.serve<{ n: number }>('work', 'q', count);
    one.freeze();
    await sleep(50);
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => asker.request<{ n: number }>('work', { n }, { timeoutMs: FOR_EVER_MS })),
    );
    assert.deepEqual(
      answers.map(({ n }) => n),
      Array.from({ length: 40 }, (_, n) => n),
    );
    one.thaw();
    await asker.request('work', { n: 99 }, { timeoutMs: 15_000 });
    await sleep(200);
    assert.ok(
      [...done.values()].every((times) => times <= 2),
      'each member takes a request once, however often it comes',
    );
    await close();
  });

  test('gives up a member that falls silent long before the deadline, and waits for a slow one', async ({
    server,
    logId,
  }) => {
    const { asker, one, other, close } = await members(server.url, logId);
    let begun: (() => void) | undefined;
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    await one.serve('freezes', 'q', async () => {
      begun?.();
      await sleep(10_000, undefined, { ref: false });
      return {};
    });
    await other.serve('slow', 'q', async () => {
      await sleep(3_000);
      return { slow: true };
    });
    const slow = asker.request('slow', {}, { timeoutMs: 15_000 });
    const freezing = assert.rejects(asker.request('freezes', {}, { timeoutMs: FOR_EVER_MS }), DeadlineError);
    await isBegun;
    await sleep(300);
    one.freeze();
    await freezing;
    assert.deepEqual(await slow, { slow: true });
    await one.kill();
    await close();
  });

  test('never reports a delivered request as without responders', async ({ server, logId }) => {
    const { asker, one, other, close } = await members(server.url, logId);
    await one.serve('work', 'q', async () => ({}));
    one.freeze();
    await sleep(50);
    const requested = assert.rejects(asker.request('work', {}, { timeoutMs: FOR_EVER_MS }), DeadlineError);
    await sleep(100);
    await one.kill();
    await requested;
    await assert.rejects(asker.request('work', {}, { timeoutMs: 15_000 }), NoRespondersError);
    await other.close();
    await close();
  });

  test('takes credentials from the address, and says clearly that they are refused', async ({ logId }) => {
    const guarded = await startNats({ args: ['--user', 'u', '--pass', 'p/w'] });
    const { host } = new URL(guarded.url);
    const bus = await openNatsBus({ url: `nats://u:p%2Fw@${host}`, logId, onError: ignore });
    await bus.ping();
    await bus.close();
    await assert.rejects(
      openNatsBus({ url: `nats://u:wrong@${host}`, logId, onError: ignore }),
      (error: unknown) =>
        error instanceof EngineError &&
        error.message.startsWith('NATS_URL: the credentials are refused') &&
        !error.message.includes('wrong'),
    );
    await guarded.stop();
    const tokened = await startNats({ args: ['--auth', 's3cret'] });
    const other = await openNatsBus({ url: `nats://s3cret@${new URL(tokened.url).host}`, logId, onError: ignore });
    await other.ping();
    await other.close();
    await tokened.stop();
  });

  test('refuses to start, and to serve, where the permissions of its user leave out what it needs', async ({
    logId,
  }) => {
    const dir = mkdtempSync(join(tmpdir(), 'gift-nats-'));
    const user = (name: string, publish: string, subscribe: string): string =>
      `{ user: ${name}, password: p, permissions { publish: ${publish}, subscribe: ${subscribe} } }`;
    const all = '["_INBOX.>", "gift.>"]';
    const conf = join(dir, 'nats.conf');
    writeFileSync(
      conf,
      `authorization { users [
        ${user('deaf', all, '"gift.>"')}
        ${user('idle', all, '"_INBOX.>"')}
        ${user('silent', '"gift.>"', all)}
        ${user('mute', '"_INBOX.>"', all)}
        ${user('some', all, '["_INBOX.>", "gift.*.start"]')}
        ${user('all', all, all)}
      ] }`,
    );
    const guarded = await startNats({ args: ['-c', conf] });
    const errors: unknown[] = [];
    const open = async (user: string): Promise<Bus> =>
      openNatsBus({
        url: guarded.url.replace('//', `//${user}:p@`),
        logId,
        onError: (error) => void errors.push(error),
      });
    for (const [name, may] of [
      ['deaf', 'subscribe to _INBOX'],
      ['idle', 'subscribe to gift'],
      ['silent', 'publish to _INBOX'],
      ['mute', 'publish to gift'],
    ] as const)
      await assert.rejects(open(name), new RegExp(`^EngineError: NATS_URL: its user may not ${may}\\.`), name);
    const bus = await open('some');
    await assert.rejects(
      bus.serve('work', 'q', async () => ({})),
      (error: unknown) => error instanceof UnavailableError && /may not subscribe/.test(error.message),
    );
    await assert.rejects(bus.subscribe('news', ignore), UnavailableError);
    const other = await open('all');
    await other.serve('work', 'q', async () => ({ done: true }));
    assert.deepEqual(await bus.request('work', {}, { timeoutMs: 10_000 }), { done: true });
    await Promise.all([bus.close(), other.close()]);
    await guarded.stop();
    rmSync(dir, { recursive: true });
  });

  test('is not ready while permissions are withdrawn, and serves and hears again once they are back', async ({
    logId,
  }) => {
    const dir = mkdtempSync(join(tmpdir(), 'gift-nats-'));
    const conf = join(dir, 'nats.conf');
    const allow = (subscribe: string): void =>
      writeFileSync(
        conf,
        `authorization { users [
          { user: all, password: p, permissions { publish: ">", subscribe: ${subscribe} } }
        ] }`,
      );
    allow('["_INBOX.>", "gift.>"]');
    const guarded = await startNats({ args: ['-c', conf] });
    const errors: Error[] = [];
    const heard: object[] = [];
    const bus = await openNatsBus({
      url: guarded.url.replace('//', '//all:p@'),
      logId,
      onError: (error) => void errors.push(error as Error),
    });
    const stop = await bus.serve('work', 'q', async () => ({ done: true }));
    await bus.subscribe('news', (payload: object) => void heard.push(payload));
    const works = async (): Promise<void> => {
      await eventually(() => answers(bus));
      assert.deepEqual(await bus.request('work', {}, { timeoutMs: 10_000 }), { done: true });
      heard.length = 0;
      await bus.publish('news', { n: 1 });
      await eventually(() => heard.length > 0);
      assert.deepEqual(heard, [{ n: 1 }]);
    };
    const withdrawn = async (): Promise<void> => {
      await eventually(async () => !(await answers(bus)));
      // Refused again and again, and said once.
      await sleep(2_500);
      await assert.rejects(bus.ping(), (error: unknown) => {
        assert.ok(error instanceof UnavailableError);
        assert.match(error.message, /may not subscribe to/);
        assert.equal(error.publicReason, 'refuses what its user needs (the log says what)');
        return true;
      });
    };
    for (const left of ['"_INBOX.>"', '["gift.>"]', '"nothing"']) {
      errors.length = 0;
      allow(left);
      guarded.child?.kill('SIGHUP');
      await withdrawn();
      const said = errors.map(({ message }) => message);
      assert.deepEqual(said, [...new Set(said)], left);
      assert.ok(said.length > 0, left);
      allow('["_INBOX.>", "gift.>"]');
      guarded.child?.kill('SIGHUP');
      await works();
    }
    // As after a start with a wrong configuration: the client's own subscriptions are refused when it connects again.
    allow('"_INBOX.>"');
    await guarded.restart();
    await withdrawn();
    allow('["_INBOX.>", "gift.>"]');
    await guarded.restart();
    await works();
    await stop();
    await assert.rejects(bus.request('work', {}, { timeoutMs: 10_000 }), NoRespondersError);
    await bus.close();
    await guarded.stop();
    rmSync(dir, { recursive: true });
  });

  test('is not ready while its user may not publish, says so once, and works again once it may', async ({ logId }) => {
    const dir = mkdtempSync(join(tmpdir(), 'gift-nats-'));
    const conf = join(dir, 'nats.conf');
    const allow = (publish: string): void =>
      writeFileSync(
        conf,
        `authorization { users [ { user: all, password: p, permissions { publish: ${publish}, subscribe: ">" } } ] }`,
      );
    allow('["_INBOX.>", "gift.>"]');
    const guarded = await startNats({ args: ['-c', conf] });
    const errors: Error[] = [];
    const bus = await openNatsBus({
      url: guarded.url.replace('//', '//all:p@'),
      logId,
      onError: (error) => void errors.push(error as Error),
    });
    await bus.serve('work', 'q', async () => ({ done: true }));
    for (const left of ['"_INBOX.>"', '["gift.>"]', `["_INBOX.>", "gift.${logId}.start"]`]) {
      errors.length = 0;
      allow(left);
      guarded.child?.kill('SIGHUP');
      // Of a subject of its own only requests for it tell, which their senders repeat.
      await eventually(async () => {
        await bus.request('work', {}, { timeoutMs: 500 }).catch(ignore);
        return !(await answers(bus));
      });
      await assert.rejects(
        bus.ping(),
        (error: unknown) =>
          error instanceof UnavailableError &&
          /may not publish to/.test(error.message) &&
          error.publicReason === 'refuses what its user needs (the log says what)',
      );
      const said = errors.map(({ message }) => message.replace(/_INBOX\.\S+(?=\))/, '_INBOX'));
      assert.deepEqual(said, [...new Set(said)], left);
      assert.ok(said.length > 0, left);
      allow('["_INBOX.>", "gift.>"]');
      guarded.child?.kill('SIGHUP');
      await eventually(() => answers(bus));
      assert.deepEqual(await bus.request('work', {}, { timeoutMs: 10_000 }), { done: true });
    }
    await bus.close();
    await guarded.stop();
    rmSync(dir, { recursive: true });
  });

  test('says clearly at the start that no server is there', async ({ logId }) => {
    const port = await freePort();
    await assert.rejects(
      openNatsBus({ url: `nats://127.0.0.1:${port}`, logId, onError: ignore }),
      /^EngineError: NATS_URL: no NATS server answers there/,
    );
  });

  test('says clearly that a server has no TLS', async ({ server, logId }) => {
    await assert.rejects(
      openNatsBus({ url: server.url.replace('nats:', 'tls:'), logId, onError: ignore }),
      /^EngineError: NATS_URL: the server has no TLS/,
    );
  });

  test.run();
} else {
  skipSuite('NATS', ownMissing);
}
