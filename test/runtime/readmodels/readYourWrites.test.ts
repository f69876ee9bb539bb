import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { LocalLog, Position } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type DocumentStreams, readYourWrites } from '../../../src/runtime/readmodels/readYourWrites.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';

const test = suite('read-your-writes');

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
    end: '1',
    stands: '1',
    edition: '1/0',
    reads: 0,
    looks: 0,
    slow: false,
    missing: false,
    folds: [] as string[],
    down: false,
    fails: undefined as Error | undefined,
  };
  const one = (): Shown | undefined => (state.missing ? undefined : { shown: state.stands });
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
      if (state.down) throw new UnavailableError('down');
      if (!state.slow && position > state.stands) state.stands = position;
      return position <= state.stands;
    },
  };
  const log: LocalLog = {
    end() {
      if (state.fails !== undefined) throw state.fails;
      return state.end;
    },
    lastOf(stream) {
      state.looks += 1;
      return streams.get(stream);
    },
  };
  const read = readYourWrites(model, { local: log, end: async () => log.end() }, streamsOf(state.folds));
  const append = (id: string): void => {
    state.end = String(Number(state.end) + 1);
    streams.set(`gift-${id}`, state.end);
  };
  return { state, model, log, waits, read, append };
}

/** Everything so far is known to be shown. */
async function caughtUp({ read, waits, state }: ReturnType<typeof behind>): Promise<void> {
  await read.get('any');
  await Promise.resolve();
  Object.assign(state, { reads: 0, looks: 0 });
  waits.length = 0;
}

/** So long that the model may be asked again how far it has come. */
const pause = async (): Promise<void> => sleep(12);

test('a read waits for a document of which the log holds more', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('a');
  assert.equal(await them.read.get('a'), { shown: '2' });
  assert.ok(them.waits.some(([position, timeoutMs]) => position === '2' && timeoutMs === 100));
  assert.is(them.state.reads, 2);
});

test('after a wait in vain reads are folded at once, until the model has come to what was waited for', async () => {
  const them = behind();
  await caughtUp(them);
  Object.assign(them.state, { slow: true });
  them.append('a');
  them.append('b');
  const waited = (): readonly Position[] => {
    const all = them.waits.filter(([, timeoutMs]) => timeoutMs === 100).map(([position]) => position);
    them.waits.length = 0;
    return all;
  };
  assert.equal(await them.read.get('a'), { shown: 'folded' });
  assert.equal(waited(), ['2']);
  assert.equal([await them.read.get('a'), await them.read.get('b')], [{ shown: 'folded' }, { shown: 'folded' }]);
  assert.is(await them.read.reached('3', 100), false);
  assert.equal(waited(), []);
  them.state.stands = '2';
  assert.equal([await them.read.get('a'), await them.read.get('b')], [{ shown: '2' }, { shown: 'folded' }]);
  assert.equal(waited(), ['2', '3']);
});

test('a read of many documents waits for the furthest', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  for (const id of ['a', 'b', 'c']) them.append(id);
  await them.read.getMany(['b', 'a']);
  assert.ok(
    them.waits.some(([position]) => position === '3'),
    'b’s',
  );
  assert.is(them.state.reads, 1);
});

test('a document of which the log holds no more is answered at once', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  them.append('other');
  assert.equal(await them.read.get('a'), { shown: '1' });
  assert.is(them.state.reads, 1);
});

test('no stream is looked at where the log has not grown', async () => {
  const them = behind();
  await caughtUp(them);
  for (let n = 0; n < 3; n++) await them.read.get('a');
  assert.equal([them.state.reads, them.state.looks, them.waits.length], [3, 0, 0]);
});

test('reads note in the background when the model has come to the log’s end', async () => {
  const them = behind();
  await caughtUp(them);
  await pause();
  them.append('other');
  await them.read.get('a');
  await Promise.resolve();
  const { looks } = them.state;
  await them.read.get('a');
  assert.is(them.state.looks, looks);
});

test('a document that is still behind after the wait is folded from its streams', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  them.append('a');
  assert.equal(await them.read.get('a'), { shown: 'folded' });
  assert.equal(await them.read.getMany(['b', 'a']), [{ shown: 'folded' }, { shown: 'folded' }]);
  assert.equal(them.state.folds, ['a 1', 'b 1', 'a 1']);
});

