/** The catalogue of a run, imported before anything can fail. */
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { importCatalogue } from '../../../src/import/importCatalogue.js';
import { currentTime } from '../../../src/lib/clock.js';
import { readable } from '../../../src/service/engines.js';
import { CATALOGUE, user } from '../../support/fixtures/testCatalogue.js';
import { TROUBLED_CARDS } from '../clients/desk.js';
import { LEAVERS, SECOND_SUPPORT } from '../clients/leavers.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import { IMMEDIATE } from '../world/link.js';
import { perform } from '../world/simulatedWorld.js';
import type { Cluster } from './cluster.js';
import { simulatedHash } from './passwords.js';

export async function firstImport({ simulation, log, keys, config }: Cluster): Promise<void> {
  await perform(simulation, simulation.neutral, 'import', async () => {
    const settings = config('api');
    const { events, subjects } = readable(
      openSimulatedEvents(log, IMMEDIATE),
      settings,
      undefined,
      openSimulatedKeys(keys, IMMEDIATE),
    );
    const hash = keyedHash(Buffer.from(settings.hashKey ?? ''));
    await importCatalogue({ events, hash, subjects, now: currentTime }, catalogue(), {
      by: { user: 'cli:simulation' },
    });
  });
}

/** The test catalogue with hashes of the simulation, which are the same in each run, and with cards for desks, and users of its own. */
function catalogue(): object {
  const cheap = (secret: string): string => simulatedHash(secret, 'm=4096,t=3,p=1', 'c2ltdWxhdGVkIHNhbHQgIQ');
  return {
    ...CATALOGUE,
    users: [...CATALOGUE.users, ...OWN_USERS].map((one) => ({
      ...one,
      password_hash: cheap(`${idOf(one)}-password`),
    })),
    clients: CATALOGUE.clients.map((client) => ({ ...client, secret_hash: cheap(`${idOf(client)}-secret`) })),
    payment_methods: [
      ...CATALOGUE.payment_methods
        .filter(({ reference }) => !TROUBLED_CARDS.includes(reference))
        .map((method) => ('top_ups' in method ? { ...method, top_ups: [{ id: 't1', amount: TOP_UP }] } : method)),
      ...TROUBLED_CARDS.map((reference) => ({
        reference,
        kind: 'card',
        users: ['ann', 'bob', 'vip', ...LEAVERS.map(({ id }) => id)],
      })),
    ],
  };
}

/** Pence: a short run has enough of them, a long one empties the wallet. */
const TOP_UP = 4_000;
/** Made once: their hashes, which are replaced, take long. */
const OWN_USERS = [...LEAVERS.map(({ id, ...own }) => user(id, own)), user(SECOND_SUPPORT, { roles: ['support'] })];

const idOf = (entry: object): string => (entry as { readonly id: string }).id;
