/**
 * The thread that `beside.ts` starts. It posts what it logs, line by line, and how it fares once it works; it ends when
 * it is sent `'close'`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openEmbeddedEventStore } from '../../adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../adapters/embedded/readStore/readStore.js';
import { resources } from '../../lib/async/resources.js';
import { createLogger } from '../../lib/logging/logger.js';
import { PROJECTIONS } from '../../projections/index.js';
import { startTelemetry } from '../../tracing/telemetry.js';
import { upToDateEvents } from '../upcastEvents.js';
import { followers } from '../../runtime/supervision/followers.js';
import type { FromProjectorThread, ProjectorThreadData } from './workerThread.js';
import { giveWay } from './lowerPriority.js';
import { projectHere } from './inProcess.js';

const port = parentPort;
if (port === null) throw new Error('projectorThread runs as a worker thread only');
const { dataDir: dir, holder, level, version } = workerData as ProjectorThreadData;
const post = (message: FromProjectorThread): void => port.postMessage(message);
const logger = createLogger({ level, destination: { write: post } });
/** How often it says how it fares, in ms. */
const HEALTH_MS = 500;

const open = resources();
const telemetry = await startTelemetry({ version, logger });
if (telemetry !== undefined) open.add(telemetry, (one) => one.close());
const events = open.add(upToDateEvents(await openEmbeddedEventStore({ dir, openElsewhere: true })), (one) =>
  one.close(),
);
const store = open.add(await openEmbeddedReadStore({ dir, logger, openElsewhere: true, longLived: true }), (one) =>
  one.close(),
);
// Requests go first. The store's threads don't give way: who else writes to it would wait for them to give its lock
// back.
giveWay();
const parts = followers({ logger });
open.add(await projectHere({ events, store, projections: PROJECTIONS, logger, holder, followers: parts }), (one) =>
  one.close(),
);
// Until then it says nothing: who started it waits for it to have loaded everything.
await store.ping().catch((error: unknown) => logger.warn({ err: error }, 'projector: its read store is not well'));
post(parts.health());
setInterval(() => post(parts.health()), HEALTH_MS).unref();

port.once('message', () => {
  open.close().then(
    // What traces may still have under way, on their way to a collector that is silent, is not waited for.
    () => process.exit(0),
    (error: unknown) => {
      logger.error({ err: error }, 'projector: its thread did not close');
      process.exit(1);
    },
  );
});
