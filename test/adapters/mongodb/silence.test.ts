import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LateError } from '../../../src/adapters/mongodb/failures.js';
import { BULK_MS } from '../../../src/adapters/mongodb/connection.js';
import { openMongoReadStore } from '../../../src/adapters/mongodb/readStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type MongoServer, mongoMissing, startMongo } from '../../support/engines/mongoServer.js';
import { everyCall, recovered } from '../../support/engines/mongoTrouble.js';
import { at, batch, doc, newCollection, projectionOf, rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { skipSuite } from '../../support/assertions/testWhere.js';
import { until } from '../../support/assertions/until.js';

const missing = mongoMissing();
/**
 * A call takes 3 to 6 s on a machine that has time for it; where the driver doesn't notice, a bulk write's deadline
 * ends it (20 s), or nothing does.
 */

if (missing === undefined) {
  const test = suite<{ server: MongoServer; store: ReadStore }>('MongoDB: a server that falls silent');
  test.before.each(async (context) => {
    context.server = await startMongo();
    context.store = await openMongoReadStore({ url: context.server.url });
  });
  test.after.each(async ({ server, store }) => {
    server.signal('SIGCONT');
    await server.stop();
    await store.close();
  });

  test('fails every call to a silent server and uses it again when it is back', async ({ server, store }) => {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    await store.write([batch(collection, [doc('d1', 1, { n: 1 })], 1)]);
    await store.records.put('r', 1);
    const large = Array.from({ length: 900 }, (_, n) => doc(`l${n}`, 1, { n, text: 'x'.repeat(2_000) }));
    // First, so that it finds an open connection and is sent.
    const calls = {
      'a large write': () => store.write([batch(collection, large.slice(1))]),
      ...everyCall(store, collection),
    };
    // Every call is to find a connection that is open: those not yet made fail early.
    for (let round = 0; round < 2; round++)
      await recovered(() =>
        Promise.all(
          Array.from({ length: 2 }, () => Object.values(everyCall(store, collection)).map((call) => call())).flat(),
        ),
      );
    server.signal('SIGSTOP');
    const waiting = store.reached(projectionOf(collection), at(9), 700);
    const failures = await Promise.all(
      Object.entries(calls).map(async ([name, call]) => ({ name, error: await rejectionOf(call()) })),
    );
    for (const { name, error } of failures) {
      assert.instance(error, UnavailableError, `${name}: ${error.message}`);
      assert.ok(
        !(error.cause instanceof LateError && error.cause.message.includes(`${BULK_MS} ms`)),
        `${name} waited for the deadline of bulk writes`,
      );
    }
    assert.not.ok(await waiting);
    server.signal('SIGCONT');
    await recovered(() => store.ping());
    for (const [name, call] of Object.entries(everyCall(store, collection)))
      assert.not.instance(await call().catch((error: unknown) => error), Error, name);
  });

  test('changes nothing newer by a write that arrives after it was given up', async ({ server, store }) => {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    server.signal('SIGSTOP');
    const late = store.write([batch(collection, [doc('d1', 1, { n: 1 })], 1)]);
    const error = await rejectionOf(late);
    assert.ok((error as UnavailableError).outcomeUnknown);
    server.signal('SIGCONT');
    await recovered(() => store.write([batch(collection, [doc('d1', 2, { n: 2 })], 2)]));
    await sleep(300);
    assert.equal(await store.get(collection, 'd1'), doc('d1', 2, { n: 2 }));
    assert.is(await store.checkpoint(projectionOf(collection)), at(2));
  });

  test('notices silence, and sends nothing from then on', async ({ server, store }) => {
    await store.records.put('r', 1);
    server.signal('SIGSTOP');
    const sendsNothing = async (): Promise<boolean> => {
      const error = await rejectionOf(store.records.put('r', 2));
      assert.instance(error, UnavailableError);
      return !(error as UnavailableError).outcomeUnknown;
    };
    await until(sendsNothing, 'it to notice');
    assert.ok(await sendsNothing(), 'from then on');
  });

  test('does not wait for a silent server when it closes', async ({ server, store }) => {
    const collection = newCollection();
    await store.ensure(collection);
    server.signal('SIGSTOP');
    const calls = Promise.allSettled([
      store.get(collection, 'd1'),
      store.write([batch(collection, [doc('d1', 1, {})], 1)]),
    ]);
    await store.close();
    for (const { status } of await calls) assert.is(status, 'rejected');
  });

  test.run();
} else {
  skipSuite('MongoDB: a server that falls silent', missing);
}
