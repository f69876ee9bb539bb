/**
 * What grows with the log: costs of requests, time of what reads all events, start, memory and bytes on disk, for logs
 * of ten thousand to ten million events. `--events=N,N…` names other sizes. Writes `bench/results/growth.md` and
 * `growth.svg`. The services of all sizes run side by side, and each round asks all of them, in both orders: what the
 * machine does meanwhile falls on every size. Requests are held by processor time, with all that follows them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { GIFT, startCommand } from './support/command.js';
import { buyer, bytesOf, historyOf, lookUpOf, purchaseOf, redemptionOf, tills, tokensOf } from './support/data.js';
import { load, type LoadRequest } from './support/load.js';
import { median, table, verdict } from './support/report.js';
import { writeResults } from './support/results.js';
import { atRest, type Server, startService } from './support/server.js';
import { SETTLED } from './support/threads.js';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '10000,100000,1000000,10000000' },
    rounds: { type: 'string', default: '6' },
  },
});
const SIZES = values.events.split(',').map(Number);
const ROUNDS = Number(values.rounds);
/** Rounds before those that count: the engine compiles the code in them. */
const WARM_ROUNDS = 2;
const EVENTS_A_GIFT = 3.66;
const SAMPLE = 40_000;
const STARTS = 3;
const CONNECTIONS = 32;
const PAGE = 20;
const STATUS_MS = 1_000;
/** Requests of each kind in a round. */
const KINDS = {
  'look-up': { method: 'GET', amount: 2_000 },
  'page of redemptions': { method: 'GET', amount: 1_000 },
  'page of the event feed': { method: 'GET', amount: 1_000 },
  redemption: { method: 'POST', amount: 600 },
  purchase: { method: 'POST', amount: 200 },
} as const;
type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];
/** The same gifts are redeemed in each round: the smallest log has no more. */
const REVERSALS = 'reversals';
const JSON_BODY = { 'Content-Type': 'application/json' };

/** Commands that read the whole log. */
const COMMANDS = {
  'rebuild of gifts': ['projections', 'rebuild', 'gifts'],
  'verification of gifts': ['projections', 'verify', 'gifts'],
  'verification of the log': ['audit', 'verify'],
  backup: ['backup', 'growth.log'],
} as const;
type Command = keyof typeof COMMANDS;

interface Size {
  readonly dir: string;
  readonly events: number;
  /** Seconds of the first start until all read models and the tree are built. */
  readonly firstStartS: number;
  readonly startS: number;
  readonly bytes: number;
  readonly server: Server;
  readonly startMb: number;
  readonly costs: Readonly<Record<Kind, number[]>>;
  mostMb: number;
}

/** Whether each read model is in use and shows all events: those that nobody waits for are built last. */
async function isFolded(dir: string): Promise<boolean> {
  const { lines } = await startCommand(dir, ['projections', 'status', '--json']).ended;
  return lines
    .filter(({ kind }) => kind === 'projection')
    .every(({ in_use, lag_events }) => in_use === true && lag_events === 0);
}

async function open(size: number): Promise<Size> {
  const { dir, events, gifts } = historyOf(Math.round(size / EVENTS_A_GIFT), { fresh: true, sample: SAMPLE });
  const began = performance.now();
  const first = await startService(dir);
  while (!(await isFolded(dir))) await wait(STATUS_MS);
  await atRest(first);
  const firstStartS = (performance.now() - began - SETTLED.ms) / 1_000;
  await first.stop();
  const starts: number[] = [];
  for (let n = 0; n < STARTS; n++) {
    const again = await startService(dir);
    starts.push(again.readyMs);
    await again.stop();
  }
  const bytes = bytesOf(dir) / events;
  const server = await startService(dir);
  const startMb = server.residentMb();
  const tokens = await tokensOf(server.url, [...tills, buyer.username]);
  const issued = gifts.filter(({ status }) => status === 'issued');
  const till = { Authorization: `Bearer ${tokens.get(tills[0] ?? '') ?? ''}` };
  const requests: Readonly<Record<Kind, readonly LoadRequest[]>> = {
    'look-up': gifts.map((gift) => lookUpOf(gift, tokens)),
    'page of redemptions': [{ path: `/api/v2/redemptions?limit=${PAGE}`, headers: till }],
    'page of the event feed': (await feedPages(server.url, till)).map((path) => ({ path, headers: till })),
    redemption: issued.slice(0, KINDS.redemption.amount).map((gift) => redemptionOf(gift, tokens)),
    purchase: Array.from({ length: (WARM_ROUNDS + ROUNDS) * KINDS.purchase.amount }, (_, n) => purchaseOf(n, tokens)),
  };
  for (const kind of NAMES) {
    const repeated = requests[kind];
    const amount = (WARM_ROUNDS + ROUNDS) * KINDS[kind].amount;
    const lines = Array.from({ length: amount }, (_, n) => JSON.stringify(repeated[n % repeated.length]));
    writeFileSync(requestsIn(dir, kind), lines.join('\n'));
  }
  const reversals = requests.redemption.map(({ path, headers }) =>
    JSON.stringify({ path: `${path}/latest`, headers, body: '{"redeemed":false}' }),
  );
  writeFileSync(requestsIn(dir, REVERSALS), reversals.join('\n'));
  const costs = Object.fromEntries(NAMES.map((kind) => [kind, []])) as unknown as Size['costs'];
  return { dir, events, firstStartS, startS: median(starts) / 1_000, bytes, server, startMb, costs, mostMb: startMb };
}

