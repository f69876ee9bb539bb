/** The bus port's guarantees, as tests of each adapter. */
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Bus, DeadlineError, NoRespondersError, RemoteError } from '../../src/ports/bus.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { until } from '../support/assertions/until.js';

/** An opened bus of its own, for one test. */
export interface BusUnderTest {
  readonly bus: Bus;
  /** Another process's client of the same bus. */
  second(): Promise<Bus>;
  /** Closes every client and removes what they left. */
  destroy(): Promise<void>;
}

/** Guarantees an adapter does not give, each with its reason: the test's name -> why. */
export type Deviations = Readonly<Record<string, string>>;

/** The rejection of a promise. */
async function refusal(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.unreachable('must be refused');
}

/** Registers and runs the suite. */
export function busContract(name: string, open: () => Promise<BusUnderTest>, deviations: Deviations = {}): void {
  const test = suite<{ under: BusUnderTest }>(`bus: ${name}`);
  const it = (title: string, run: (bus: Bus, under: BusUnderTest) => Promise<void>): void => {
    if (deviations[title] !== undefined) return console.log(`  deviation: ${title}: ${deviations[title]}`);
    test(title, ({ under }) => run(under.bus, under));
  };
  test.before.each(async (context) => {
    context.under = await open();
  });
  test.after.each((context) => context.under.destroy());

  it('answers a request, to itself and across clients', async (bus, under) => {
    const second = await under.second();
    await bus.serve<{ n: number }>('sums.double', 'sums', async ({ n }) => ({ n: n * 2 }));
    assert.equal(await bus.request('sums.double', { n: 2 }, { timeoutMs: 10_000 }), { n: 4 });
    assert.equal(await second.request('sums.double', { n: 3 }, { timeoutMs: 10_000 }), { n: 6 });
    await second.serve<{ n: number }>('sums.square', 'sums', async ({ n }) => ({ n: n * n }));
    assert.equal(await bus.request('sums.square', { n: 3 }, { timeoutMs: 10_000 }), { n: 9 });
  });

  it('keeps apart many requests at once', async (bus, under) => {
    const second = await under.second();
    await second.serve<{ n: number }>('echo', 'echo', async ({ n }) => {
      await sleep(n % 7);
      return { n };
    });
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, n) => bus.request<{ n: number }>('echo', { n }, { timeoutMs: 10_000 })),
    );
    assert.equal(
      answers.map(({ n }) => n),
      Array.from({ length: 500 }, (_, n) => n),
    );
  });

  it('answers with the beginning of a long error, and goes on', async (bus, under) => {
    const second = await under.second();
    await second.serve('fail', 'fail', async () => Promise.reject(new Error('ö'.repeat(2_000_000))));
    const error = (await refusal(bus.request('fail', {}, { timeoutMs: 10_000 }))) as Error;
    assert.instance(error, RemoteError);
    assert.match(error.message, /^ö{1,300}$/);
    await second.serve('echo', 'echo', async (payload: object) => payload);
    assert.equal(await bus.request('echo', { n: 1 }, { timeoutMs: 10_000 }), { n: 1 });
  });

  it('carries any JSON unchanged, up to 1 MB, and refuses more', async (bus, under) => {
    const second = await under.second();
    await second.serve('echo', 'echo', async (payload: object) => payload);
    const payload = { text: 'Grüße, 你好 😀 \u0000 "\\', list: [1, -0.5, null, true, { deep: [] }], '': '' };
    assert.equal(await bus.request('echo', payload, { timeoutMs: 10_000 }), payload);
    const large = { text: 'ö'.repeat(499_990) };
    assert.equal(await bus.request('echo', large, { timeoutMs: 10_000 }), large);
    assert.instance(
      await refusal(bus.request('echo', { text: 'x'.repeat(1_000_000) }, { timeoutMs: 10_000 })),
      RangeError,
    );
    assert.instance(await refusal(bus.publish('echo', { text: 'x'.repeat(1_000_000) })), RangeError);
  });

  it('takes away what the sender changes after sending', async (bus) => {
    const seen: unknown[] = [];
    await bus.serve('keep', 'keep', async (payload: object) => {
      seen.push(payload);
      return payload;
    });
    const payload = { n: 1 };
    const answer = bus.request<object>('keep', payload, { timeoutMs: 10_000 });
    payload.n = 2;
    assert.equal(await answer, { n: 1 });
    assert.is.not(seen[0], payload);
  });

  it('fails a request that no client answers', async (bus, under) => {
    const second = await under.second();
    assert.instance(await refusal(bus.request('nobody.here', {}, { timeoutMs: 10_000 })), NoRespondersError);
    assert.instance(await refusal(second.request('nobody.here', {}, { timeoutMs: 10_000 })), NoRespondersError);
  });

  it('says when no answer comes in time, and ignores a late one', async (bus, under) => {
    const second = await under.second();
    await second.serve('slow', 'slow', async () => {
      await sleep(150);
      return { late: true };
    });
    assert.instance(await refusal(bus.request('slow', {}, { timeoutMs: 50 })), DeadlineError);
    await sleep(200);
    assert.equal(await bus.request('slow', {}, { timeoutMs: 10_000 }), { late: true });
  });

  it('throws to the requester what a handler throws', async (bus, under) => {
    const second = await under.second();
    await second.serve('fails', 'fails', async () => {
      throw new Error('no such thing');
    });
    for (const member of [bus, second]) {
      const error = await refusal(member.request('fails', {}, { timeoutMs: 10_000 }));
      assert.instance(error, RemoteError);
      assert.match((error as Error).message, 'no such thing');
    }
  });

  it('reports a failed handler to the requester, however long and odd its words', async (bus, under) => {
    const second = await under.second();
    for (const words of ['it is "€ 5" too much: '.repeat(100), '🎁'.repeat(1_000), `x${'🎁'.repeat(1_000)}`]) {
      const stop = await second.serve('fails', 'q', async () => Promise.reject(new Error(words)));
      const error = await refusal(bus.request('fails', {}, { timeoutMs: 10_000 }));
      assert.instance(error, RemoteError);
      assert.is((error as Error).message.slice(0, 200), words.slice(0, 200));
      await stop();
    }
  });

  it('gives each request to one member of a queue group, and shares them out', async (bus, under) => {
    const second = await under.second();
    const third = await under.second();
    const counts = [0, 0];
    await Promise.all(
      [bus, second].map((member, at) =>
        member.serve('work', 'workers', async () => ({ at, n: ++(counts as number[])[at]! })),
      ),
    );
    await Promise.all(Array.from({ length: 100 }, () => third.request('work', {}, { timeoutMs: 10_000 })));
    await Promise.all(Array.from({ length: 100 }, () => bus.request('work', {}, { timeoutMs: 10_000 })));
    assert.is(counts[0]! + counts[1]!, 200);
    assert.ok(counts[0]! + counts[1]! >= 200 && Math.max(...counts) >= 20, 'somebody works');
  });

  it('gives each request to every queue group', async (bus, under) => {
    const second = await under.second();
    const got: string[] = [];
    await bus.serve('told', 'one', async () => {
      got.push('one');
      return { by: 'one' };
    });
    await second.serve('told', 'two', async () => {
      got.push('two');
      return { by: 'two' };
    });
    const answer = await bus.request<{ by: string }>('told', {}, { timeoutMs: 10_000 });
    assert.ok(['one', 'two'].includes(answer.by));
    await until(() => got.length === 2);
    assert.equal(got.toSorted(), ['one', 'two']);
  });

  it('sends no request to a client that has stopped serving', async (bus, under) => {
    const second = await under.second();
    const stop = await second.serve('work', 'workers', async () => ({ by: 'second' }));
    const stopOther = await second.serve('work', 'workers', async () => ({ by: 'second' }));
    await stop();
    await stop();
    assert.equal(await bus.request('work', {}, { timeoutMs: 10_000 }), { by: 'second' });
    await stopOther();
    assert.instance(await refusal(bus.request('work', {}, { timeoutMs: 10_000 })), NoRespondersError);
  });

  it('reaches every subscriber once, in every process', async (bus, under) => {
    const second = await under.second();
    const got: string[] = [];
    await bus.subscribe<{ n: number }>('news', ({ n }) => void got.push(`a${n}`));
    const stop = await second.subscribe<{ n: number }>('news', ({ n }) => void got.push(`b${n}`));
    await second.subscribe<{ n: number }>('news', ({ n }) => void got.push(`c${n}`));
    await second.publish('news', { n: 1 });
    await bus.publish('news', { n: 2 });
    await until(() => got.length === 6);
    assert.equal(got.toSorted(), ['a1', 'a2', 'b1', 'b2', 'c1', 'c2']);
    await stop();
    await bus.publish('news', { n: 3 });
    await bus.publish('other', { n: 4 });
    await until(() => got.length === 8);
    await sleep(50);
    assert.equal(got.slice(6).toSorted(), ['a3', 'c3']);
  });

  it('goes on after a subscriber threw', async (bus, under) => {
    const second = await under.second();
    const got: number[] = [];
    await second.subscribe<{ n: number }>('news', ({ n }) => {
      got.push(n);
      if (n === 1) throw new Error('cannot take it');
    });
    await bus.publish('news', { n: 1 });
    await bus.publish('news', { n: 2 });
    await until(() => got.length === 2);
  });

  it('refuses what is not a subject', async (bus) => {
    for (const subject of ['', 'a..b', 'a.*', '>', 'a b', '.a']) {
      assert.instance(await refusal(bus.request(subject, {}, { timeoutMs: 100 })), TypeError, subject);
      assert.instance(await refusal(bus.publish(subject, {})), TypeError, subject);
      assert.instance(await refusal(bus.serve(subject, 'q', async () => ({}))), TypeError, subject);
      assert.instance(await refusal(bus.subscribe(subject, () => undefined)), TypeError, subject);
    }
  });

  it('lets running handlers finish when it closes, and takes nothing new', async (bus, under) => {
    const second = await under.second();
    let started = false;
    await second.serve('slow', 'slow', async () => {
      started = true;
      await sleep(150);
      return { done: true };
    });
    const answer = bus.request('slow', {}, { timeoutMs: 10_000 });
    await until(() => started);
    const closed = second.close();
    assert.equal(await answer, { done: true });
    await closed;
    await second.close();
    assert.instance(await refusal(bus.request('slow', {}, { timeoutMs: 10_000 })), NoRespondersError);
    for (const call of [
      second.request('slow', {}, { timeoutMs: 100 }),
      second.publish('news', {}),
      second.subscribe('news', () => undefined),
      second.ping(),
    ])
      assert.instance(await refusal(call), UnavailableError);
    assert.instance(await refusal(second.serve('a', 'b', async () => ({}))), UnavailableError);
  });

  it('ends its own open requests when it closes', async (bus, under) => {
    const second = await under.second();
    await bus.serve('slow', 'slow', async () => {
      await sleep(300);
      return {};
    });
    const error = refusal(second.request('slow', {}, { timeoutMs: 10_000 }));
    await sleep(50);
    await second.close();
    const ended = await error;
    assert.instance(ended, UnavailableError);
    assert.ok((ended as UnavailableError).outcomeUnknown);
  });

  it('says that it is reachable', async (bus, under) => {
    await bus.ping();
    await (await under.second()).ping();
    assert.type(bus.engine, 'string');
  });

  test.run();
}
