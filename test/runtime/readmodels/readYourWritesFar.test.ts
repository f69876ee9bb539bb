import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Position } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type DocumentStreams, readYourWrites } from '../../../src/runtime/readmodels/readYourWrites.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { inVirtualTime } from '../../simulation/world/virtualTime.js';
import { eventually } from '../../support/assertions/until.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';

const test = suite('read-your-writes, the log elsewhere');
const timed = inVirtualTime(test);

interface Shown {
  readonly shown: Position;
}

/** Documents of streams say that they were folded, and from which that the model showed. */
const streamsOf = (folds: string[]): DocumentStreams<Shown> => ({
  of: (id) => `gift-${id}`,
  async fold(id, document) {
    folds.push(`${id} ${document?.shown ?? 'missing'}`);
    return id === 'unknown' ? undefined : { shown: 'folded' };
  },
  search: async (id) => {
    folds.push(`${id} searched`);
    return undefined;
  },
});

/** A read model that is behind its log. Positions are one digit, documents say up to where they are shown. */
function behind() {
  const streams = new Map<string, Position>();
  const waits: [position: Position, timeoutMs: number][] = [];
  const state = {
    end: '1' as Position | undefined,
    stands: '1',
    edition: '1/0',
    reads: 0,
    looks: 0,
    ends: 0,
    slow: false,
    missing: false,
    folds: [] as string[],
    failsToLook: false,
    held: undefined as Promise<void> | undefined,
    fails: undefined as Error | undefined,
    onRead: (): void => undefined,
  };
  const one = (): Shown | undefined => {
    if (state.missing) return undefined;
    const shown = { shown: state.stands };
    state.onRead();
    return shown;
  };
  const model: ReadModel<Shown> = {
    async get() {
      state.reads += 1;
      return one();
    },
    async getMany(ids) {
      state.reads += 1;
      return ids.map(one);
    },
    find: async () => [],
    outOfService: async () => [],
    edition: () => state.edition,
    folded: async () => undefined,
    async reached(position, timeoutMs) {
      waits.push([position, timeoutMs]);
      if (!state.slow && position > state.stands) state.stands = position;
      return position <= state.stands;
    },
  };
  const log = {
    async end() {
      state.ends += 1;
      await state.held;
      if (state.fails !== undefined) throw state.fails;
      return state.end;
    },
    async lastOf(stream: string) {
      state.looks += 1;
      if (state.failsToLook) throw new UnavailableError('no streams');
      return streams.get(stream);
    },
  };
  const read = readYourWrites(model, log, streamsOf(state.folds));
  const append = (id: string): void => {
    state.end = String(Number(state.end) + 1);
    streams.set(`gift-${id}`, state.end);
  };
  return { state, waits, read, append };
}

function held(): { promise: Promise<void>; answer: () => void } {
  let answer!: () => void;
  const promise = new Promise<void>((resolve) => (answer = resolve));
  return { promise, answer };
}

/** Everything so far is known to be shown, and how far the model has come may be asked again. */
async function caughtUp({ read, waits, state }: ReturnType<typeof behind>): Promise<void> {
  await read.get('any');
  await sleep(12);
  Object.assign(state, { reads: 0, looks: 0, ends: 0 });
  waits.length = 0;
}

test('a read waits for a document of which the log holds more', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  them.append('a');
  const reading = them.read.get('a');
  await sleep(20);
  them.state.slow = false;
  assert.equal(await reading, { shown: 'folded' }, 'after the time that it is waited for it is folded');
  assert.ok(them.waits.some(([position, timeoutMs]) => position === '2' && timeoutMs === 100));
  assert.equal(await them.read.get('a'), { shown: '2' });
});

test("shows an event appended after the document's read, before the end is known", async () => {
  const them = behind();
  await caughtUp(them);
  them.state.onRead = () => {
    them.state.onRead = () => undefined;
    them.append('a');
  };
  assert.equal(await them.read.get('a'), { shown: '2' });
  assert.is(them.state.reads, 2);
});

