/**
 * The clients of a run: they buy, look up, redeem, reverse and claim by chance, in some runs act as support, take
 * vouchers and read lists, too, and write down what they see.
 */
import { sleep } from '../../../src/lib/world.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { cancelOf, PARTS, seededClients } from '../model/clients.js';
import { type History, type Observation, recorder, toldBy } from '../model/history.js';
import { type Installation, installationOf } from '../model/installation.js';
import type { Choice } from '../model/known.js';
import { lookUp, readWhole } from '../model/lastReads.js';
import { requestOf } from '../model/requests.js';
import type { Member } from '../service/member.js';
import type { Chance } from '../world/chance.js';
import type { Simulation } from '../world/simulation.js';
import { type Client, openClient } from './client.js';
import { drawnTroubles } from './troubles.js';

export interface Crowd {
  readonly installation: Installation;
  history(): History;
  /** Lets the clients act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Forgets all idempotency keys: they are free again a day later. */
  forgetKeys(): void;
  /** Forgets what a service does not know that was put back to a moment, ms since the epoch. */
  forgetSince(moment: number): void;
  /** Repeats all writes of which nobody knows the outcome, and the latest of those that were answered. */
  takeUpAll(): Promise<void>;
  /** Reads all that the clients know, lists to their ends. Each request is repeated until it has an answer. */
  readAll(): Promise<void>;
  /** The client that takes up and reads all. */
  readonly reader: Client;
}

export interface CrowdOptions {
  readonly members: readonly Member[];
  readonly clients: number;
}

/** Virtual ms between two requests of a client. */
const PAUSE = { least: 10, most: 1_500 };
/** Virtual ms in which all clients act at once: requests meet that would else follow one another. */
const RUSH = { everyMs: 5_000, forMs: 400, least: 1, most: 25 };
/** Share of a rush's writes to which another request is sent: a repetition, or a rival under a key of its own. */
const DOUBLED = 0.6;
/** Share of the repetitions that are two. */
const THRICE = 0.3;
/** A till that does not wait for its answer looks up or cancels what is in progress, so many virtual ms later. */
const IMPATIENT = { share: 0.4, least: 0, most: 60 };
const DOUBLES: ReadonlySet<string> = new Set(['redeem', 'unredeem', 'claim', 'makeVoucher', 'replace', 'reassign']);
const RETRY_MS = 1_000;
/** Payment methods whose outcome is known at once. */
const PAYMENTS = ['pm_card_visa', 'pm_card_visa_chargeDeclined', 'wallet-invoice', 'wallet-prepaid'];

export function openCrowd(simulation: Simulation, { members, clients }: CrowdOptions): Crowd {
  const installation = installationOf(CATALOGUE);
  const chance = simulation.chance.stream('crowd');
  const parts = PARTS.filter(() => chance.happens(0.5));
  const choices = seededClients({ installation, random: chance.random, payments: PAYMENTS, parts });
  const record = recorder(simulation.now);
  const meetTrouble = drawnTroubles(simulation.chance.stream('troubles'), simulation.faults);
  let starts = 0;
  const reader = openClient(simulation, { name: 'reader', members });

  async function perform(client: Client, { client: user, operation }: Choice): Promise<Observation> {
    meetTrouble({ client: user, operation });
    const answered = record.send(user, operation);
    const answer = await client.exchange(user, requestOf(operation));
    const observation = answered(answer?.status === 401 ? undefined : answer);
    choices.learn(observation);
    return observation;
  }

  /** Repeats a request until an answer says what became of it. */
  async function untilTold(choice: Choice): Promise<Observation> {
    for (;;) {
      const observation = await perform(reader, choice);
      if (toldBy(observation) !== undefined) return observation;
      await sleep(RETRY_MS);
    }
  }

  return {
    installation,
    reader,
    history: record.history,
    start(untilMs) {
      starts += 1;
      for (let n = 1; n <= clients; n++) {
        const client = openClient(simulation, { name: `client-${n}.${starts}`, members });
        client.process.start('acting', async () => {
          while (simulation.ms() < untilMs) {
            await sleep(pauseMs(client.chance, simulation.ms()));
            const choice = choices.next();
            const twins = untilRush(simulation.ms()) <= 0 ? twinsOf(choice, client.chance) : [];
            await Promise.all([
              perform(client, choice),
              ...twins.map(async (twin) => {
                if (twin.operation.kind !== choice.operation.kind)
                  await sleep(client.chance.between(IMPATIENT.least, IMPATIENT.most));
                return perform(client, twin);
              }),
            ]);
          }
        });
      }
    },
    forgetKeys: choices.forgetKeys,
    forgetSince(moment) {
      record.forgetSince(moment);
      choices.beginAgain(record.history());
    },
    async takeUpAll() {
      for (const choice of [...choices.takeUpAll(), ...choices.repeats()]) await untilTold(choice);
    },
    async readAll() {
      for (const choice of choices.readAll()) await readWhole(choice, untilTold);
    },
  };
}

/** Virtual ms from now until the next rush; 0 or less: there is one. The first comes once the service is ready. */
const untilRush = (ms: number): number => RUSH.everyMs - RUSH.forMs - (ms % RUSH.everyMs);

function pauseMs(chance: Chance, ms: number): number {
  const until = untilRush(ms);
  if (until <= 0) return chance.between(RUSH.least, RUSH.most);
  return Math.min(chance.between(PAUSE.least, PAUSE.most), until);
}

/** The requests that are sent together with a write; none in most cases. */
function twinsOf({ client, operation }: Choice, chance: Chance): readonly Choice[] {
  if (!DOUBLES.has(operation.kind) || !chance.happens(DOUBLED)) return [];
  if (!('key' in operation) || operation.key === undefined || chance.happens(0.3))
    return Array.from({ length: chance.happens(THRICE) ? 2 : 1 }, () => ({ client, operation }));
  if (operation.kind === 'redeem' && chance.happens(IMPATIENT.share))
    return [chance.happens(0.5) ? lookUp(client, operation) : cancelOf(client, operation)];
  return [{ client, operation: { ...operation, key: `${operation.key}-rival` } }];
}