test('folds many documents once they are not there after the wait', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  them.append('a');
  const found = await them.read.getMany(Array.from({ length: 101 }, (_, n) => String(n)));
  assert.equal([found.length, found[100], them.state.folds.length], [101, { shown: 'folded' }, 101]);
});

test('looks for a missing document in the log only where the model is behind', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.missing = true;
  assert.is(await them.read.get('a'), undefined);
  them.state.slow = true;
  them.append('other');
  assert.equal(await them.read.get('a'), { shown: 'folded' });
  assert.is(await them.read.get('unknown'), undefined);
  assert.equal(them.state.folds, ['a missing', 'unknown missing', 'unknown searched']);
});

test('a document that can’t be folded is unavailable', async () => {
  const them = behind();
  await caughtUp(them);
  them.state.slow = true;
  them.append('a');
  const read = readYourWrites(
    them.model,
    { local: them.log, end: async () => them.log.end() },
    {
      of: (id) => `gift-${id}`,
      fold: async () => Promise.reject(new Error('no such event')),
    },
  );
  assert.instance(await failureOf(read.get('a')), UnavailableError);
});

test('a final document is neither looked at in the log nor waited for', async () => {
  const them = behind();
  const { folds } = them.state;
  const read = readYourWrites(
    them.model,
    { local: them.log, end: async () => them.log.end() },
    {
      ...streamsOf(folds),
      isFinal: ({ shown }) => shown === '1',
    },
  );
  them.state.slow = true;
  them.append('a');
  assert.equal([await read.get('a'), await read.getMany(['a'])], [{ shown: '1' }, [{ shown: '1' }]]);
  assert.equal([them.state.looks, them.waits.length], [0, 0]);
});

test('many documents are waited for together, up to the log’s end, and read once', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('other');
  const found = await them.read.getMany(Array.from({ length: 101 }, (_, n) => String(n)));
  assert.equal(found[100], { shown: '2' });
  assert.equal([them.state.reads, them.state.looks, them.waits], [1, 0, [['2', 100]]]);
});

test('another build in use is not taken to show what the one before did', async () => {
  const them = behind();
  them.append('a');
  await caughtUp(them);
  them.state.edition = '2/0';
  them.state.stands = '0';
  assert.equal(await them.read.get('a'), { shown: '2' });
});

test('a build that comes into use during a read is not taken for the one before', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('a');
  await them.read.get('a');
  await pause();
  const before = them.waits.length;
  const reading = them.read.get('a');
  them.state.edition = '2/0';
  them.state.stands = '0';
  assert.equal(await reading, { shown: '2' });
  assert.ok(them.waits.length > before);
});

test('a log on this machine that can’t be read fails the read', async () => {
  const them = behind();
  them.state.fails = new UnavailableError('no log');
  assert.instance(await failureOf(them.read.get('a')), UnavailableError);
  assert.instance(await failureOf(them.read.getMany(Array.from({ length: 200 }, String))), UnavailableError);
});

test('how far the model has come is asked again after a failure, and not at every read', async () => {
  const them = behind();
  await caughtUp(them);
  await pause();
  them.append('other');
  them.state.down = true;
  await them.read.get('a');
  await them.read.get('b');
  assert.is(them.waits.length, 1);
  them.state.down = false;
  await pause();
  await them.read.get('a');
  assert.is(them.waits.length, 2);
  await Promise.resolve();
  them.state.looks = 0;
  await them.read.get('a');
  assert.is(them.state.looks, 0, 'it is there');
});

test('a read fails where the read store is gone', async () => {
  const them = behind();
  await caughtUp(them);
  them.append('a');
  them.state.down = true;
  assert.instance(await failureOf(them.read.get('a')), UnavailableError);
});

test('an empty log changes nothing; without a log that tells of streams the model is returned as it is', async () => {
  const { read } = behind();
  const empty: LocalLog = { end: () => undefined, lastOf: () => undefined };
  assert.equal(
    await readYourWrites(read, { local: empty, end: async () => undefined }, streamsOf([])).get('a'),
    await read.get('a'),
  );
  assert.is(readYourWrites(read, { end: async () => undefined }, streamsOf([])), read);
});

test.run();
