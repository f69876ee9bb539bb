import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import type { AppendRequest } from '../../../../src/adapters/embedded/eventStore/commit.js';
import { groupCommit } from '../../../../src/adapters/embedded/eventStore/commit.js';
import { feed } from '../../../../src/adapters/embedded/eventStore/feed.js';
import { eventLogFile, numberOf, openEventLog, positionOf } from '../../../../src/adapters/embedded/eventStore/log.js';
import type { EventReader, Slice } from '../../../../src/adapters/embedded/eventStore/reader.js';
import {
  type LogTail,
  type LogTailOptions,
  watchLogTail,
} from '../../../../src/adapters/embedded/eventStore/logTail.js';
import { threadData } from '../../../../src/adapters/embedded/thread.js';
import { openEventWriter } from '../../../../src/adapters/embedded/eventStore/writer.js';
import type { RecordedEvent } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { batchesOf, event, events, failureOf, readUntil, within } from '../../../support/engines/eventStoreEvents.js';
import { inFolder } from '../../../support/engines/eventStoreFolder.js';
import { DEADLINE_MS, until } from '../../../support/assertions/until.js';

const test = suite('Embedded event store: its parts');

test('writes positions as 16 digits, and refuses anything else', () => {
  assert.is(positionOf(42), '0000000000000042');
  assert.is(numberOf('0000000000000042'), 42);
  assert.is(numberOf(undefined), 0);
  for (const odd of ['', '42', '000000000000004x', 'C:42/P:42'])
    assert.throws(
      () => numberOf(odd),
      (error: Error) => error instanceof RangeError,
    );
});

test('has no end and no events when it is new, and refuses an append without events', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    assert.is(await store.end(), undefined);
    assert.equal(await batchesOf(store.readAll(undefined)), []);
    assert.instance(await failureOf(store.append('stream', [], 'any')), RangeError);
    assert.is(await store.end(), undefined);
  }));

test('writes appends together that come while others are written, also the last ones', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    const appends = [];
    for (let n = 0; n < 3_000; n++) {
      appends.push(store.append(`stream-${n % 10}`, [event()], 'any'));
      if (n % 3 === 0) await nextTick();
    }
    await store.close();
    const positions = (await Promise.all(appends)).map(({ position }) => position);
    assert.is(positions.at(-1), positionOf(3_000));
    assert.is(new Set(positions).size, 3_000);
  }));

test('moves appended pages from the WAL into the file while appending goes on', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    const size = (): number => statSync(eventLogFile(dir)).size;
    const before = size();
    // Fewer pages than SQLite waits for by itself.
    for (let n = 0; n < 60; n++)
      await Promise.all(
        Array.from({ length: 100 }, () =>
          store.append(`stream-${randomUUID()}`, [event('Moved', { text: 'x'.repeat(500) })], 'none'),
        ),
      );
    await until(() => size() > before + 1_000_000, 'the file to grow');
    await store.close();
    assert.is(statSync(`${eventLogFile(dir)}-wal`, { throwIfNoEntry: false }), undefined, 'nobody holds it open');
  }));

test('sends more than one group holds at once', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    await Promise.all([
      ...Array.from({ length: 1_500 }, (_, n) => store.append(`small-${n}`, [event()], 'none')),
      ...Array.from({ length: 12 }, (_, n) =>
        store.append(`large-${n}`, [event('Large', { text: 'x'.repeat(900_000) })], 'none'),
      ),
    ]);
    assert.is(await store.end(), positionOf(1_512));
    const batches = await batchesOf(store.readAll(undefined, { streams: ['large-'] }));
    assert.ok(batches.length >= 2, 'large events come few at a time');
    assert.is(batches.flatMap((batch) => batch.events).length, 12);
    await store.append('large-stream', batches.flatMap((batch) => batch.events).slice(0, 1), 'none');
    await store.append('large-stream', [event('Large', { text: 'y'.repeat(900_000) }), event()], 0);
    assert.equal(
      (await store.read('large-stream')).map(({ revision }) => revision),
      [0, 1, 2],
    );
    const reading = failureOf(store.read('large-stream'));
    await store.close();
    assert.instance(await reading, UnavailableError);
  }));

