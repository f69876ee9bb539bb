/**
 * Resident memory of the whole service with 1,000,000 gifts, after start and after looking gifts up at random and
 * listing the catalogue for a while; and how long opening a data folder of that size takes, from starting the process
 * until it is ready; and the bytes of its files, from which docs/deployment.md has its sizes. `--gifts=N` measures with
 * another number of gifts.
 */
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { historyOf, lookUpOf, scratch, tills, tokensOf } from './support/data.js';
import { load } from './support/load.js';
import { median, table, verdict } from './support/report.js';
import { startBaseline, startService } from './support/server.js';

const { values } = parseArgs({
  options: { gifts: { type: 'string', default: '1000000' }, seconds: { type: 'string', default: '15' } },
});
const STARTS = 5;
/** All is folded once a tenth of a processor is not used in so many seconds. */
const REST_SECONDS = 3;

const data = historyOf(Number(values.gifts));
const dir = scratch('memory');
const requests = join(dir, 'requests.jsonl');

// Whatever was never folded is folded now, which is another bench's subject, and the tree is built.
const first = await startService(data.dir);
for (let used = -1, before = 0; used < 0 || used > REST_SECONDS / 10; used = first.cpuSeconds() - before) {
  before = first.cpuSeconds();
  await wait(REST_SECONDS * 1_000);
}
await first.stop();
const starts: number[] = [];
for (let n = 1; n < STARTS; n++) {
  const again = await startService(data.dir);
  starts.push(again.readyMs);
  await again.stop();
}
// What starting Node takes by itself, to see how much of it is ours.
const bare = await startBaseline('bareKoa', dir, { BYTES: '1000' });
await bare.stop();
const service = await startService(data.dir);
starts.push(service.readyMs);
const atStart = service.residentMb();
const tokens = await tokensOf(service.url, tills);
writeFileSync(
  requests,
  data.gifts
    .slice(0, 300_000)
    .map((gift) => JSON.stringify(lookUpOf(gift, tokens)))
    .join('\n'),
);
const headers = { Authorization: `Bearer ${tokens.get(tills[0] ?? '') ?? ''}` };
let most = atStart;
const watching = setInterval(() => (most = Math.max(most, service.residentMb())), 200);
const read = await load({
  url: service.url,
  method: 'GET',
  connections: 64,
  requests,
  pick: { kind: 'random', seconds: Number(values.seconds) },
  expect: 200,
});
for (const path of [
  '/api/v2/products?embed[]=brand',
  '/api/v2/brands?embed[]=stores',
  '/api/v2/product-tags/categories',
])
  await (await fetch(service.url + path, { headers })).text();
clearInterval(watching);
const after = service.residentMb();
await service.stop();
rmSync(dir, { recursive: true });

console.log(
  `${data.gifts.length.toLocaleString('en')} gifts, ${data.events.toLocaleString('en')} events, all roles in one process`,
);
table([
  { figure: 'opening, median s', value: median(starts) / 1000 },
  { figure: 'opening, slowest s', value: Math.max(...starts) / 1000 },
  { figure: 'of that a bare Koa server, s', value: bare.startMs / 1000 },
  { figure: 'resident at start, MB', value: atStart },
  { figure: `resident after ${read.requests.toLocaleString('en')} look-ups, MB`, value: after },
  { figure: 'most in between, MB', value: most },
]);
const bytes = new Map<string, number>();
for (const entry of readdirSync(data.dir, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name);
  const [first = ''] = file.slice(data.dir.length + 1).split('/');
  const part = first.replace(/-(wal|shm)$/, '');
  if (entry.isFile() && !part.startsWith('bench-')) bytes.set(part, (bytes.get(part) ?? 0) + statSync(file).size);
}
table(
  [...bytes]
    .filter(([, size]) => size >= 1e6)
    .map(([part, size]) => ({ 'on disk': part, MB: size / 1e6, 'bytes a gift': size / data.gifts.length })),
);
verdict('opening', median(starts) / 1000, { atMost: 1 }, ' s');
verdict('most resident memory', most, { atMost: 400 }, ' MB');
