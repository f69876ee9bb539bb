/**
 * Throughput and latency of look-ups and redemptions (nine to one) against the rate at which they come, up to twice
 * what the service can do, and at half of it once more afterwards. Writes `bench/results/overload.md` and `overload.svg`.
 * `--seconds=N`: how long each rate lasts.
 */
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { historyOf, lookUpOf, redemptionOf, scratch, tills, tokensOf } from './support/data.js';
import type { HistoryGift } from './support/history.js';
import { load, type LoadRequest } from './support/load.js';
import { openLoad, type OpenLoadResult } from './support/openLoad.js';
import { table, verdict } from './support/report.js';
import { writeResults } from './support/results.js';
import { atRest, startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    gifts: { type: 'string', default: '150000' },
  },
});
const SECONDS = Number(values.seconds);
const SHARES = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 0.5];
const CONNECTIONS = 2_000;
/** Share of the requests. */
const REDEMPTIONS = 0.1;
/** Clients that make the service busy, and never wait for long. */
const FEW = 16;
const ROUNDS = 3;
/** A look-up is of another part of the history than the one before. */
const STRIDE = 7_919;

const { dir: made, gifts } = historyOf(Number(values.gifts));
const dir = scratch('overload');
cpSync(made, dir, { recursive: true });
const server = await startService(dir, { settings: { REQUEST_WAIT_MS: '100' } });
const tokens = await tokensOf(server.url, tills);
await atRest(server);

const json = { 'Content-Type': 'application/json' };
const issued = gifts.filter(({ status }) => status === 'issued');
let [lookedUp, redeemed] = [0, 0];
const nextLookUp = (): LoadRequest => lookUpOf(gifts[(lookedUp++ * STRIDE) % gifts.length] as HistoryGift, tokens);
function nextRedemption(): LoadRequest {
  const gift = issued[redeemed++];
  if (gift === undefined) throw new Error('too few gifts to redeem: --gifts takes more');
  const request = redemptionOf(gift, tokens);
  return { ...request, headers: { ...json, ...request.headers } };
}

function fileOf(amount: number, request: (n: number) => LoadRequest): string {
  const file = join(dir, 'bench-requests.jsonl');
  writeFileSync(file, Array.from({ length: amount }, (_, n) => JSON.stringify(request(n))).join('\n'));
  return file;
}

/** Requests a second that a few clients get answered, each with one request at a time. */
async function rateOfAll(amount: number, expect: number, request: () => LoadRequest): Promise<number> {
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const pick = { kind: 'once', skip: 0, amount } as const;
    const plan = { url: server.url, connections: FEW, requests: fileOf(amount, request), pick, expect };
    rates.push((await load({ ...plan, method: expect === 201 ? 'POST' : 'GET' })).perSecond);
  }
  return Math.max(...rates);
}

const lookUps = await rateOfAll(20_000, 200, nextLookUp);
const redemptions = await rateOfAll(2_000, 201, nextRedemption);
const capacity = 1 / ((1 - REDEMPTIONS) / lookUps + REDEMPTIONS / redemptions);

const found: OpenLoadResult[] = [];
for (const share of SHARES) {
  const perSecond = capacity * share;
  const requests = fileOf(Math.ceil(perSecond * SECONDS), (n) =>
    n % (1 / REDEMPTIONS) === 0 ? nextRedemption() : nextLookUp(),
  );
  found.push(await openLoad({ url: server.url, requests, perSecond, connections: CONNECTIONS }));
}
await server.stop();
rmSync(dir, { recursive: true });

const rows = found.map(({ accepted, shed, others, clients }, index) => ({
  'offered/s': Math.round(capacity * (SHARES[index] ?? 0)),
  'of capacity': SHARES[index] ?? 0,
  'accepted/s': accepted.answers / SECONDS,
  'p50 ms': accepted.p50,
  'p99 ms': accepted.p99,
  'shed/s': shed.answers / SECONDS,
  'p99 of shed ms': shed.answers === 0 ? '' : shed.p99,
  'other answers': Object.entries(others)
    .map(([what, count]) => `${what}: ${count}`)
    .join(', '),
  'clients busy': clients,
}));
table(rows);

const rising = found.slice(0, -1);
writeResults('overload', {
  title: 'Overload',
  about: [
    'Nine look-ups to one redemption, at a steady rate, whether earlier ones are answered or not. A latency counts from when',
    'its request was due. The last line comes right after the line of twice the capacity.',
  ].join('\n'),
  rows,
  xs: rising.map((_, index) => capacity * (SHARES[index] ?? 0)),
  charts: [
    {
      title: 'Answers a second, by requests a second',
      lines: { offered: rising.map(({ sent }) => sent / SECONDS), accepted: rising.map(rateOf) },
    },
    {
      title: 'Latency of accepted requests, ms, by requests a second',
      lines: { p50: rising.map(({ accepted }) => accepted.p50), p99: rising.map(({ accepted }) => accepted.p99) },
    },
  ],
});
function rateOf({ accepted }: OpenLoadResult): number {
  return accepted.answers / SECONDS;
}

const most = Math.max(...rising.map(rateOf));
const twice = rising.at(-1) as OpenLoadResult;
const afterwards = found.at(-1) as OpenLoadResult;
verdict('accepted at twice the capacity, of the most', rateOf(twice) / most, { atLeast: 0.8 });
verdict(
  'p99 of accepted requests at worst',
  Math.max(...found.map(({ accepted }) => accepted.p99)),
  { atMost: 250 },
  ' ms',
);
verdict('p99 of shed requests at worst', Math.max(...found.map(({ shed }) => shed.p99)), { atMost: 50 }, ' ms');
verdict(
  'shed without Retry-After',
  found.reduce((sum, one) => sum + one.withoutRetryAfter, 0),
  { atMost: 0 },
);
verdict('shed afterwards, at half the capacity', afterwards.shed.answers / afterwards.sent, { atMost: 0.001 });
