/** The thread of `scratchWriter.ts`. */
import { moveNow } from '../checkpoint.js';
import { Sqlite } from '../driver.js';
import { serveThread } from '../thread.js';
import type { ScratchRequest } from './messages.js';
import { serveWriter } from './serveWriter.js';

// The driver loads its machine code with the first database.
new Sqlite(':memory:').close();

const thread = serveThread<ScratchRequest, never>(
  ({ data, port }) => {
    try {
      // Without a thread for the WAL: no request waits for a scratch store.
      serveWriter(data, port, (database) => ({ move: () => void moveNow(database), close: async () => undefined }));
    } catch (error) {
      // The other stores of this thread go on.
      port.close();
      process.emitWarning(error as Error);
    }
  },
  () => undefined,
);
thread.ready();
