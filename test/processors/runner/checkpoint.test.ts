import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DomainEvent } from '../../../src/domain/decider.js';
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';
import {
  type ProcessCheckpoint,
  processCheckpoints,
  PROCESS_CHECKPOINT,
  storedProcessPosition,
} from '../../../src/processors/runner/checkpoint.js';
import { FEED_TYPES } from '../../../src/processors/managers.js';
import { shownPosition } from '../../../src/ports/storedPosition.js';
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
    assert.is((JSON.parse(lines[0]!) as { checkpoint: string }).checkpoint, shownPosition(position));
    await checkpoints.save(at(4));
    assert.is(await after('A').last(going), at(4), 'the next one takes its place');
  }
});

/** Reads batches of an engine: their positions, and the position of an event where there is one. */
async function looking(
  batches: readonly (readonly [position: number, event?: number])[],
): Promise<{ readonly found: unknown; readonly read: number; readonly lines: readonly string[] }> {
  const { records, events, ...options } = await left(['A', 'A', 'A', 'A'], ['A']);
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  let read = 0;
  events.readAll = async function* (after, filter, given) {
    assert.equal([after, filter, given], [undefined, { types: ['New'] }, { batchSize: 1, signal: going }]);
    for (const [position, event] of batches) {
      read++;
      const one = event === undefined ? [] : [{ ...events.log[0]!, type: 'New', position: at(event) }];
      yield { events: one, position: at(position), caughtUp: false };
    }
  };
  const found = await processCheckpoints({ ...options, records, events, logger, types: ['A', 'New'] }).last(going);
  return { found, read, lines };
}

test('looks for events of new types no further than where it is, and says so', async () => {
  const { found, read, lines } = await looking([[2], [3], [4, 4]]);
  assert.equal([found, read], [at(3), 2]);
  assert.equal(
    lines.map((line) => JSON.parse(line) as { msg: string; types: string[] }).map(({ msg, types }) => [msg, types]),
    [['process managers: looking for events of types that are new to them', ['New']]],
  );
  assert.is((await looking([[2], [3, 3]])).found, undefined, 'one is exactly there');
  assert.is((await looking([[4, 4]])).found, at(3));
  assert.is((await looking([])).found, at(3), 'an engine finds nothing');
});

test('is shown as it is stored for this log', async () => {
  const { records } = await left([], undefined);
  const shown = async (): Promise<unknown> => storedProcessPosition(records, 'memory');
  assert.is(await shown(), undefined);
  await records.put(PROCESS_CHECKPOINT, { logId: 'memory', position: at(7) });
  assert.is(await shown(), at(7));
  await records.put(PROCESS_CHECKPOINT, { logId: 'another', position: at(7) });
  assert.is(await shown(), undefined);
});

test('that can not be kept stops nothing, and is logged', async () => {
  const { records, ...options } = await left([], undefined);
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const failing = { ...records, put: async () => Promise.reject(new Error('no')) };
  await processCheckpoints({ ...options, logger, records: failing, types: FEED_TYPES }).save(at(1));
  assert.match(lines.join(), /"message":"no".*checkpoint not saved/);
});

test.run();
