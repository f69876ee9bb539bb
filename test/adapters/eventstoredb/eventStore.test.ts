import { eventStoreContract } from '../../contract/eventStore.js';
import { eventStoreOutageContract } from '../../contract/eventStoreOutages.js';
import { onDouble, onServer } from '../../support/eventStoreDb.js';

eventStoreContract('EventStoreDB, double', onDouble);
eventStoreOutageContract('EventStoreDB, double', onDouble);

const url = process.env.TEST_EVENTSTORE_URL ?? '';
if (url === '') {
  console.log('skipped: EventStore: EventStoreDB, server: TEST_EVENTSTORE_URL is not set');
  console.log('skipped: EventStore outages: EventStoreDB, server: TEST_EVENTSTORE_URL is not set');
} else {
  eventStoreContract('EventStoreDB, server', async () => onServer(url));
  eventStoreOutageContract('EventStoreDB, server', async () => onServer(url));
}
