import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { batchedReads } from '../../../src/adapters/mongodb/reader.js';
import type { MongoDocument } from '../../../src/adapters/mongodb/layout.js';
import type { Database, Connection } from '../../../src/adapters/mongodb/connection.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';
import { FOR_EVER_MS } from '../../support/assertions/until.js';

const test = suite('MongoDB: look-ups by id, gathered');

/** A server that holds `documents`, and answers on demand. */
function server(documents: Readonly<Record<string, object>>, silentMs?: number) {
  const requests: { collection: string; ids: readonly string[]; answer: () => void; fail: (error: Error) => void }[] =
    [];
  const answered = async (collection: string, ids: readonly string[]): Promise<MongoDocument[]> =>
    new Promise((resolve, reject) => {
      const found = (): MongoDocument[] =>
        ids.filter((id) => id in documents).map((id) => ({ _id: id, p: '1', ...documents[id] }) as MongoDocument);
      requests.push({ collection, ids, answer: () => resolve(found()), fail: reject });
    });
  const collection = (name: string): object => ({
    findOne: async ({ _id }: { _id: string }) => (await answered(name, [_id]))[0] ?? null,
    find: ({ _id: { $in } }: { _id: { $in: readonly string[] } }) => ({ toArray: async () => answered(name, $in) }),
  });
  const connection: Pick<Connection, 'read'> = { read: async (work) => work({ collection } as Database) };
  return { lookUp: batchedReads(connection, silentMs), requests };
}

const turn = async (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('sends look-ups of one turn together, each id once, and gives each its own answer', async () => {
  const { lookUp, requests } = server({ a: { n: 1 }, b: { n: 2 } });
  const all = Promise.all([lookUp('c', 'a'), lookUp('c', 'b'), lookUp('c', 'gone'), lookUp('c', 'a')]);
  await turn();
  assert.equal(
    requests.map(({ ids }) => ids),
    [['a', 'b', 'gone']],
  );
  requests[0]?.answer();
  assert.equal(
    (await all).map((one) => (one as { n?: number } | undefined)?.n),
    [1, 2, undefined, 1],
  );
});

test('sends two requests at once, and later look-ups with the next; collections don’t wait', async () => {
  const { lookUp, requests } = server({ a: {}, b: {}, c: {}, d: {} });
  const first = lookUp('one', 'a');
  await turn();
  const second = lookUp('one', 'b');
  await turn();
  const later = Promise.all([lookUp('one', 'c'), lookUp('one', 'd')]);
  const other = lookUp('two', 'a');
  await turn();
  assert.equal(
    requests.map(({ collection, ids }) => [collection, ids]),
    [
      ['one', ['a']],
      ['one', ['b']],
      ['two', ['a']],
    ],
  );
  requests[1]?.answer();
  assert.is((await second)?._id, 'b');
  await turn();
  assert.equal(requests[3]?.ids, ['c', 'd']);
  for (const { answer } of requests) answer();
  assert.equal([(await first)?._id, (await other)?._id, (await later).map((one) => one?._id)], ['a', 'a', ['c', 'd']]);
});

test('names no more than 100 documents in a request', async () => {
  const { lookUp, requests } = server({});
  const all = Promise.all(Array.from({ length: 250 }, async (_, n) => lookUp('c', String(n))));
  await turn();
  assert.equal(
    requests.map(({ ids }) => ids.length),
    [100, 100],
  );
  for (const { answer } of requests) answer();
  await turn();
  requests[2]?.answer();
  assert.is((await all).length, 250);
});

test('fails those who share a failed request, and goes on with the next', async () => {
  const { lookUp, requests } = server({ a: {} });
  const both = Promise.all([failureOf(lookUp('c', 'a')), failureOf(lookUp('c', 'b'))]);
  await turn();
  requests[0]?.fail(new UnavailableError('no server'));
  for (const error of await both) assert.instance(error, UnavailableError);
  const again = lookUp('c', 'a');
  await turn();
  requests[1]?.answer();
  assert.is((await again)?._id, 'a');
});

test('fails those who waited for all the time of a request to a silent server, and no others', async () => {
  for (const silent of [true, false]) {
    const { lookUp, requests } = server({}, silent ? 0 : FOR_EVER_MS);
    const many = Array.from({ length: 250 }, async (_, n) => lookUp('c', String(n)));
    const outcomes = Promise.allSettled(many);
    await turn();
    const later = lookUp('c', 'later');
    await turn();
    assert.is(requests.length, 2);
    for (const { fail } of requests) fail(new UnavailableError('no answer within 5000 ms'));
    await turn();
    for (const { answer } of requests) answer();
    assert.is(await later, undefined);
    const failed = (await outcomes).filter(({ status }) => status === 'rejected');
    assert.is(failed.length, silent ? 250 : 200);
    assert.is(requests.length, 3);
  }
  const { lookUp, requests } = server({}, 0);
  const outcomes = Promise.allSettled(Array.from({ length: 250 }, async (_, n) => lookUp('c', String(n))));
  await turn();
  for (const { fail } of requests) fail(new TypeError('a fault of these requests'));
  await turn();
  for (const { answer } of requests) answer();
  assert.is((await outcomes).filter(({ status }) => status === 'rejected').length, 200);
});

test.run();