test('a document of which the log holds no more is answered at once', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  them.append('other');
  assert.equal(await them.read.get('a'), { shown: '1' });
  assert.equal([them.state.reads, them.state.looks], [1, 1]);
});

test('simultaneous reads ask once for the log end, and look at no stream where it has not grown', async () => {
  const them = behind();
  await caughtUp(them);
  await Promise.all(Array.from({ length: 20 }, (_, n) => them.read.get(String(n))));
  assert.equal([them.state.reads, them.state.looks, them.state.ends, them.waits.length], [20, 0, 1, 0]);
});

test('a read of few documents waits for the furthest, of many for the log’s end', async () => {
  const few = behind();
  await caughtUp(few);
  few.state.slow = true;
  for (const id of ['a', 'b', 'c']) few.append(id);
  await few.read.getMany(['b', 'a']);
  assert.ok(
    few.waits.some(([position]) => position === '3'),
    'b’s',
  );
  const many = behind();
  await caughtUp(many);
  many.append('other');
  const found = await many.read.getMany(Array.from({ length: 9 }, (_, n) => String(n)));
  assert.equal(found[8], { shown: '2' });
  assert.is(many.state.looks, 0);
});

test('a build that comes into use during a read is not taken for the one before', async () => {
  const them = behind();
  them.append('a');
  await caughtUp(them);
  const reading = them.read.get('a');
  them.state.edition = '2/0';
  them.state.stands = '0';
  assert.equal(await reading, { shown: '2' });
});

test('reads go on with what is shown while the log fails, and heed it once it answers again', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('a');
  them.state.fails = new UnavailableError('no log');
  assert.equal(await them.read.get('a'), { shown: '1' });
  assert.equal(await them.read.getMany(['a', 'b']), [{ shown: '1' }, { shown: '1' }]);
  them.state.fails = undefined;
  await them.read.get('b');
  await eventually(async () => (await them.read.get('a'))?.shown === '2');
});

test('nothing is said to be missing while the log fails', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.missing = true;
  assert.is(await them.read.get('a'), undefined);
  them.state.fails = new UnavailableError('no log');
  assert.instance(await failureOf(them.read.get('a')), UnavailableError);
  assert.instance(await failureOf(them.read.getMany(['a', 'b'])), UnavailableError);
});

test('a read since a position fails while the log does, unless the model has reached it', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('a');
  Object.assign(them.state, { slow: true, fails: new UnavailableError('no log') });
  assert.instance(await failureOf(them.read.get('a', '2')), UnavailableError);
  assert.instance(await failureOf(them.read.getMany(['a', 'b'], '2')), UnavailableError);
  assert.equal(await them.read.get('a', '1'), { shown: '1' });
  them.state.stands = '2';
  assert.equal(await them.read.get('a', '2'), { shown: '2' });
  assert.equal(await them.read.getMany(['a'], '2'), [{ shown: '2' }]);
});

timed('a silent log is waited for a second, and then for 20 ms until it answers', async () => {
  const them = behind();
  await caughtUp(them);
  const { promise, answer } = held();
  them.state.held = promise;
  const began = performance.now();
  assert.equal(await them.read.get('a'), { shown: '1' });
  const took = performance.now() - began;
  assert.ok(took > 900, `${took} ms`);
  const again = performance.now();
  assert.equal(await them.read.get('a'), { shown: '1' });
  assert.ok(performance.now() - again < took / 2, 'it is waited for as long as before');
  them.append('a');
  them.state.held = undefined;
  answer();
  await sleep(5);
  assert.equal(await them.read.get('a'), { shown: '2' }, 'the first read after the silence is not late');
});

test('a read waits for all that the log holds where streams can’t be looked at', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('a');
  them.state.failsToLook = true;
  assert.equal(await them.read.get('b'), { shown: '2' });
});

test('an unexpected failure fails the read; an empty log changes nothing', async () => {
  const them = behind();
  them.state.fails = new TypeError('a fault');
  assert.instance(await failureOf(them.read.get('a')), TypeError);
  const empty = behind();
  empty.state.end = undefined;
  assert.equal(await empty.read.get('a'), { shown: '1' });
});

test.run();
