/**
 * Purchases settled end to end: bought over HTTP, charged, the gift issued, its receiver told, with 1, 16 and 64
 * clients at once, on the embedded engines with simulated providers, which answer at once. The time to the notification
 * runs from sending the request, as the client sees it, to the provider's answer that the receiver was told, as the log
 * has it (milliseconds). `--profile=DIR` writes a CPU profile of the service.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openEmbeddedEventStore } from '../src/adapters/embedded/eventStore/eventStore.js';
import { buyer, importCatalogue, purchaseOf, scratch, tokensOf } from './support/data.js';
import { load, type SentRequest } from './support/load.js';
import { median, table } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, profile: { type: 'string' } } });
const ROUNDS = Number(values.rounds);
/** Purchases a round, by how many clients. */
const LOADS = [
  { clients: 1, amount: 400 },
  { clients: 16, amount: 3_000 },
  { clients: 64, amount: 4_000 },
] as const;
const SETTLE_MS = 60_000;

const dir = scratch('purchase');
importCatalogue(dir);
const service = await startService(dir, values.profile === undefined ? {} : { profile: values.profile });
const events = await openEmbeddedEventStore({ dir });
const tokens = await tokensOf(service.url, [buyer.username]);
const headers = { 'Content-Type': 'application/json' };
const requests = join(dir, 'purchases.jsonl');
const sentFile = join(dir, 'sent.jsonl');
writeFileSync(
  requests,
  Array.from({ length: Math.max(...LOADS.map(({ amount }) => amount)) }, (_, n) =>
    JSON.stringify(purchaseOf(n, tokens)),
  ).join('\n'),
);

interface Round {
  readonly perSecond: number;
  /** Of the HTTP answer, which comes once the charge has settled. */
  readonly answer50: number;
  readonly told50: number;
  readonly told99: number;
  readonly clients: number;
}

/** When each transaction's receiver was told, from a position of the log on, once all of them are. */
async function toldSince(from: string | undefined, amount: number): Promise<ReadonlyMap<string, number>> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const transactions = new Map<string, string>();
    const told = new Map<string, number>();
    for await (const batch of events.readAll(from, { types: ['NotificationStarted', 'NotificationSent'] })) {
      for (const { type, stream, data, at } of batch.events) {
        if (type === 'NotificationStarted')
          transactions.set(stream, (data as { transaction_id: string }).transaction_id);
        else told.set(transactions.get(stream) ?? '', Date.parse(at));
      }
    }
    if (told.size === amount) return told;
    if (performance.now() > deadline) throw new Error(`${told.size} of ${amount} receivers were told`);
    await wait(100);
  }
}

async function round(clients: number, amount: number): Promise<Round> {
  const from = await events.end();
  const plan = {
    url: service.url,
    method: 'POST',
    connections: clients,
    requests,
    pick: { kind: 'once', skip: 0, amount },
    headers,
    expect: 201,
    sent: sentFile,
  } as const;
  const result = await load(plan);
  const told = await toldSince(from, amount);
  const sent = readFileSync(sentFile, 'utf8')
    .split('\n')
    .map((line) => JSON.parse(line) as SentRequest);
  const times = sent
    .map(({ at, location }) => (told.get(location.split('/').at(-2) ?? '') ?? Number.NaN) - at)
    .sort((one, other) => one - other);
  if (times.some(Number.isNaN)) throw new Error('a purchase was not told of');
  const began = Math.min(...sent.map(({ at }) => at));
  const seconds = (Math.max(...told.values()) - began) / 1000;
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
  return {
    perSecond: amount / seconds,
    answer50: result.p50,
    told50: at(0.5),
    told99: at(0.99),
    clients: result.clients,
  };
}

await round(16, 1_000);
const rows: Record<string, string | number>[] = [];
for (const { clients, amount } of LOADS) {
  const rounds: Round[] = [];
  for (let n = 0; n < ROUNDS; n++) rounds.push(await round(clients, amount));
  const of = (figure: keyof Round): number => median(rounds.map((one) => one[figure]));
  rows.push({
    clients: String(clients),
    'purchases/s': of('perSecond'),
    'answered p50 ms': of('answer50'),
    'told p50 ms': of('told50'),
    'told p99 ms': of('told99'),
    'clients busy': of('clients'),
  });
}
await events.close();
await service.stop();
rmSync(dir, { recursive: true });

console.log('purchases of one gift, settled end to end: charged, issued, the receiver told; median of rounds');
table(rows);
