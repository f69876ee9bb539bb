/**
 * Look-ups and redemptions of several processes behind one port (`PROCESSES`), against one process. Each side has a
 * data folder of its own with the same history, and is asked for the same gifts by 64 clients; rounds of both
 * alternate, and who goes first. `--processes=N` is how many (2), `--clients=N` how many clients. The load takes some
 * 0.3 of a processor for each that serves, so the bar for look-ups counts only where processors are left for it; the
 * processor time of a request tells what there would be without the load.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { historyOf, lookUpOf, redemptionOf, tills, tokensOf } from './support/data.js';
import { type MeasuredLoad, measuredLoad } from './support/load.js';
import { median, table, verdict } from './support/report.js';
import { type Server, startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    processes: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    amount: { type: 'string', default: '8000' },
    clients: { type: 'string', default: '64' },
  },
});
const PROCESSES = Number(values.processes);
const ROUNDS = Number(values.rounds);
const AMOUNT = Number(values.amount);
/** Rounds before those that count: the engine compiles the code in them. */
const WARM_ROUNDS = 2;

type Kind = 'look-up' | 'redemption';
const KINDS: readonly Kind[] = ['look-up', 'redemption'];

interface Side {
  readonly processes: number;
  readonly dir: string;
  readonly server: Server;
  readonly requests: Readonly<Record<Kind, string>>;
  readonly rounds: Readonly<Record<Kind, MeasuredLoad[]>>;
}

async function open(processes: number): Promise<Side> {
  const { dir, gifts } = historyOf(Math.ceil((ROUNDS + WARM_ROUNDS) * AMOUNT * 2.2), { fresh: true });
  // The history is folded first.
  await startService(dir).then((first) => first.stop());
  const server = await startService(dir, { settings: { PROCESSES: String(processes) } });
  const tokens = await tokensOf(server.url, tills);
  const lines = {
    'look-up': gifts.map((gift) => lookUpOf(gift, tokens)),
    redemption: gifts.filter(({ status }) => status === 'issued').map((gift) => redemptionOf(gift, tokens)),
  };
  const requests = { 'look-up': join(dir, 'look-up.jsonl'), redemption: join(dir, 'redemption.jsonl') };
  for (const kind of KINDS) writeFileSync(requests[kind], lines[kind].map((line) => JSON.stringify(line)).join('\n'));
  return { processes, dir, server, requests, rounds: { 'look-up': [], redemption: [] } };
}

async function round({ server, requests }: Side, kind: Kind, index: number): Promise<MeasuredLoad> {
  return measuredLoad(server, {
    method: kind === 'look-up' ? 'GET' : 'POST',
    connections: Number(values.clients),
    requests: requests[kind],
    pick: { kind: 'once', skip: index * AMOUNT, amount: AMOUNT },
    headers: kind === 'look-up' ? {} : { 'Content-Type': 'application/json' },
    expect: kind === 'look-up' ? 200 : 201,
  });
}

const one = await open(1);
const several = await open(PROCESSES);
for (let index = 0; index < WARM_ROUNDS + ROUNDS; index++)
  for (const kind of KINDS)
    for (const side of index % 2 === 0 ? [one, several] : [several, one]) {
      const result = await round(side, kind, index);
      if (index >= WARM_ROUNDS) side.rounds[kind].push(result);
    }
const resident = (side: Side): number => side.server.residentMb();
const residents = [one, several].map(resident);
for (const { server, dir } of [one, several]) {
  await server.stop();
  rmSync(dir, { recursive: true });
}

for (const kind of KINDS) {
  table(
    [one, several].map(({ processes, rounds }, index) => {
      const of = (figure: keyof MeasuredLoad): number => median(rounds[kind].map((result) => result[figure]));
      return {
        processes: `${processes}`,
        [`${kind}s/s`]: of('perSecond'),
        'p50 ms': of('p50'),
        'p99 ms': of('p99'),
        'CPU µs/request': of('cpu'),
        'clients busy': of('clients'),
        'resident MB': residents[index] ?? Number.NaN,
      };
    }),
  );
  const ratios = several.rounds[kind].map(
    ({ perSecond }, index) => perSecond / (one.rounds[kind][index]?.perSecond ?? 0),
  );
  const what = `times as many ${kind}s with ${PROCESSES} processes (pairs ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
  if (kind === 'redemption') verdict(what, median(ratios), { atLeast: 1 });
  else if (availableParallelism() > PROCESSES) verdict(what, median(ratios), { atLeast: 1.6 });
  else
    console.log(
      `No verdict, since the load runs on the ${availableParallelism()} processors that serve: ${median(ratios).toFixed(2)} ${what}`,
    );
}
