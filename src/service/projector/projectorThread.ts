/**
 * The projector's worker thread (`workerThread.ts`). It posts log lines and the health of its followers, and ends when
 * it gets the message `'close'`.
 */
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { openBackground } from '../../adapters/embedded/background.js';
import { openEmbeddedEventStore } from '../../adapters/embedded/eventStore/eventStore.js';
import type { CommitLink, Sent } from '../../adapters/embedded/eventStore/commitLink.js';
import { openEmbeddedReadStore } from '../../adapters/embedded/readStore/readStore.js';
import { ADDRESS_WAIT_MS } from '../../lib/addressWait.js';
import { everyBeats } from '../../lib/async/beats.js';
import { resources } from '../../lib/async/resources.js';
import { inFlight } from '../../lib/inFlight.js';
import { createLogger } from '../../lib/logging/logger.js';
import { refuseOtherRelease } from '../../lib/version.js';
import { PROJECTIONS } from '../../projections/index.js';
import { startTelemetry } from '../../tracing/telemetry.js';
import { readable } from '../engines.js';
import { followers } from '../../runtime/supervision/followers.js';
import type { FromProjectorThread, ProjectorThreadData, ToProjectorThread } from './workerThread.js';
import { lowerPriority } from './lowerPriority.js';
import { followSharedClock, openSharedClock } from '../../runtime/clock/sharedClock.js';
import { projectInProcess } from './inProcess.js';

const port = parentPort;
if (port === null) throw new Error('projectorThread runs as a worker thread only');
const data = workerData as ProjectorThreadData;
const { dataDir: dir, keysUrl, masterKeys, tree, sandbox, holder, level, version, processNumber } = data;
refuseOtherRelease(version);
// A thread has a default of its own; this one connects to witnesses.
setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_WAIT_MS);
const post = (message: FromProjectorThread): void => port.postMessage(message);
const logger = createLogger({ level, processNumber, destination: { write: post } });
const HEALTH_MS = 500;

const open = resources();
const telemetry = await startTelemetry({ version, logger });
if (telemetry !== undefined) open.add(telemetry);
const committing = inFlight<(outcomes: Sent) => void>();
/** Appends are committed by the process, whose thread for that is there already. */
const link: CommitLink = {
  elsewhere: () => true,
  send: async (appends) => new Promise((resolve) => post({ id: committing.put(resolve), appends })),
  serve: () => undefined,
};
const background = open.add(
  openBackground({
    onDeath: (err) => logger.warn({ err }, 'projector: the thread that moves WAL pages and writes copies ended'),
    shared: data.background,
    atOnce: true,
  }),
);
const { events, stored, keys } = readable(
  await openEmbeddedEventStore({ dir, openElsewhere: true, background, link }),
  {
    dataDir: dir,
    openElsewhere: true,
    ...(keysUrl === undefined ? {} : { keysUrl }),
    ...(masterKeys === undefined ? {} : { masterKeys }),
  },
);
open.add(events);
// The key store's modules are loaded now: the program's files may be replaced while it runs.
await keys.ping().catch((error: unknown) => logger.warn({ err: error }, 'projector: the key store is not well'));
const store = open.add(await openEmbeddedReadStore({ dir, logger, openElsewhere: true, longLived: true, background }));
// Requests have priority. The store's own threads have started already and keep theirs: other writers wait for their
// lock.
lowerPriority();
const parts = followers({ logger });
if (sandbox) {
  await openSharedClock(store.records, events);
  open.add(parts.start('sandbox clock', followSharedClock(store.records)));
}
const projector = open.add(
  await projectInProcess({
    events,
    stored,
    store,
    projections: PROJECTIONS,
    tree,
    dataDir: dir,
    logger,
    holder,
    followers: parts,
    polledByFronts: true,
    background,
  }),
);
// The first post of health signals that everything is loaded.
await store.ping().catch((error: unknown) => logger.warn({ err: error }, 'projector: its read store is not well'));
post(parts.health());
let posted = '';
everyBeats(HEALTH_MS, () => {
  const health = parts.health();
  if (JSON.stringify(health) === posted) return;
  posted = JSON.stringify(health);
  post(health);
});

port.on('message', (message: ToProjectorThread) => {
  if (typeof message === 'object') return committing.take(message.id)?.(message.outcomes);
  if (message === 'poll') return projector.poll();
  open.close().then(
    // The exit does not wait for traces to a collector that does not answer.
    () => process.exit(0),
    (error: unknown) => {
      logger.error({ err: error }, 'projector: its thread did not close');
      process.exit(1);
    },
  );
});
