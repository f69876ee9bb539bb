/**
 * People who give money back in the provider's dashboard (docs/payments.md), whatever the service does at that moment.
 * After each refund, by hand or ours, the provider reports the sum of the charge's refunds as Stripe does: late, now and
 * then twice, out of order, or never. The desks' purchases are concerned.
 */
import type { RefundStarted } from '../../../src/domain/purchase/refund.js';
import { idOf } from '../../../src/domain/streamName.js';
import { sleep } from '../../../src/lib/world.js';
import type { ChargeReply } from '../../../src/messages/payments.js';
import { CHARGE_PREFIX, PROVIDER } from '../../../src/providers/payments/simulated.js';
import { refunded, signed } from '../../support/providers/stripeWebhooks.js';
import type { StoredEvent } from '../engines/eventLog.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';
import { BY_HAND_PREFIX, entriesOf, givenBack } from '../service/paymentAccount.js';
import { perform } from '../world/simulatedWorld.js';
import { openClient } from './client.js';

export interface Dashboard {
  /** Lets people act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Reports the last sum of each charge, where no report of it was taken. To be called once nothing fails any more. */
  finish(): Promise<void>;
  /** The service was restored from a backup: it knows nothing of later reports. */
  forgetSince(): void;
}

/** Share of runs in which money is given back by hand. */
const PROBABILITY = 0.5;
const PAUSE = { least: 500, most: 5_000 };
const REPORTS = [0, 1, 1, 2];
const REPORT_MS = { least: 1, most: 4_000 };
/** Share of a charge that a person gives back: of one gift, or a half of it. */
const PARTS = [1, 1, 0.5];
/** Pence of a desk's gifts. */
const PRICES = [350, 400];
/** Share of our refunds that a person overtakes: all that is left is given back before the provider gets ours. */
const OVERTAKEN = 0.3;
const AGAIN_MS = 1_000;
const WITHIN_MS = 600_000;

/**
 * @param bought ids of the transactions whose money may be given back, as far as they are known
 * @param times how much faster people act than is usual
 */
export function openDashboard(
  cluster: Cluster,
  members: readonly Member[],
  { bought, times }: { readonly bought: () => readonly string[]; readonly times: number },
): Dashboard {
  const { simulation, ledger } = cluster;
  const client = openClient(simulation, { name: 'dashboard', members });
  const { chance, process } = client;
  const happensHere = chance.happens(PROBABILITY);
  /** Sums that were reported last, by transaction. */
  const reported = new Map<string, number>();
  /** The greatest sum of which a report was answered 200, by transaction. */
  const taken = new Map<string, number>();
  let number = 0;

  const charges = (): Charge[] =>
    entriesOf<ChargeReply>(ledger, CHARGE_PREFIX).flatMap(([transaction, { outcome, amount = 0 }]) =>
      outcome === 'charged' && amount > 0 ? [{ transaction, amount }] : [],
    );

  async function report({ transaction, amount }: Charge, total: number, id: string): Promise<void> {
    const intent = { id: `ch_${PROVIDER}_${transaction}`, amount, metadata: { transaction_id: transaction } };
    const message = refunded({ ...intent, latest_charge: null }, total, id);
    const { headers } = signed(message, cluster.stripeSecret);
    const answer = await client.send({ method: 'POST', path: '/webhooks/stripe', headers, body: message });
    if (answer?.status !== 200) return;
    taken.set(transaction, Math.max(total, taken.get(transaction) ?? 0));
  }

  /** Reports the sums that are new: each report has the sum of its moment, whenever it comes. */
  function reportNew(): void {
    for (const charge of charges()) {
      const total = givenBack(ledger, charge.transaction);
      if (total === (reported.get(charge.transaction) ?? 0)) continue;
      reported.set(charge.transaction, total);
      for (let count = chance.pick(REPORTS); count > 0; count--) {
        const inMs = chance.between(REPORT_MS.least, REPORT_MS.most);
        process.start('report', async () => {
          await sleep(inMs);
          await report(charge, total, `evt_${charge.transaction}_${total}`);
        });
      }
    }
  }

  const ownCharges = (): Charge[] => {
    const own = bought();
    return charges().filter(({ transaction }) => own.includes(transaction));
  };

  function giveBack(): void {
    const open = ownCharges();
    if (open.length === 0) return;
    const { transaction, amount } = chance.pick(open);
    const left = amount - givenBack(ledger, transaction);
    const pence = chance.happens(0.2) ? left : Math.floor(chance.pick(PRICES) * chance.pick(PARTS));
    if (left > 0) put(transaction, Math.min(left, pence));
  }

  function put(transaction: string, amount: number): void {
    const at = simulation.now();
    const entry = { amount, transaction_id: transaction, at };
    ledger.put(`${BY_HAND_PREFIX}${transaction}/${++number}`, JSON.stringify(entry), {}, at);
    simulation.marks.sometimes('money is given back by hand');
  }

  /**
   * Gives back all that is left while a refund of ours is on its way, which is then refused, and whose answer is lost.
   * Until it is known, reports of the sum count ours.
   */
  function overtake({ stream, type, data }: StoredEvent): void {
    if (type !== 'RefundStarted' || !process.alive) return;
    const { refund_id } = JSON.parse(data) as RefundStarted['data'];
    const charge = ownCharges().find(({ transaction }) => transaction === idOf(stream));
    if (charge === undefined || !chance.happens(OVERTAKEN)) return;
    const left = charge.amount - givenBack(ledger, charge.transaction);
    if (left <= 0) return;
    simulation.faults.aim('provider loses an answer', new RegExp(` put refund/${refund_id}/`));
    put(charge.transaction, left);
    simulation.marks.sometimes('money is given back by hand before a refund arrives');
    reportNew();
  }

  return {
    start(untilMs) {
      if (!happensHere) return;
      const { log } = cluster;
      const unwatch = log.watch(() => {
        const last = log.stored.at(-1);
        if (simulation.ms() >= untilMs) unwatch();
        else if (last !== undefined) overtake(last);
      });
      process.start('acting', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(chance.between(PAUSE.least, PAUSE.most) / times);
          giveBack();
          reportNew();
        }
      });
    },
    forgetSince: taken.clear.bind(taken),
    async finish() {
      if (!happensHere) return;
      const run = async (): Promise<void> => {
        for (const charge of charges()) {
          const total = givenBack(ledger, charge.transaction);
          for (; total > (taken.get(charge.transaction) ?? 0); await sleep(AGAIN_MS))
            await report(charge, total, `evt_${charge.transaction}_${total}`);
        }
      };
      await perform(simulation, process, 'report all refunds', run, WITHIN_MS);
    },
  };
}

interface Charge {
  readonly transaction: string;
  readonly amount: number;
}
