/** The mixes of engines that `npm test -- --every-engine` runs the HTTP tests on, beside the embedded ones. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './build.mjs';

/** With the embedded engines these pair every choice of one engine with every choice of each other, and have all three together: there with one process per role. */
const MIXES = [
  { engines: 'mongodb,nats' },
  { engines: 'eventstoredb,nats' },
  { engines: 'eventstoredb,mongodb' },
  { engines: 'all', topology: 'split' },
];

/** Whether a compiled test file starts the service. */
function startsService(file) {
  return /from '[./]*support\/service\.js'/.test(readFileSync(join(root, 'dist/test', file), 'utf8'));
}

/** Those of the test files that run on a mix: the HTTP tests on each; whatever else starts the service takes long: on all engines together. The runbook's commands are run on the embedded ones. */
function filesFor(engines, files) {
  return files.filter((file) => startsService(file) && !file.startsWith('docs/') && (engines === 'all' || /^(api\/|app\.)/.test(file)));
}

/**
 * Starts what each mix needs, calls `run` with those of `files` that run on it and the environment that chooses it, and ends what was started. A mix whose servers
 * can't be had is told to `skip`.
 * EventStoreDB is a double of each service's own, or what TEST_EVENTSTORE_START starts (test/support/engines.ts).
 */
export async function withEachMix(files, run, skip) {
  const nats = await import(join(root, 'dist/test/support/natsServer.js'));
  const mongo = await import(join(root, 'dist/test/support/mongoServer.js'));
  for (const { engines, topology } of MIXES) {
    const label = topology === undefined ? engines : `${engines}, ${topology}`;
    const own = filesFor(engines, files);
    const wants = (engine) => engines === 'all' || engines.split(',').includes(engine);
    const missing = (wants('nats') ? nats.natsMissing() : undefined) ?? (wants('mongodb') && !process.env.TEST_MONGODB_URL ? mongo.mongoMissing() : undefined);
    if (missing !== undefined) {
      skip(own, label, missing);
      continue;
    }
    const servers = [];
    const env = { TEST_ENGINES: engines, ...(topology === undefined ? {} : { TEST_TOPOLOGY: topology }) };
    try {
      if (wants('nats')) {
        const server = await nats.startNats();
        servers.push(server);
        env.TEST_NATS_URL = server.url;
      }
      if (wants('mongodb') && !process.env.TEST_MONGODB_URL) {
        const server = await mongo.startMongo();
        servers.push(server);
        env.TEST_MONGODB_URL = server.url;
      }
      await run(own, label, env);
    } finally {
      for (const server of servers) await server.stop();
    }
  }
}
