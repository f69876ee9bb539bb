import { eventStoreContract } from '../../../contract/eventStore.js';
import { newFolder } from '../../../support/engines/eventStoreFolder.js';

eventStoreContract('embedded', async () => {
  const { open, remove } = newFolder();
  return { store: await open(), reopen: open, destroy: remove };
});
