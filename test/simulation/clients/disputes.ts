/**
 * Buyers of a run dispute charges, and the provider reports it as Stripe does (docs/payments.md): late, now and then
 * twice, the end before the start, and again until it is answered 200. The desks' purchases are disputed.
 */
import { sleep } from '../../../src/lib/world.js';
import { PROVIDER } from '../../../src/providers/payments/simulated.js';
import { dispute, signed } from '../../support/providers/stripeWebhooks.js';
import { bookedBy } from '../checks/money.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';
import { perform } from '../world/simulatedWorld.js';
import { openClient } from './client.js';

/** A dispute as the provider knows it. */
export interface MadeDispute {
  readonly transaction: string;
  readonly disputeId: string;
  readonly pence: number;
  /** Outcomes in the order in which they came: an appeal may follow a lost dispute. */
  readonly outcomes: readonly ('won' | 'lost')[];
}

export interface Disputes {
  /** Lets buyers dispute charges of these transactions until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Waits until the provider has reported everything. To be called once nothing fails any more. */
  finish(): Promise<void>;
  /**
   * Forgets disputes of which a part was reported to a service that was put back to this moment, ms since the epoch, and
   * those of charges that the provider has no more.
   */
  forgetSince(moment: number): void;
  readonly made: readonly MadeDispute[];
}

/** Share of runs in which charges are disputed. */
const PROBABILITY = 0.5;
/** Virtual ms between two disputes. */
const PAUSE = { least: 500, most: 6_000 };
/** Virtual ms after which a report is sent, mostly or at times, and after which it is sent again. */
const SOON = { least: 10, most: 1_000 };
const LATE = { least: 1_000, most: 20_000 };
const AGAIN = { least: 1_000, most: 10_000 };
/** The same while no process runs, which may be for days. */
const DOWN_MS = 60_000;
const LATE_SHARE = 0.3;
const TWICE_SHARE = 0.3;
const APPEAL_SHARE = 0.3;
const ENDS: readonly (readonly ('won' | 'lost')[])[] = [[], ['won'], ['won'], ['lost'], ['lost']];
const WITHIN_MS = 600_000;

/** @param bought ids of the transactions that may be disputed, as far as they are known */
export function openDisputes(cluster: Cluster, members: readonly Member[], bought: () => readonly string[]): Disputes {
  const { simulation } = cluster;
  const client = openClient(simulation, { name: 'provider', members });
  const { chance, process } = client;
  const happensHere = chance.happens(PROBABILITY);
  let made: MadeDispute[] = [];
  const disputed = new Set<string>();
  /** Times of reports, by their ids. */
  const reported = new Map<string, number>();
  let unreported = 0;

  async function deliver(id: string, type: 'created' | 'closed', of: MadeDispute, status: string): Promise<void> {
    const payment = { id: `ch_${PROVIDER}_${of.transaction}`, amount: of.pence, latest_charge: null };
    const message = dispute(type, payment, { disputeId: of.disputeId, status }, id);
    for (;;) {
      const { headers } = signed(message, cluster.stripeSecret);
      const answer = await client.send({ method: 'POST', path: '/webhooks/stripe', headers, body: message });
      if (answer?.status === 200) break;
      await sleep(chance.between(AGAIN.least, AGAIN.most));
      while (!members.some((member) => member.started())) await sleep(DOWN_MS);
    }
    simulation.marks.sometimes("a dispute's end is reported before its start", isEarly(type, of));
    simulation.marks.sometimes('a dispute is reported twice', reported.has(id));
    if (!reported.has(id)) reported.set(id, simulation.now());
  }

  const isEarly = (type: string, { disputeId }: MadeDispute): boolean =>
    type === 'closed' && !reported.has(`evt_${disputeId}_0`);

  /** Reports a dispute's start (number 0) or one of its outcomes, once or twice. */
  function report(number: number, type: 'created' | 'closed', of: MadeDispute, status: string): void {
    for (let times = chance.happens(TWICE_SHARE) ? 2 : 1; times > 0; times--) {
      unreported += 1;
      const way = chance.happens(LATE_SHARE) ? LATE : SOON;
      const inMs = chance.between(way.least, way.most);
      const run = async (): Promise<void> => {
        await sleep(inMs);
        await deliver(`evt_${of.disputeId}_${number}`, type, of, status);
        unreported -= 1;
      };
      process.start(`report ${type}`, run);
    }
  }

  function act(): void {
    // Wallets are no affair of the provider's.
    const charged = bookedBy({ stored: [] }, cluster.ledger).filter(
      ({ kind, pence, transaction }) =>
        kind === 'charge' && pence > 0 && bought().includes(transaction) && !disputed.has(transaction),
    );
    if (charged.length === 0) return;
    const { transaction, pence } = chance.pick(charged);
    const ends = chance.pick(ENDS);
    const outcomes = ends[0] === 'lost' && chance.happens(APPEAL_SHARE) ? [...ends, 'won' as const] : ends;
    const one: MadeDispute = { transaction, disputeId: `dp_${transaction}`, pence, outcomes };
    made.push(one);
    disputed.add(transaction);
    simulation.marks.sometimes('a charge is disputed');
    report(0, 'created', one, 'needs_response');
    outcomes.forEach((outcome, index) => report(index + 1, 'closed', one, outcome));
  }

  return {
    get made() {
      return made;
    },
    forgetSince(moment) {
      const charged = new Set(bookedBy({ stored: [] }, cluster.ledger).map(({ transaction }) => transaction));
      made = made.filter(
        ({ transaction, disputeId, outcomes }) =>
          charged.has(transaction) &&
          ['created', ...outcomes].every((_, number) => (reported.get(`evt_${disputeId}_${number}`) ?? 0) < moment),
      );
    },
    start(untilMs) {
      if (!happensHere) return;
      process.start('acting', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(chance.between(PAUSE.least, PAUSE.most));
          act();
        }
      });
    },
    finish: async () =>
      perform(
        simulation,
        process,
        'report all disputes',
        async () => {
          while (unreported > 0) await sleep(AGAIN.least);
        },
        WITHIN_MS,
      ),
  };
}
