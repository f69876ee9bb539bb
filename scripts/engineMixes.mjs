/**
 * The mixes of engines for `npm test -- --every-engine`, beside the embedded ones, for tests that start the service.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './build.mjs';

const HTTP = /^api\//;
/** These start the service, but choose its engines themselves. */
const OWN_ENGINES =
  /^(docs\/|faults\/(files|outages|writeLock)|api\/(fullDisk|diskFaults|sandbox\/reset)|service\/(app\.|erasures|outwardWork|processes\/|service\.)|processors\/fromNothing|cli\/(projectionsLost|restoreDrill|withoutService)\.)/;
/**
 * Several roles together, over HTTP: each sees the others' writes, does what they ask for, and rebuilds what they
 * serve.
 */
const SEVERAL_ROLES = /^api\/(health|rebuilding|stripe|gifts\/redemptions|ops\/(parked|projections|refunds))\./;

/**
 * HTTP tests of what engines of different kinds do together: reads that wait for the log, keys of repeated requests,
 * what one role leaves to another. All else is the same above the ports. Each test runs in one mix of servers.
 */
const ON_PAIRS =
  /^api\/(followers|keyHolders|lateReadModels|projectorGone|pipeline\/(idempotency|positions)|gifts\/(gifts|transactions))\./;

/** What a test of these shows is decided above the ports, whose own suites hold the rest. */
const ABOVE_PORTS =
  /^(console\/|api\/(account|bodies|callers|console|crashPoints|errorField|fuzz|hostile|limits|listener|metrics|nulls|openapi|privacy|requests|sandbox\/|tillProtocol|pipeline\/(compression|errors)|webhooks\/|webhookEndpoints\/webhookEndpoints|gifts\/(launchPage|merchantRedemptions|outOfService|redemptionKeys|sending|staff|vouchers)\.|ops\/(erasures|frame|gifts|log|manyActions|people|reconciliation|redemptions|staffClients|supportActions)\.)|cli\/(audit|developers|gifts|history|log|many|owner|parked)|deploy\/|service\/erasedMemory)/;

/** All three servers together. */
const ALL = { engines: 'all' };
/** The same with one process per role. */
const SPLIT = { engines: 'all', topology: 'split' };
/** With the embedded engines and all three these pair every choice of one engine with every choice of each other. */
const PAIRS = [{ engines: 'mongodb,nats' }, { engines: 'eventstoredb,nats' }, { engines: 'eventstoredb,mongodb' }];

/** Whether a compiled test file starts the service on given engines. */
function startsService(file) {
  return (
    !OWN_ENGINES.test(file) &&
    /from '[./]*support\/service\/(service|console)\.js'/.test(readFileSync(join(root, 'dist/test', file), 'utf8'))
  );
}

/**
 * The files of each mix: those of several roles with a process per role; those of engines together in turn on one of
 * the pairs; all others on all servers.
 * @param whole each HTTP test runs on each mix
 */
function mixesFor(files, whole) {
  const own = files.filter((file) => startsService(file) && (whole || !ABOVE_PORTS.test(file)));
  const http = own.filter((file) => HTTP.test(file));
  const together = http.filter((file) => ON_PAIRS.test(file));
  return [
    { ...ALL, files: whole ? own : own.filter((file) => !SEVERAL_ROLES.test(file) && !ON_PAIRS.test(file)) },
    { ...SPLIT, files: whole ? http : http.filter((file) => SEVERAL_ROLES.test(file)) },
    ...PAIRS.map((pair, number) => ({
      ...pair,
      files: whole ? http : together.filter((_, at) => at % PAIRS.length === number),
    })),
  ];
}

/**
 * Starts one server of each kind for all mixes: every service has a database, and subjects, of its own. EventStoreDB is
 * a double of each service's own, or started by TEST_EVENTSTORE_START (test/support/engines/engines.ts).
 * @returns `runs`: each a file, the `label` of its mix and its environment; `skipped`: those whose servers are missing,
 * with the reason; `close` ends the servers
 */
export async function openMixes(files, whole) {
  const nats = await import(join(root, 'dist/test/support/engines/natsServer.js'));
  const mongo = await import(join(root, 'dist/test/support/engines/mongoServer.js'));
  const givenMongo = process.env.TEST_MONGODB_URL;
  const missing = { nats: nats.natsMissing(), mongodb: givenMongo ? undefined : mongo.mongoMissing() };
  const servers = [];
  const env = {};
  if (missing.nats === undefined) {
    const server = await nats.startNats();
    servers.push(server);
    env.TEST_NATS_URL = server.url;
  }
  if (missing.mongodb === undefined && !givenMongo) {
    const server = await mongo.startMongo();
    servers.push(server);
    env.TEST_MONGODB_URL = server.url;
  }
  const runs = [];
  const skipped = [];
  for (const { engines, topology, files: own } of mixesFor(files, whole)) {
    const label = topology === undefined ? engines : `${engines}, ${topology}`;
    const reason = Object.entries(missing).find(
      ([engine, why]) => why !== undefined && (engines === 'all' || engines.split(',').includes(engine)),
    )?.[1];
    for (const file of own) {
      if (reason === undefined)
        runs.push({
          file,
          label,
          env: { TEST_ENGINES: engines, ...(topology === undefined ? {} : { TEST_TOPOLOGY: topology }), ...env },
        });
      else skipped.push({ file, label, reason });
    }
  }
  return {
    runs,
    skipped,
    async close() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
