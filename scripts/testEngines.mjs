/**
 * The engines that `npm run engines` starts (test/engines/docker-compose.yml). Where they answer, they are the defaults
 * of the settings that name real engines to tests.
 */

/** How long an engine may take to answer, in ms. */
const ANSWER_MS = 2_000;

/** Where they listen, by the setting that names them to tests. */
export const TEST_ENGINES = {
  TEST_EVENTSTORE_URL: 'esdb://127.0.0.1:22113?tls=false',
  TEST_MONGODB_URL: 'mongodb://127.0.0.1:27117/?replicaSet=gift',
  TEST_NATS_URL: 'nats://127.0.0.1:24222',
};

/** A port that is open says little: who forwards it may take connections while nobody stands behind. Each throws. */
const ASK = {
  async TEST_EVENTSTORE_URL(url) {
    const { host } = new URL(url.replace('esdb:', 'http:'));
    const { ok, status } = await fetch(`http://${host}/health/live`, { signal: AbortSignal.timeout(ANSWER_MS) });
    if (!ok) throw new Error(`it answers ${status}`);
  },
  async TEST_MONGODB_URL(url) {
    const { MongoClient } = await import('mongodb');
    const client = new MongoClient(url, { serverSelectionTimeoutMS: ANSWER_MS });
    try {
      await client.db('admin').command({ ping: 1 });
    } finally {
      await client.close();
    }
  },
  async TEST_NATS_URL(url) {
    const { connect } = await import('nats');
    const connection = await connect({ servers: url, timeout: ANSWER_MS, reconnect: false });
    await connection.close();
  },
};

/**
 * @param env what is set: a setting that is there, be it empty, stays as it is
 * @param addresses where engines may listen, by setting
 * @returns the settings that are not there, of engines that answer
 */
export async function answeringEngines(env = process.env, addresses = TEST_ENGINES) {
  const asked = Object.entries(addresses).filter(([setting]) => env[setting] === undefined);
  const answers = await Promise.all(
    asked.map(([setting, url]) =>
      ASK[setting](url).then(
        () => true,
        () => false,
      ),
    ),
  );
  return Object.fromEntries(asked.filter((_, at) => answers[at]));
}
