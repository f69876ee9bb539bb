import { suite } from 'uvu';
import { readStoreContract } from '../../contract/readStore.js';
import { contractServer, mongoMissing, newDatabase } from '../../support/engines/mongoServer.js';
import { mongoFixture } from '../../support/engines/readStoreMongo.js';
import { skipSuite } from '../../support/assertions/testWhere.js';

/** Deviations of the test server from MongoDB. */
const TEST_SERVER_DEVIATIONS = {
  'strings compare by bytes, whatever the characters':
    'the test server compares strings by UTF-16 units; MongoDB by bytes',
  'look-ups during writes are each as new as the earlier answers':
    'the test server may show a document half written, one field of it older than another; MongoDB shows it whole',
};
/** The test server looks at every document for every write that has a guard: the time goes with the square. */
const TEST_SERVER_MANY = 2_000;

const given = (process.env['TEST_MONGODB_URL'] ?? '') !== '';
const missing = given ? undefined : mongoMissing();

if (missing === undefined) {
  const server = await contractServer();
  const database = newDatabase(server.url);
  if (server.own)
    readStoreContract('MongoDB', () => mongoFixture(database.url, TEST_SERVER_MANY), TEST_SERVER_DEVIATIONS);
  else readStoreContract('MongoDB', () => mongoFixture(database.url));
  const after = suite('MongoDB contract: what was made');
  after('is removed', async () => {
    await database.destroy();
    await server.stop();
  });
  after.run();
} else {
  skipSuite('ReadStore: MongoDB', missing);
}
