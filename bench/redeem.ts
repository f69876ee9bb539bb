/**
 * Redeeming distinct gifts, durable before 201, with 64 clients at once, against an ordinary CRUD version of the same.
 * Each gift is redeemed once, by a till of a merchant that it is valid for. Both servers hold the same gifts and are
 * asked to redeem the same ones in the same order; both keep their files in the same place. Rounds of both alternate
 * and the median round counts, after some that don't: the engine compiles either server's code meanwhile. `--clients=1`
 * measures one till, or as many as are named; `--profile=DIR` writes a CPU profile of the service. `--margin=N` holds
 * processor time alone, and allows N times as much: for machines with other work, as in CI.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { historyOf, redemptionOf, tills, tokensOf } from './support/data.js';
import { type MeasuredLoad, measuredLoad } from './support/load.js';
import { median, table, verdict } from './support/report.js';
import { type Server, startBaseline, startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    amount: { type: 'string', default: '8000' },
    clients: { type: 'string', default: '64' },
    profile: { type: 'string' },
    margin: { type: 'string' },
  },
});
const CONNECTIONS = Number(values.clients);
const ROUNDS = Number(values.rounds);
const AMOUNT = Number(values.amount);
/** Rounds before those that count. */
const WARM_ROUNDS = 3;

const data = historyOf(Math.ceil((ROUNDS + WARM_ROUNDS) * AMOUNT * 2.2), { fresh: true });
const { dir } = data;
const unredeemed = data.gifts.filter(({ status }) => status === 'issued').slice(0, (ROUNDS + WARM_ROUNDS) * AMOUNT);

// The history is folded first: that is another bench's subject.
await startService(dir).then((first) => first.stop());
const service = await startService(dir, values.profile === undefined ? {} : { profile: values.profile });
const tokens = await tokensOf(service.url, tills);
const json = { 'Content-Type': 'application/json' };
const ours = join(dir, 'redeem.jsonl');
const theirs = join(dir, 'crud.jsonl');
const lines = unredeemed.map((gift) => {
  const { path, headers, body } = redemptionOf(gift, tokens);
  return { ours: JSON.stringify({ path, headers, body }), theirs: JSON.stringify({ path, body }) };
});
writeFileSync(ours, lines.map((line) => line.ours).join('\n'));
writeFileSync(theirs, lines.map((line) => line.theirs).join('\n'));
const ids = join(dir, 'crud-gifts.txt');
writeFileSync(ids, data.gifts.map(({ id }) => id).join('\n'));
const crud = await startBaseline('crud', dir, { DATABASE: join(dir, 'crud.db'), GIFTS: ids });

/** The median of some, in microseconds: the longer the disk takes, the more it counts that many requests share one. */
function syncToDisk(): number {
  const file = openSync(join(dir, 'sync'), 'w');
  const page = Buffer.alloc(4_096, 1);
  const once = (): number => {
    // In place, as a write-ahead log is written from its second time round on.
    writeSync(file, page, 0, page.length, 0);
    const began = performance.now();
    fdatasyncSync(file);
    return (performance.now() - began) * 1_000;
  };
  const took = median(Array.from({ length: 500 }, once));
  closeSync(file);
  return took;
}

async function round(server: Server, requests: string, index: number): Promise<MeasuredLoad> {
  const pick = { kind: 'once', skip: index * AMOUNT, amount: AMOUNT } as const;
  return measuredLoad(server, {
    method: 'POST',
    connections: CONNECTIONS,
    requests,
    pick,
    headers: json,
    expect: 201,
  });
}

const sync = syncToDisk();
const rounds: { crud: MeasuredLoad; service: MeasuredLoad }[] = [];
for (let n = 0; n < WARM_ROUNDS + ROUNDS; n++)
  rounds.push({ crud: await round(crud, theirs, n), service: await round(service, ours, n) });
rounds.splice(0, WARM_ROUNDS);
await Promise.all([service.stop(), crud.stop()]);
rmSync(dir, { recursive: true });

const row = (name: string, key: 'crud' | 'service'): Record<string, string | number> => {
  const of = (figure: keyof MeasuredLoad): number => median(rounds.map((one) => one[key][figure]));
  return {
    server: name,
    'redeems/s': of('perSecond'),
    'p50 ms': of('p50'),
    'p99 ms': of('p99'),
    'CPU µs/request': of('cpu'),
    'clients busy': of('clients'),
  };
};
console.log(
  `${AMOUNT.toLocaleString('en')} redeems a round, ${CONNECTIONS} clients, every one on disk before its 201; the disk takes ${sync.toFixed(0)} µs to sync 4 kB`,
);
table([row('CRUD on one SQLite table', 'crud'), row('gift commerce', 'service')]);
if (values.margin === undefined)
  verdict('times what CRUD does', median(rounds.map((one) => one.service.perSecond / one.crud.perSecond)), {
    atLeast: 2,
  });
verdict('times the processor time of CRUD', median(rounds.map((one) => one.service.cpu / one.crud.cpu)), {
  atMost: 1.25 * Number(values.margin ?? 1),
});
