/**
 * What encryption costs a purchase for 10,000 numbers and a refund of its gifts: seconds, and rows of the key store. Half
 * the numbers are new; the refund's reason is support's. `--rounds=N` purchases.
 */
import { rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openEmbeddedKeyStore } from '../src/adapters/embedded/keyStore/keyStore.js';
import { startCommand } from './support/command.js';
import { buyer, importCatalogue, scratch, tokensOf } from './support/data.js';
import { table, verdict } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
const RECEIVERS = 10_000;
const PAGE = 1_000;

const dir = scratch('keys');
importCatalogue(dir);
const service = await startService(dir);
const token = (await tokensOf(service.url, [buyer.username])).get(buyer.username) ?? '';

async function rows(): Promise<number> {
  const keys = await openEmbeddedKeyStore({ dir });
  let count = 0;
  for (let after: string | undefined; ;) {
    const page = await keys.page(after, PAGE);
    count += page.length;
    after = page.at(-1)?.id;
    if (after === undefined) break;
  }
  await keys.close();
  return count;
}

async function notified(id: string): Promise<boolean> {
  const response = await fetch(`${service.url}/api/v2/gifts/${id}`, { headers: { Authorization: `Bearer ${token}` } });
  const { data } = (await response.json()) as { readonly data?: { readonly gift_status: string } };
  return data?.gift_status === 'sent';
}

const rounds: { bought: number; cpu: number; boughtRows: number; refunded: number; refundedRows: number }[] = [];
for (let round = 0; round < Number(values.rounds); round++) {
  const receivers = Array.from({ length: RECEIVERS }, (_, n) => ({
    phone_number: `07400 1${String(n + (round * RECEIVERS) / 2).padStart(5, '0')}`,
  }));
  const before = await rows();
  const usedBefore = service.cpuSeconds();
  let began = performance.now();
  const response = await fetch(`${service.url}/api/v2/transactions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      payment: { method: 'card', reference: buyer.card },
      purchase: { type: 'gift', reference: 'p1', message: 'Have one on us!', receivers },
    }),
  });
  const bought = (performance.now() - began) / 1000;
  const cpu = service.cpuSeconds() - usedBefore;
  const { data } = (await response.json()) as {
    readonly data: { readonly id: string; readonly gifts: readonly string[] };
  };
  if (response.status !== 201) throw new Error(`the purchase was answered with ${response.status}`);
  const boughtRows = (await rows()) - before;
  while (!(await notified(data.gifts.at(-1) ?? ''))) await wait(200);
  began = performance.now();
  const refund = startCommand(dir, [
    'purchases',
    'refund',
    data.id,
    '--reason',
    'the event is off',
    '--wait',
    '600',
    '--json',
  ]);
  await refund.ended;
  const refunded = (performance.now() - began) / 1000;
  rounds.push({ bought, cpu, boughtRows, refunded, refundedRows: (await rows()) - before - boughtRows });
}
await service.stop();
rmSync(dir, { recursive: true });

console.log(`purchases for ${RECEIVERS.toLocaleString('en')} numbers, and refunds of all their gifts`);
table(
  rounds.map(({ bought, cpu, boughtRows, refunded, refundedRows }, n) => ({
    purchase: String(n + 1),
    'answered after s': bought,
    'of a processor s': cpu,
    'rows added': boughtRows,
    'refunded after s': refunded,
    'rows added by the refund': refundedRows,
  })),
);
verdict('slowest purchase', Math.max(...rounds.map(({ bought }) => bought)), { atMost: 3 }, ' s');
verdict('rows that a refund adds', Math.max(...rounds.map(({ refundedRows }) => refundedRows)), { atMost: 1 });
