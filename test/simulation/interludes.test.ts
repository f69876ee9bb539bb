import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { readStoreDisk } from './engines/readStore.js';

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

test.run();
