/** The bus on NATS beside the bare client: requests answered by another connection, and messages published. */
import { randomUUID } from 'node:crypto';
import { connect } from 'nats';
import { openNatsBus } from '../../src/adapters/nats/bus.js';
import { startNats } from '../../test/support/engines/natsServer.js';
import { type Arena, inFlight } from '../support/contest.js';

/** As a charge is asked for. */
const REQUEST = {
  transactionId: 'a'.repeat(24),
  amount: 1_050,
  currency: 'gbp',
  reference: 'pm_card_visa',
  customer: 'cus_123',
  metadata: { transaction: 'a'.repeat(24) },
};
const ANSWER = { outcome: 'charged', id: 'pi_123456789' };
const DEADLINE_MS = 10_000;

/** On the server at TEST_NATS_URL, or a `nats-server` of its own. @param amount requests of a round */
export async function natsArena(amount: number): Promise<Arena> {
  const server = await startNats();
  const logId = randomUUID();
  const onError = (error: unknown): void => console.error(error);
  const [asking, answering] = await Promise.all([
    openNatsBus({ url: server.url, logId, onError }),
    openNatsBus({ url: server.url, logId, onError }),
  ]);
  const [bareAsking, bareAnswering] = await Promise.all([
    connect({ servers: new URL(server.url).host }),
    connect({ servers: new URL(server.url).host }),
  ]);
  await answering.serve('payments.charge', 'workers', async () => ANSWER);
  bareAnswering.subscribe(`bench.${logId}`, {
    queue: 'workers',
    callback(_, message) {
      JSON.parse(message.string());
      message.respond(JSON.stringify(ANSWER));
    },
  });
  await bareAnswering.flush();

  const items = (count: number): object[] => Array.from({ length: count === 1 ? amount / 4 : amount }, () => REQUEST);
  return {
    engine: 'NATS',
    judged: true,
    contests: [
      ...[1, 16, 64].map((count) => ({
        what: `request and reply, ${count} in flight (a second)`,
        ours: async () =>
          inFlight(count, items(count), (request) =>
            asking.request('payments.charge', request, { timeoutMs: DEADLINE_MS }),
          ),
        bare: async () =>
          inFlight(
            count,
            items(count),
            async (request) =>
              JSON.parse(
                (
                  await bareAsking.request(`bench.${logId}`, JSON.stringify(request), { timeout: DEADLINE_MS })
                ).string(),
              ) as unknown,
          ),
      })),
      {
        what: 'published and taken by the server, 64 in flight (a second)',
        ours: async () => inFlight(64, items(64), (message) => asking.publish('told', message)),
        bare: async () =>
          inFlight(64, items(64), async (message) => {
            bareAsking.publish(`bench.${logId}.told`, JSON.stringify(message));
            await bareAsking.flush();
          }),
      },
    ],
    async close() {
      await Promise.all([asking.close(), answering.close(), bareAsking.close(), bareAnswering.close()]);
      await server.stop();
    },
  };
}
