import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DomainEvent } from '../../../src/domain/decider.js';
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';
import {
  type ProcessCheckpoint,
  processCheckpoints,
  PROCESS_CHECKPOINT,
} from '../../../src/processors/runner/checkpoint.js';
import { FEED_TYPES } from '../../../src/processors/managers.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { silent } from '../../support/fixtures/projecting.js';

const test = suite("the process managers' checkpoint");
// A log that does not reach a position is looked at for some seconds.
test.before(() => void enterWorld({ ...REAL_WORLD, after: (_ms, run) => REAL_WORLD.after(0, run) }));
test.after(() => void enterWorld(REAL_WORLD));
const going = new AbortController().signal;
const at = (position: number): string => String(position).padStart(16, '0');
const of = (type: string): DomainEvent => ({ type, data: {} });

/** A log of these events, and a checkpoint that a release with these types has left at its third. */
async function left(log: readonly string[], types: readonly string[] | undefined) {
  const events = memoryEvents();
  const records = memoryRecords(Date.now);
  for (const [index, type] of log.entries()) events.given(`stream-${index}`, of(type));
  const options = { events, records, logger: silent };
  if (types !== undefined) await processCheckpoints({ ...options, types }).save(at(3));
  const kept = async (): Promise<ProcessCheckpoint | undefined> =>
    (await records.get<ProcessCheckpoint>(PROCESS_CHECKPOINT))?.value;
  return { ...options, kept, after: (...now: string[]) => processCheckpoints({ ...options, types: now }) };
}

test('is where it was kept, for the log and the types that it was kept for', async () => {
  const { after, kept, ...options } = await left(['A', 'A', 'A', 'A'], ['A', 'B']);
  assert.is(await after('A', 'B').last(going), at(3));
  assert.is(await after('B', 'A').last(going), at(3), 'in whatever order they are named');
  assert.equal(await kept(), { logId: 'memory', types: 'A B', position: at(3) });
  const other = { ...options.events, logId: 'another' };
  assert.is(await processCheckpoints({ ...options, events: other, types: ['A', 'B'] }).last(going), undefined);
  assert.is(await (await left(['A'], undefined)).after('A').last(going), undefined);
});

test('holds after a release that follows more types, where none stands before it', async () => {
  const { after, kept, events } = await left(['A', 'A', 'A', 'New', 'A'], ['A']);
  assert.is(await after('A', 'New').last(going), at(3));
  assert.equal(await kept(), { logId: 'memory', types: 'A New', position: at(3) });
  events.readAll = () => {
    throw new Error('read again');
  };
  assert.is(await after('A', 'New').last(going), at(3));
});

test('is void where events of new types stand before it', async () => {
  for (const log of [
    ['New', 'A', 'A'],
    ['A', 'A', 'New', 'A'],
  ]) {
    const { after, kept } = await left(log, ['A']);
    assert.is(await after('A', 'New').last(going), undefined, log.join());
    assert.is((await kept())?.types, 'A');
  }
});

test('is void where it does not name the types it was made for', async () => {
  const { after, records } = await left(['A', 'A', 'A'], undefined);
  await records.put(PROCESS_CHECKPOINT, { logId: 'memory', position: at(3) });
  assert.is(await after('A').last(going), undefined);
});

test('is void for a release that knows less than the one which kept it', async () => {
  const { after } = await left(['A', 'A', 'A'], ['A', 'B']);
  assert.is(await after('A').last(going), undefined);
  assert.is(await after('A', 'C').last(going), undefined);
});

test('is not taken for looked at when the look was cut short', async () => {
  const { after, kept } = await left(['A', 'A', 'A', 'A'], ['A']);
  assert.is(await after('A', 'New').last(AbortSignal.abort()), undefined);
  assert.is((await kept())?.types, 'A');
});

test('counts as absent, with a line in the log, where no event of the log can stand there', async () => {
  for (const position of ['18446744073709551615', '9'.repeat(16), at(5), '-1', '', 'x', 17, null, {}, undefined]) {
    const { after, records } = await left(['A', 'A', 'A', 'A'], ['A']);
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    await records.put(PROCESS_CHECKPOINT, {
      logId: 'memory',
      types: 'A',
      ...(position === undefined ? {} : { position }),
    });
    const checkpoints = processCheckpoints({
      ...(await left(['A', 'A', 'A', 'A'], undefined)),
      records,
      logger,
      types: ['A'],
    });
    assert.is(await checkpoints.last(going), undefined, JSON.stringify(position));
    assert.is(lines.length, 1, JSON.stringify(position));
    assert.match(lines[0]!, /the stored position .*: it counts as absent/);
    await checkpoints.save(at(4));
    assert.is(await after('A').last(going), at(4), 'the next one takes its place');
  }
});

test('that can not be kept stops nothing', async () => {
  const { records, ...options } = await left([], undefined);
  const failing = { ...records, put: async () => Promise.reject(new Error('no')) };
  await processCheckpoints({ ...options, records: failing, types: FEED_TYPES }).save(at(1));
});

test.run();
