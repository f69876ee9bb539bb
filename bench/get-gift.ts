/**
 * Looking gifts up, picked at random out of 1,000,000, against a bare Koa server that sends a constant of the same
 * size. `GET /api/v2/gifts/{id}` with a till's token, no embeds, 64 clients; rounds of both servers alternate and the
 * median round counts. `--gifts=N` measures with another number of gifts, `--seconds=N` for so long a round,
 * `--profile=DIR` writes a CPU profile of the service. `--margin=N` holds processor time alone, and allows N times as
 * much: for machines with other work, as in CI.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { historyOf, lookUpOf, scratch, tills, tokensOf } from './support/data.js';
import type { HistoryGift } from './support/history.js';
import { type LoadRequest, type MeasuredLoad, measuredLoad } from './support/load.js';
import { median, table, verdict } from './support/report.js';
import { type Server, startBaseline, startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    gifts: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    profile: { type: 'string' },
    margin: { type: 'string' },
  },
});
const CONNECTIONS = 64;
const SECONDS = Number(values.seconds);
const REQUESTS = 300_000;

const data = historyOf(Number(values.gifts));
const dir = scratch('get-gift');
const requests = join(dir, 'requests.jsonl');
const service = await startService(data.dir, values.profile === undefined ? {} : { profile: values.profile });
const tokens = await tokensOf(service.url, tills);
const any = (): LoadRequest =>
  lookUpOf(data.gifts[Math.floor(Math.random() * data.gifts.length)] as HistoryGift, tokens);
writeFileSync(
  requests,
  Array.from({ length: Math.min(REQUESTS, data.gifts.length) }, () => JSON.stringify(any())).join('\n'),
);
const { path, headers = {} } = any();
const example = await fetch(service.url + path, { headers });
const bytes = (await example.arrayBuffer()).byteLength;
const bare = await startBaseline('bareKoa', dir, { BYTES: String(bytes) });

async function round(server: Server): Promise<MeasuredLoad> {
  return measuredLoad(server, {
    method: 'GET',
    connections: CONNECTIONS,
    requests,
    pick: { kind: 'random', seconds: SECONDS },
    expect: 200,
  });
}

await round(bare);
await round(service);
const rounds: { bare: MeasuredLoad; service: MeasuredLoad }[] = [];
for (let n = 0; n < Number(values.rounds); n++) rounds.push({ bare: await round(bare), service: await round(service) });
const resident = service.residentMb();
await Promise.all([service.stop(), bare.stop()]);
rmSync(dir, { recursive: true });

const row = (name: string, key: 'bare' | 'service'): Record<string, string | number> => {
  const of = (figure: keyof MeasuredLoad): number => median(rounds.map((one) => one[key][figure]));
  return {
    server: name,
    'requests/s': of('perSecond'),
    'p50 ms': of('p50'),
    'p99 ms': of('p99'),
    'CPU µs/request': of('cpu'),
    'clients busy': of('clients'),
  };
};
console.log(
  `${data.gifts.length.toLocaleString('en')} gifts, ${CONNECTIONS} clients, answers of ${bytes} bytes, service at ${Math.round(resident)} MB`,
);
table([row('bare Koa, constant answer', 'bare'), row('gift commerce', 'service')]);
if (values.margin === undefined)
  verdict('of what bare Koa does', median(rounds.map((one) => one.service.perSecond / one.bare.perSecond)), {
    atLeast: 0.6,
  });
verdict('times the processor time of bare Koa', median(rounds.map((one) => one.service.cpu / one.bare.cpu)), {
  atMost: 3.5 * Number(values.margin ?? 1),
});