test("fails an append that can't be written alone", () =>
  inFolder(async ({ dir }) => {
    const file = eventLogFile(dir);
    const database = openEventLog(file, {});
    const commit = groupCommit(database, file);
    const request = (sequence: number, type: unknown): AppendRequest => [
      sequence,
      `stream-${sequence}`,
      'none',
      [type as string, `id-${sequence}`, 'at', '{}', '{}'],
    ];
    const outcomes = commit([request(1, 'A'), request(2, null), request(3, {}), request(4, 'B')]);
    assert.equal(
      outcomes.map(({ kind }) => kind),
      ['appended', 'failed', 'failed', 'appended'],
    );
    assert.equal(outcomes[3], { sequence: 4, kind: 'appended', revision: 0, position: 2 });
    assert.is(outcomes[1]!.kind === 'failed' && outcomes[1]!.outcomeUnknown, false);
    database.close();
  }));

test('fails a group whose lock is never released', () =>
  inFolder(async ({ dir }) => {
    const file = eventLogFile(dir);
    const [database, other] = [openEventLog(file, {}), openEventLog(file, {})];
    other.exec('BEGIN IMMEDIATE');
    const commit = groupCommit(database, file, { lockWaitMs: 10 });
    const request = (sequence: number): AppendRequest => [
      sequence,
      's',
      'any',
      ['A', `id-${sequence}`, 'at', '{}', '{}'],
    ];
    assert.equal(
      commit([request(1), request(2)]),
      [1, 2].map((sequence) => ({
        sequence,
        kind: 'failed',
        message: 'database is locked',
        code: 'SQLITE_BUSY',
        outcomeUnknown: false,
      })),
    );
    other.exec('ROLLBACK');
    assert.equal(
      commit([request(1), request(2)]).map(({ kind }) => kind),
      ['appended', 'appended'],
    );
    database.close();
    other.close();
  }));

test('leaves other writers their turn, though its disk is slow and its groups follow each other', () =>
  inFolder(async ({ dir }) => {
    const file = eventLogFile(dir);
    const busy = openEventLog(file, {});
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const waiter = new Worker(WAITER, {
      eval: true,
      workerData: {
        commit: import.meta.resolve('../../../../src/adapters/embedded/eventStore/commit.js'),
        log: import.meta.resolve('../../../../src/adapters/embedded/eventStore/log.js'),
        file,
        stop,
      },
    });
    const done = once(waiter, 'message') as Promise<[{ readonly kinds: readonly string[] }]>;
    const commit = groupCommit(slow(busy), file);
    await once(waiter, 'online');
    const request = (sequence: number): AppendRequest => [
      sequence,
      `busy-${sequence}`,
      'none',
      ['A', `busy-${sequence}`, 'at', '{}', '{}'],
    ];
    const until = performance.now() + DEADLINE_MS;
    let groups = 0;
    while (Atomics.load(stop, 0) === 0 && performance.now() < until) commit([request(++groups)]);
    const [{ kinds }] = await done;
    busy.close();
    assert.equal(
      kinds,
      Array.from({ length: 10 }, () => 'appended'),
    );
    assert.ok(groups < 100, `ten appends beside ${groups} groups`);
  }));

/** Ten groups, one after the other, on a thread of its own. */
const WAITER = `
  const { parentPort, workerData: { commit, log, file, stop } } = require('node:worker_threads');
  Promise.all([import(commit), import(log)]).then(([{ groupCommit }, { openEventLog }]) => {
    const database = openEventLog(file, { openElsewhere: true });
    const group = groupCommit(database, file);
    const kinds = Array.from({ length: 10 }, (_, at) => group([[at, 'waiter-' + at, 'none', ['A', 'waiter-' + at, 'at', '{}', '{}']]])[0].kind);
    Atomics.store(stop, 0, 1);
    database.close();
    parentPort.postMessage({ kinds });
  });
`;

/** The database on a disk that takes 40 ms to sync. */
function slow(database: Database): Database {
  return new Proxy(database, {
    get(target, key) {
      const value = Reflect.get(target, key) as unknown;
      if (key === 'inTransaction' || typeof value !== 'function') return value;
      const method = value.bind(target) as (...given: unknown[]) => unknown;
      if (key !== 'prepare') return method;
      return (source: string) => {
        const statement = method(source) as Statement;
        if (source !== 'COMMIT') return statement;
        return {
          run: () => {
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40);
            return statement.run();
          },
        };
      };
    },
  });
}

test('throws errors of the writing thread as what they are', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await store.append('first', [event()], 'none');
    const other = new Sqlite(eventLogFile(dir));
    other.exec('ALTER TABLE events RENAME TO elsewhere');
    const error = (await failureOf(store.append('stream', [event()], 'none'))) as Error;
    assert.instance(error, Sqlite.SqliteError);
    assert.match(error.message, /no such table/);
    assert.instance(await failureOf(store.read('stream')), Sqlite.SqliteError);
    other.exec('ALTER TABLE elsewhere RENAME TO events');
    other.close();
    const odd = { ...event(), type: [] as unknown as string };
    assert.instance(await failureOf(store.append('stream', [odd], 'none')), Error);
    await store.append('stream', [event()], 'none');
  }));

