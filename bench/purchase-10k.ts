/**
 * Buying 10,000 gifts at once: how long the buyer waits, and how long the service's event loop is held up meanwhile
 * (perf_hooks) and until every receiver has been told. The simulated card processor answers at once, so all of the time
 * is the service's own. `--profile=DIR` writes a CPU profile of the service.
 */
import { rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { buyer, importCatalogue, scratch, tokensOf } from './support/data.js';
import { table, verdict } from './support/report.js';
import { type Server, startService } from './support/server.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, profile: { type: 'string' } } });
const RECEIVERS = 10_000;
/**
 * The service is done with a purchase when for a second it uses no more of a processor than it did before the first
 * one, and this share.
 */
const IDLE_SHARE = 0.03;
/** Seconds for which it is watched at the start. */
const WATCHED = 5;

const dir = scratch('purchase');
importCatalogue(dir);
const service = await startService(dir, values.profile === undefined ? {} : { profile: values.profile });
const token = (await tokensOf(service.url, [buyer.username])).get(buyer.username) ?? '';

const receivers = Array.from({ length: RECEIVERS }, (_, n) =>
  n % 2 === 0 ? { phone_number: `07400 1${String(n).padStart(5, '0')}` } : { user_id: `u${n % 1000}` },
);
const body = JSON.stringify({
  payment: { method: 'card', reference: buyer.card },
  purchase: {
    type: 'gift',
    reference: 'p1',
    message: 'Thank you for all you have done this year. Have one on us!',
    receivers,
  },
});

/** The share of one processor that the server uses for a second. */
async function share(server: Server): Promise<number> {
  const before = server.cpuSeconds();
  await wait(1_000);
  return server.cpuSeconds() - before;
}

let least = 1;
for (let second = 0; second < WATCHED; second++) least = Math.min(least, await share(service));

/** @returns seconds until the service had nothing more to do. */
async function idle(server: Server): Promise<number> {
  const began = performance.now();
  while ((await share(server)) > least + IDLE_SHARE);
  return (performance.now() - began) / 1000 - 1;
}

const rounds: { answer: number; size: number; meanwhile: number; after: number; told: number }[] = [];
for (let n = 0; n < Number(values.rounds); n++) {
  await service.loopDelay();
  const began = performance.now();
  const response = await fetch(`${service.url}/api/v2/transactions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body,
  });
  const text = await response.text();
  const answer = performance.now() - began;
  if (response.status !== 201)
    throw new Error(`the purchase was answered with ${response.status}: ${text.slice(0, 500)}`);
  const meanwhile = await service.loopDelay();
  const told = await idle(service);
  rounds.push({ answer: answer / 1000, size: text.length, meanwhile, after: await service.loopDelay(), told });
}
await service.stop();
rmSync(dir, { recursive: true });

console.log(`a purchase with ${RECEIVERS.toLocaleString('en')} receivers, half phone numbers, half users`);
table(
  rounds.map(({ answer, size, meanwhile, after, told }, n) => ({
    purchase: String(n + 1),
    'answered after s': answer,
    'answer KB': size / 1000,
    'loop held up meanwhile ms': meanwhile,
    'all told after s': told,
    'loop held up until then ms': after,
  })),
);
verdict('slowest answer', Math.max(...rounds.map(({ answer }) => answer)), { atMost: 3 }, ' s');
verdict(
  'longest hold of the event loop, answering',
  Math.max(...rounds.map(({ meanwhile }) => meanwhile)),
  { atMost: 50 },
  ' ms',
);
verdict(
  'longest hold of the event loop, telling',
  Math.max(...rounds.map(({ after }) => after)),
  { atMost: 50 },
  ' ms',
);
