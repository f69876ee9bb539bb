/**
 * The bank of buyers whose cards want proof of identity (docs/payments.md): each proves it or fails to, at any time, and
 * the provider reports the outcome as Stripe does, once or twice, or loses the report. Without one the service polls.
 */
import { sleep } from '../../../src/lib/world.js';
import type { AuthenticationReply } from '../../../src/messages/payments.js';
import { CHARGE_PREFIX, type SimulatedEntry, simulatedPayments } from '../../../src/providers/payments/simulated.js';
import { paymentFailed, signed, succeeded } from '../../support/providers/stripeWebhooks.js';
import { openSimulatedRecords } from '../engines/records.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';
import { entriesOf } from '../service/paymentAccount.js';
import { openClient } from './client.js';

const PAUSE = { least: 100, most: 4_000 };
/** Share of the waiting payments that are decided at each look. */
const DECIDED = 0.6;
const PROVED = 0.7;
const REPORTS = [0, 1, 1, 2];
const REPORT_MS = { least: 1, most: 3_000 };

/** A bank, which decides until the virtual time that it is started until. */
export function openBank(cluster: Cluster, members: readonly Member[]): { start(untilMs: number): void } {
  const { simulation, ledger } = cluster;
  const client = openClient(simulation, { name: 'bank', members });
  const { chance, process } = client;
  const payments = simulatedPayments(openSimulatedRecords(ledger), simulation.now);

  async function decide(transaction: string, { payment_id: id, amount = 0 }: Waiting): Promise<void> {
    const outcome = await payments.authenticate(transaction, chance.happens(PROVED));
    if (outcome === undefined) return;
    const charged = outcome.outcome === 'charged';
    simulation.marks.sometimes(`a bank's proof of identity ${charged ? 'succeeds' : 'fails'}`);
    const payment = { id, amount, metadata: { transaction_id: transaction } };
    const eventId = `evt_${id}`;
    const message = charged ? succeeded(payment, eventId) : paymentFailed(payment, outcome.code, eventId);
    for (let times = chance.pick(REPORTS); times > 0; times--) {
      const inMs = chance.between(REPORT_MS.least, REPORT_MS.most);
      process.start('report', async () => {
        await sleep(inMs);
        const { headers } = signed(message, cluster.stripeSecret);
        const answer = await client.send({ method: 'POST', path: '/webhooks/stripe', headers, body: message });
        simulation.marks.sometimes(`a bank's report is answered ${answer?.status ?? 'never'}`);
      });
    }
  }

  const waiting = (): [transaction: string, Waiting][] =>
    entriesOf<AuthenticationReply>(ledger, CHARGE_PREFIX).filter(([, { outcome }]) => outcome === 'authentication');

  return {
    start(untilMs) {
      process.start('bank', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(chance.between(PAUSE.least, PAUSE.most));
          for (const [transaction, payment] of waiting())
            if (chance.happens(DECIDED)) await decide(transaction, payment);
        }
      });
    },
  };
}

type Waiting = SimulatedEntry<AuthenticationReply>;