test('fails the appends of a thread that died, and starts another with the next append', () =>
  inFolder(async ({ dir }) => {
    const file = eventLogFile(dir);
    const database = openEventLog(file, {});
    const script = join(dir, 'writer.mjs');
    const writer = openEventWriter({
      data: threadData(file),
      onStored: () => undefined,
      onGrown: () => undefined,
      script: pathToFileURL(script),
    });
    const ends = async (): Promise<UnavailableError> => {
      const error = (await within(20_000, failureOf(writer.append('stream', [event()], 'none')))) as UnavailableError;
      assert.instance(error, UnavailableError);
      assert.is(error.outcomeUnknown, true);
      return error;
    };
    writeFileSync(script, `throw new Error('out of memory')`);
    assert.match((await ends()).message, /ended \(out of memory\)/);
    writeFileSync(script, `process.exit(1)`);
    assert.match((await ends()).message, /ended \(without an error\)/);
    writeFileSync(
      script,
      `import ${JSON.stringify(new URL('../../../../src/adapters/embedded/eventStore/eventStoreWorker.js', import.meta.url).href)}`,
    );
    assert.equal(await writer.append('stream', [event()], 'none'), { revision: 0, position: positionOf(1) });
    await writer.close();
    database.close();
  }));

test('sends the first of many appends early, and never parts what is stored together', () =>
  inFolder(async ({ dir }) => {
    const file = eventLogFile(dir);
    const database = openEventLog(file, {});
    const script = join(dir, 'writer.mjs');
    // Answers with the size of the message as the revision.
    writeFileSync(
      script,
      [
        `import { parentPort } from 'node:worker_threads';`,
        `let position = 0;`,
        `parentPort.on('message', (message) => {`,
        `  if (message === 'close') return parentPort.close();`,
        `  parentPort.postMessage(message.map(([sequence]) => ({ sequence, kind: 'appended', revision: message.length, position: ++position })));`,
        `});`,
      ].join('\n'),
    );
    const writer = openEventWriter({
      data: threadData(file),
      onStored: () => undefined,
      onGrown: () => undefined,
      script: pathToFileURL(script),
    });
    const together = async (count: number): Promise<number[]> => {
      const appended = await Promise.all(
        Array.from({ length: count }, async (_, n) => writer.append(`stream-${n}`, [event()], 'none')),
      );
      return [...new Set(appended.map(({ revision }) => revision))];
    };
    assert.equal(await together(15), [15]);
    assert.equal(await together(16), [16]);
    assert.equal(await together(60), [16, 44], 'one part ahead: what comes while the writer is at work goes as one');
    const sizes: number[] = [];
    const counting = openEventWriter({
      data: threadData(file),
      onStored: ({ revision }) => sizes.push(revision),
      onGrown: () => undefined,
      script: pathToFileURL(script),
    });
    await counting.appendInOrder(
      Array.from({ length: 40 }, (_, n) => ({ stream: `ordered-${n}`, events: [event()], expected: 'none' as const })),
    );
    assert.equal([...new Set(sizes)], [40]);
    await Promise.all([writer.close(), counting.close()]);
    database.close();
  }));

test('fails appends that wait when the thread dies, and does not send them to the next', () =>
  inFolder(async ({ dir }) => {
    const file = eventLogFile(dir);
    const database = openEventLog(file, {});
    const script = join(dir, 'writer.mjs');
    const worker = JSON.stringify(
      new URL('../../../../src/adapters/embedded/eventStore/eventStoreWorker.js', import.meta.url).href,
    );
    const died = JSON.stringify(join(dir, 'died'));
    writeFileSync(
      script,
      [
        `import { existsSync, writeFileSync } from 'node:fs';`,
        `import { parentPort } from 'node:worker_threads';`,
        `if (existsSync(${died})) await import(${worker});`,
        `else parentPort.once('message', () => { writeFileSync(${died}, ''); process.exit(1); });`,
      ].join('\n'),
    );
    const writer = openEventWriter({
      data: threadData(file),
      onStored: () => undefined,
      onGrown: () => undefined,
      script: pathToFileURL(script),
    });
    const open: Promise<unknown>[] = [];
    let dead = false;
    while (!dead) {
      const failed = failureOf(writer.append('open', [event()], 'any'));
      void failed.then(() => {
        dead = true;
      });
      open.push(failed);
      await nextTick();
    }
    const errors = (await Promise.all(open)) as UnavailableError[];
    assert.ok(errors.length > 1 && errors.every(({ outcomeUnknown }) => outcomeUnknown));
    assert.equal(await writer.append('next', [event()], 'none'), { revision: 0, position: positionOf(1) });
    await writer.close();
    database.close();
  }));

