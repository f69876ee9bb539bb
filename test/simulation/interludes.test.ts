import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eventLog } from './engines/eventLog.js';
import { readStoreDisk } from './engines/readStore.js';
import { subjectRows } from './engines/subjectRows.js';
import { recorder } from './model/history.js';

const test = suite('simulation/interludes');

const GIFTS = { name: 'gifts', version: 1, indexes: [] };
const NEWER = { ...GIFTS, version: 2 };

test('puts a read store back to what it held: documents, builds, checkpoints and records', () => {
  const { documents, records } = readStoreDisk();
  const write = (spec: typeof GIFTS, id: string, position: string): void =>
    documents.write(spec, [{ id, position, body: JSON.stringify({ at: position }) }]);
  documents.boundTo('a log');
  write(GIFTS, 'g1', '1');
  documents.advance({ projection: 'gifts@1', position: '1' });
  documents.activate('gifts', 1, {});
  records.put('lease', 'first', {}, 0);
  const putBack = [documents.copied(), records.copied()];

  write(GIFTS, 'g1', '2');
  write(GIFTS, 'g2', '2');
  write(NEWER, 'g1', '2');
  documents.advance({ projection: 'gifts@1', position: '2' });
  documents.activate('gifts', 2, {});
  records.put('lease', 'second', {}, 0);
  records.put('answer', 'stored', {}, 0);
  for (const one of putBack) one();

  assert.deepEqual(documents.getMany(GIFTS, ['g1', 'g2']), [{ id: 'g1', position: '1', body: { at: '1' } }, undefined]);
  assert.deepEqual(documents.versions('gifts'), [1]);
  assert.deepEqual([documents.active('gifts'), documents.checkpoint('gifts@1')], [1, '1']);
  assert.equal(documents.boundTo('another log'), 'a log');
  assert.equal(records.get('lease', 0)?.value, 'first');
  assert.equal(records.get('answer', 0), undefined);
});

test('copies a log: events, streams and positions, to which the one adds nothing of the other', () => {
  const event = (id: string) => ({ id, type: 'Made', at: '2026-01-05T08:00:00.000Z', data: '{}', metadata: '{}' });
  const log = eventLog('a log');
  log.append('one', [event('1')], 'none');
  const copy = log.copied();
  log.append('one', [event('2')], 0);
  copy.append('one', [event('3')], 0);
  assert.deepEqual([log.logId, copy.logId], ['a log', 'a log']);
  assert.deepEqual(
    [log, copy].map(({ stored }) => stored.map(({ id, position }) => [id, Number(position)])),
    [
      [
        ['1', 1],
        ['2', 2],
      ],
      [
        ['1', 1],
        ['3', 2],
      ],
    ],
  );
});

test('puts a key store back to what it held: rows, their lookups, what was removed, and erasures', () => {
  const keys = subjectRows();
  const row = (id: string) => ({ id: id.repeat(22), lookup: id.toUpperCase().repeat(22), secret: 'wrapped' });
  const [first, second] = [row('a'), row('b')];
  keys.add([first]);
  keys.putErasure({ id: 'e'.repeat(22), text: '{}' });
  const putBack = keys.copied();
  keys.remove([first.id]);
  keys.add([second]);
  keys.putErasure({ id: 'f'.repeat(22), text: '{}' });
  putBack();
  assert.deepEqual([...keys.byLookup([first.lookup, second.lookup]).values()], [first]);
  assert.deepEqual(keys.removed([first.id]), new Set());
  assert.deepEqual(
    keys.erasures(undefined, 9).map(({ id }) => id),
    ['e'.repeat(22)],
  );
});

test('forgets what clients saw of a service that was put back, but not what may still have an effect', () => {
  let now = 0;
  const { send, history, forgetSince } = recorder(() => now);
  const at = (ms: number): number => (now = ms);
  const redeem = (gift: string) => send('till', { kind: 'redeem', gift, location: 'bean-soho' });
  const answer = { status: 201, headers: {}, body: {} };
  const [before, across, never] = [redeem('before'), redeem('across'), redeem('never')];
  const feed = send('till', { kind: 'listEvents', after: undefined, limit: 5 });
  at(10);
  for (const one of [before, feed]) one(answer);
  at(30);
  const [lost, still] = [redeem('lost'), redeem('still open')];
  send('till', { kind: 'getGift', gift: 'read' });
  at(40);
  for (const one of [across, lost]) one(answer);
  forgetSince(20);
  for (const one of [never, still]) one(answer);
  assert.deepEqual(
    history().map(({ operation, answered }) => ['gift' in operation ? operation.gift : '', answered === undefined]),
    [
      ['before', false],
      ['across', true],
      ['never', true],
      ['still open', true],
    ],
  );
});

test.run();