const requestsIn = (dir: string, kind: Kind | typeof REVERSALS): string =>
  join(dir, `bench-${kind.replaceAll(' ', '-')}.jsonl`);

/** Addresses of full pages at every depth of a caller's feed. */
async function feedPages(url: string, headers: Record<string, string>): Promise<string[]> {
  const paths: string[] = [];
  for (let path = `/api/v2/events?limit=${PAGE}`; paths.length < 5_000;) {
    const page = (await (await fetch(url + path, { headers })).json()) as { next: string; data: readonly unknown[] };
    if (page.data.length < PAGE) break;
    paths.push(path);
    path = `/api/v2/events?limit=${PAGE}&after=${encodeURIComponent(page.next)}`;
  }
  return paths;
}

/** Microseconds of processor time a request. */
async function costOf({ dir, server }: Size, kind: Kind, round: number): Promise<number> {
  const { method, amount } = KINDS[kind];
  await atRest(server);
  const before = server.cpuSeconds();
  const plan = { url: server.url, connections: CONNECTIONS };
  await load({
    ...plan,
    method,
    requests: requestsIn(dir, kind),
    pick: { kind: 'once', skip: round * amount, amount },
    headers: method === 'POST' ? JSON_BODY : {},
    expect: method === 'POST' ? 201 : 200,
  });
  await atRest(server);
  const cost = ((server.cpuSeconds() - before) * 1e6) / amount;
  if (kind === 'redemption') {
    const pick = { kind: 'once', skip: 0, amount } as const;
    await load({
      ...plan,
      method: 'PATCH',
      requests: requestsIn(dir, REVERSALS),
      pick,
      headers: JSON_BODY,
      expect: 200,
    });
  }
  return cost;
}

/** Seconds that a command takes. */
async function secondsOf({ dir }: Size, command: Command): Promise<number> {
  const began = performance.now();
  const child = spawn(process.execPath, [GIFT, ...COMMANDS[command]], {
    cwd: dir,
    env: { PATH: process.env['PATH'], DATA_DIR: dir },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`gift ${COMMANDS[command].join(' ')} ended with ${code}`);
  return (performance.now() - began) / 1_000;
}

const sizes: Size[] = [];
for (const size of SIZES) sizes.push(await open(size));
for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++)
  for (const kind of NAMES)
    for (const size of round % 2 === 0 ? sizes : sizes.toReversed()) {
      const cost = await costOf(size, kind, round);
      size.mostMb = Math.max(size.mostMb, size.server.residentMb());
      if (round >= WARM_ROUNDS) size.costs[kind].push(cost);
    }
for (const { server } of sizes) await server.stop();
const seconds: Readonly<Record<Command, number>>[] = [];
for (const size of sizes) {
  const own: Partial<Record<Command, number>> = {};
  for (const command of Object.keys(COMMANDS) as Command[]) own[command] = await secondsOf(size, command);
  seconds.push(own as Record<Command, number>);
  rmSync(size.dir, { recursive: true });
}

const costs = Object.fromEntries(NAMES.map((kind) => [kind, sizes.map((size) => median(size.costs[kind]))]));
const times = {
  'first start': sizes.map(({ firstStartS }) => firstStartS),
  ...Object.fromEntries(
    (Object.keys(COMMANDS) as Command[]).map((command) => [command, seconds.map((own) => own[command])]),
  ),
  start: sizes.map(({ startS }) => startS),
};
const rows: readonly (readonly [string, readonly number[]])[] = [
  ...Object.entries(costs).map(([kind, figures]) => [`${kind}, µs of processor time`, figures] as const),
  ...Object.entries(times).map(([what, figures]) => [`${what}, s`, figures] as const),
  ['resident after the start, MB', sizes.map(({ startMb }) => startMb)],
  ['resident under these requests at most, MB', sizes.map(({ mostMb }) => mostMb)],
  ['on disk, bytes an event', sizes.map(({ bytes }) => bytes)],
];
const heads = sizes.map(({ events }) => `${events.toLocaleString('en')} events`);
const shownRows = rows.map(([what, figures]) => ({
  what,
  ...Object.fromEntries(heads.map((head, at) => [head, figures[at] ?? ''])),
}));
table(shownRows);
writeResults('growth', {
  title: 'Growth',
  rows: shownRows,
  xs: sizes.map(({ events }) => events),
  charts: [
    { title: 'Processor time of a request, µs, by events in the log', lines: costs },
    { title: 'Seconds that it takes, by events in the log', lines: times },
  ],
});
for (const kind of NAMES)
  verdict(`${kind}, largest log to smallest`, (costs[kind]?.at(-1) ?? 0) / (costs[kind]?.[0] ?? 1), { atMost: 1.2 });
verdict('start with the largest log', sizes.at(-1)?.startS ?? 0, { atMost: 1 }, ' s');
verdict('resident with the largest log', sizes.at(-1)?.mostMb ?? 0, { atMost: 400 }, ' MB');