const NOTHING: Omit<EventReader, 'end' | 'scan'> = {
  readStream: () => false,
  startOfLast: () => 0,
  lastOf: () => 0,
  timedWithin: () => 0,
  unsequenced: () => ({ found: 0, first: [] }),
  inSnapshot: (work) => work(),
  scanTexts: () => (_after, through) => ({ events: [], through, size: 0 }),
};
const recorded = (position: number): RecordedEvent => ({
  ...event(),
  stream: 's',
  revision: position - 1,
  position: positionOf(position),
});

test('follows on when the engine is available again, while readAll fails', async () => {
  const failures = [new UnavailableError('locked'), undefined, new UnavailableError('locked again')];
  const scan = (after: number, through: number): Slice => ({
    events: Array.from({ length: through - after }, (_, n) => recorded(after + n + 1)),
    through,
    size: 1,
  });
  const reader: EventReader = {
    ...NOTHING,
    end() {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return 3;
    },
    scan: () => scan,
  };
  const tail = watchLogTail(() => 3);
  const seen = await readUntil(
    feed(undefined, {}, { batchSize: 1 }, { reader, logTail: tail, closed: () => false }),
    (all) => all.length === 3,
    3_000,
  );
  assert.equal(
    seen.map(({ revision }) => revision),
    [0, 1, 2],
  );
  failures.push(new UnavailableError('locked'));
  assert.instance(
    await failureOf(batchesOf(feed(undefined, {}, {}, { reader, closed: () => false }))),
    UnavailableError,
  );
  failures.push(new RangeError('a fault') as UnavailableError);
  assert.instance(
    await failureOf(batchesOf(feed(undefined, {}, {}, { reader, logTail: tail, closed: () => false }))),
    RangeError,
  );
});

test('lets others have their turn during a filtered read, with smaller slices where it is slow', async () => {
  const spans: number[] = [];
  const perPosition = 0.02;
  const reader: EventReader = {
    ...NOTHING,
    end: () => 10_000,
    scan: () => (after, through) => {
      spans.push(through - after);
      const until = performance.now() + (through - after) * perPosition;
      while (performance.now() < until);
      return { events: [], through, size: 0 };
    },
  };
  let turns = 0;
  let reading = true;
  const others = (async () => {
    while (reading) {
      await nextTick();
      turns += 1;
    }
  })();
  const batches = await batchesOf(feed(undefined, { types: ['None'] }, {}, { reader, closed: () => false }));
  reading = false;
  await others;
  assert.equal(batches, [{ events: [], position: positionOf(10_000), caughtUp: true }]);
  assert.ok(Math.max(...spans.slice(4)) <= 512, `spans: ${spans.join(' ')}`);
  assert.ok(turns >= 10, `${turns} turns`);
});

test('gives up a batch when the feed is stopped in its midst', async () => {
  const ending = new AbortController();
  const reader: EventReader = {
    ...NOTHING,
    end: () => 1_000_000,
    scan: () => (_after, through) => {
      const until = performance.now() + 6;
      while (performance.now() < until);
      ending.abort();
      return { events: [recorded(through)], through, size: 0 };
    },
  };
  assert.equal(await batchesOf(feed(undefined, {}, { signal: ending.signal }, { reader, closed: () => false })), []);
});

test('wakes waiters by growth past their position, their signal, a failing engine, and the end', async () => {
  let end: number | Error = 5;
  const tail = watchLogTail(() => {
    if (end instanceof Error) throw end;
    return end;
  });
  await within(20_000, tail.past(4, undefined));
  await within(20_000, tail.past(100, AbortSignal.abort()));
  const signal = new AbortController();
  const woken: string[] = [];
  const wait = (name: string, position: number, by?: AbortSignal): Promise<void> =>
    tail.past(position, by).then(() => void woken.push(name));
  const waits = [wait('at 5', 5), wait('at 7', 7), wait('aborted', 100, signal.signal), wait('engine', 100)];
  await sleep(50);
  assert.equal(woken, []);
  tail.grew(6);
  await nextTick();
  assert.equal(woken, ['at 5']);
  end = 8;
  await within(20_000, waits[1]!);
  assert.equal(woken, ['at 5', 'at 7']);
  const looked = wait('at 9', 9);
  end = 10;
  tail.poll();
  await nextTick();
  assert.equal(woken.splice(2), ['at 9'], 'at once, not at the next poll');
  await looked;
  end = 8;
  signal.abort();
  await nextTick();
  assert.equal(woken.slice(2), ['aborted']);
  end = new UnavailableError('gone');
  await within(20_000, Promise.all(waits));
  assert.equal(woken.slice(3), ['engine']);
  end = 8;
  const last = wait('closed', 100);
  tail.close();
  await within(20_000, last);
  await within(20_000, tail.past(100, undefined));
});

