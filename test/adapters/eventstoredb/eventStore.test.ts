import { suite } from 'uvu';
import { eventStoreContract } from '../../contract/eventStore.js';
import { eventStoreOutageContract } from '../../contract/eventStoreOutages.js';
import { ABANDONED_MS, onDouble, onServer } from '../../support/engines/eventStoreDb.js';

eventStoreContract('EventStoreDB, double', async () => onDouble());
eventStoreOutageContract('EventStoreDB, double', async () => onDouble(ABANDONED_MS));

const url = process.env.TEST_EVENTSTORE_URL ?? '';
if (url === '') {
  const server = suite('EventStoreDB, server');
  for (const name of ['EventStore: EventStoreDB, server', 'EventStore outages: EventStoreDB, server']) {
    console.log(`skipped: ${name}: TEST_EVENTSTORE_URL is not set`);
    server.skip(name, () => undefined);
  }
  server.run();
} else {
  eventStoreContract('EventStoreDB, server', async () => onServer(url));
  eventStoreOutageContract('EventStoreDB, server', async () => onServer(url, ABANDONED_MS));
}
