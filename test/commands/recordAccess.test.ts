import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessRecorder } from '../../src/commands/recordAccess.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite('commands/recordAccess');
const NOW = '2026-05-04T23:59:59.999Z';
const ASKER = { by: { user: 'aud', client: 'app', roles: ['auditor'] }, requestId: 'r1' };
const REQUEST = { what: 'gift history', asked: { gift: 'g1' }, personal: true, reason: 'a complaint' };

test('records what was shown in the stream of its day, with who, why and how much', async () => {
  const events = memoryEvents();
  await accessRecorder(events, () => NOW).shown(ASKER, REQUEST, 7);
  const event = events.log[0] as RecordedEvent;
  assert.is(event.stream, 'access-2026-05-04');
  assert.is(event.type, 'RecordsShown');
  assert.equal(event.data, { ...REQUEST, count: 7 });
  assert.equal(
    [event.metadata.by, event.metadata.requestId, event.metadata.correlationId, event.at],
    [ASKER.by, 'r1', 'r1', NOW],
  );
});

test('records an operation before it starts, and its end once', async () => {
  const events = memoryEvents();
  const begun = await accessRecorder(events, () => NOW).start({ by: { user: 'cli:x@y' } }, REQUEST);
  const first = events.log[0] as RecordedEvent;
  assert.is(first.type, 'OperationStarted');
  const { operation_id } = first.data as { operation_id: string };
  assert.equal(first.data, { ...REQUEST, operation_id });
  assert.is(first.metadata.correlationId, operation_id);
  await begun.end(12, '0000000000000005', false);
  await begun.end(13, null, true);
  assert.is(events.log.length, 2);
  assert.equal(events.log[1]?.data, { operation_id, count: 12, position: '0000000000000005', complete: false });
  assert.is(events.log[1]?.metadata.correlationId, operation_id);
  await accessRecorder(events, () => NOW).start(ASKER, REQUEST);
  assert.is(events.log[2]?.metadata.correlationId, 'r1', 'the request that started it');
});

test('repeats an unknown outcome with the same id, and throws where it cannot record', async () => {
  const events = memoryEvents();
  const ids: string[] = [];
  let failures = 2;
  events.beforeAppend = (_stream, [event]) => {
    ids.push(event?.id ?? '');
    if (failures-- > 0) throw new UnavailableError('silent', { outcomeUnknown: true });
  };
  const recorder = accessRecorder(events, () => NOW);
  await recorder.shown(ASKER, REQUEST, 1);
  assert.is(new Set(ids).size, 1);
  assert.is(ids.length, 3);
  events.beforeAppend = () => {
    throw new UnavailableError('down');
  };
  await recorder.shown(ASKER, REQUEST, 1).then(
    () => assert.unreachable(),
    (error: unknown) => assert.instance(error, UnavailableError),
  );
});

test.run();