/** The tail of a log whose end is `log.end`, and the number of polls so far. */
function countedTail(options: LogTailOptions): {
  readonly tail: LogTail;
  readonly log: { end: number; polls: number };
} {
  const log = { end: 1, polls: 0 };
  const tail = watchLogTail(
    () => {
      log.polls += 1;
      return log.end;
    },
    { watchedPollMs: 100_000_000, ...options },
  );
  return { tail, log };
}

if (process.platform === 'linux') {
  test('hardly polls a quiet log, and polls often again once its WAL is written', () =>
    inFolder(async ({ dir }) => {
      const wal = join(dir, 'watched-wal');
      writeFileSync(wal, '');
      const { tail, log } = countedTail({ wal, quietMs: 50 });
      const quiet = async (): Promise<void> => {
        for (let before = -1; log.polls > before; await sleep(300)) before = log.polls;
      };
      for (const written of [1, 2]) {
        const grown = tail.past(written, undefined);
        await quiet();
        appendFileSync(wal, 'x');
        // A commit is visible some time after its write.
        await sleep(30);
        log.end = written + 1;
        await within(20_000, grown);
      }
      const closed = tail.past(log.end, undefined);
      await quiet();
      tail.close();
      await within(20_000, closed);
    }));
}

test('polls on where the WAL can not be watched', () =>
  inFolder(async ({ dir }) => {
    const { tail, log } = countedTail({ wal: join(dir, 'none'), quietMs: 10 });
    const grown = tail.past(1, undefined);
    await until(() => log.polls > 10);
    log.end = 2;
    await within(20_000, grown);
    tail.close();
  }));

test('reads streams of more events than one slice whole', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    await store.append('long', events(1_200), 'none');
    assert.equal(
      (await store.read('long')).map(({ data }) => (data as { n: number }).n),
      Array.from({ length: 1_200 }, (_, n) => n),
    );
    assert.equal(
      (await store.read('long', { from: 100, limit: 1_000 })).map(({ revision }) => revision),
      Array.from({ length: 1_000 }, (_, n) => 100 + n),
    );
    assert.is((await store.read('long', { limit: 500 })).length, 500);
  }));

test('reads streams of large events whole, few or many, also from within and up to a limit', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    const text = 'x'.repeat(400_000);
    for (const count of [5, 8, 21]) {
      const stream = `large-${count}`;
      await Promise.all(Array.from({ length: count }, () => store.append(stream, [event('Large', { text })], 'any')));
      const read = async (options?: { from?: number; limit?: number }): Promise<number[]> =>
        (await store.read(stream, options)).map(({ revision }) => revision);
      const all = Array.from({ length: count }, (_, n) => n);
      assert.equal(await read(), all);
      assert.equal(
        [await read({ from: 2 }), await read({ limit: count - 1 }), await read({ from: 1, limit: 4 })],
        [all.slice(2), all.slice(0, -1), all.slice(1, 5)],
      );
    }
  }));

test('matches a prefix that ends with the last characters of Unicode', () =>
  inFolder(async ({ open }) => {
    const store = await open();
    const names = ['\u{10FFFF}', '\u{10FFFF}x', 'a\u{10FFFF}b', 'b', '\uD7FFa', '\uE000'];
    for (const name of names) await store.append(name, [event()], 'none');
    const found = async (prefix: string): Promise<string[]> =>
      (await batchesOf(store.readAll(undefined, { streams: [prefix] }))).flatMap((batch) =>
        batch.events.map(({ stream }) => stream),
      );
    for (const prefix of ['\u{10FFFF}', 'a\u{10FFFF}', '\uD7FF', 'b', '']) {
      assert.equal(
        await found(prefix),
        names.filter((name) => name.startsWith(prefix)),
      );
    }
  }));

test.run();
