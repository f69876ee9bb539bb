/**
 * Processor time of a look-up, and of a redemption and a purchase with all that follows them, here and in an older state.
 * `--against=PATH` names a checkout of it that is built; without it the figures stand alone. Both run whole in one
 * process on embedded engines, each on a history of its own code. Rounds of both alternate, and who goes first, since
 * the machine is never quiet: the median of the rounds' ratios counts, for many changes that each cost no more than
 * noise make a request half as dear again.
 */
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { buyer, lookUpOf, purchaseOf, redemptionOf } from './support/data.js';
import { load } from './support/load.js';
import { median, table, verdict } from './support/report.js';
import { settled, threadsOf } from './support/threads.js';
import type * as Data from './support/data.js';
import type * as Servers from './support/server.js';

const { values } = parseArgs({
  options: {
    against: { type: 'string' },
    rounds: { type: 'string', default: '6' },
    amount: { type: 'string', default: '20000' },
  },
});
const ROUNDS = Number(values.rounds);
/** Requests of each kind in a round. */
const AMOUNT = Number(values.amount);
const CONNECTIONS = 64;
/** Rounds before those that count: the engine compiles the code in them. */
const WARM_ROUNDS = 1;
const REST_MS = 20_000;
const MOST_MS = 60_000;

const HERE = fileURLToPath(new URL('../..', import.meta.url));

type Kind = 'look-up' | 'redemption' | 'purchase';
const KINDS: readonly Kind[] = ['look-up', 'redemption', 'purchase'];

/** Microseconds by thread: the main one, then the others in the order of their start. */
type Threads = ReadonlyMap<string, number>;

interface Side {
  readonly dir: string;
  readonly server: Servers.Server;
  readonly threads: () => Threads;
  readonly requests: Readonly<Record<Kind, string>>;
}

/** A process of a built checkout, found by what it runs: an older one does not tell its id. */
function processOf(root: string): number {
  const main = join(root, 'dist/service/main.js');
  const found = readdirSync('/proc').find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const [, parent] = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return Number(parent) === process.pid && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(main);
    } catch {
      // It has just ended.
      return false;
    }
  });
  if (found === undefined) throw new Error(`no process runs ${main}`);
  return Number(found);
}

const usedBy = (pid: number): Threads => new Map(threadsOf(pid).map(({ name, used }) => [name, used]));

const sum = (threads: Threads): number => [...threads.values()].reduce((all, one) => all + one, 0);

async function open(root: string): Promise<Side> {
  const of = async <T>(file: string): Promise<T> =>
    (await import(pathToFileURL(join(root, 'dist/bench/support', file)).href)) as T;
  const { historyOf, tills, tokensOf } = await of<typeof Data>('data.js');
  const { startService } = await of<typeof Servers>('server.js');
  const { dir, gifts } = historyOf(Math.ceil((ROUNDS + WARM_ROUNDS) * AMOUNT * 2.2), { fresh: true });
  // The history is folded first.
  await startService(dir).then((first) => first.stop());
  const server = await startService(dir);
  const pid = processOf(root);
  const tokens = await tokensOf(server.url, [...tills, buyer.username]);
  const unredeemed = gifts.filter(({ status }) => status === 'issued');
  if (unredeemed.length < (ROUNDS + WARM_ROUNDS) * AMOUNT) throw new Error('the history has too few gifts');
  const requests = {
    'look-up': join(dir, 'look-up.jsonl'),
    redemption: join(dir, 'redemption.jsonl'),
    purchase: join(dir, 'purchase.jsonl'),
  };
  const lines = {
    'look-up': gifts.map((gift) => lookUpOf(gift, tokens)),
    redemption: unredeemed.map((gift) => redemptionOf(gift, tokens)),
    purchase: Array.from({ length: (ROUNDS + WARM_ROUNDS) * AMOUNT }, (_, n) => purchaseOf(n, tokens)),
  };
  for (const kind of KINDS) writeFileSync(requests[kind], lines[kind].map((line) => JSON.stringify(line)).join('\n'));
  return { dir, server, threads: () => usedBy(pid), requests };
}

/** Microseconds a request, by thread. */
async function costOf(side: Side, kind: Kind, round: number): Promise<Threads> {
  await settled(() => sum(side.threads()), MOST_MS);
  const before = side.threads();
  await load({
    url: side.server.url,
    method: kind === 'look-up' ? 'GET' : 'POST',
    connections: CONNECTIONS,
    requests: side.requests[kind],
    pick: { kind: 'once', skip: round * AMOUNT, amount: AMOUNT },
    headers: kind === 'look-up' ? {} : { 'Content-Type': 'application/json' },
    expect: kind === 'look-up' ? 200 : 201,
  });
  await settled(() => sum(side.threads()), MOST_MS);
  return new Map([...side.threads()].map(([thread, used]) => [thread, (used - (before.get(thread) ?? 0)) / AMOUNT]));
}

const here = await open(HERE);
const there = values.against === undefined ? undefined : await open(resolve(values.against));
const sides = there === undefined ? [here] : [here, there];
const costs = new Map(sides.map((side) => [side, new Map(KINDS.map((kind) => [kind, [] as Threads[]]))]));
for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++)
  for (const kind of KINDS)
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const cost = await costOf(side, kind, round);
      if (round >= WARM_ROUNDS) costs.get(side)?.get(kind)?.push(cost);
    }

const rest = new Map<Side, number>();
for (const side of sides) {
  await settled(() => sum(side.threads()), MOST_MS);
  const before = sum(side.threads());
  await wait(REST_MS);
  rest.set(side, ((sum(side.threads()) - before) / 1_000 / REST_MS) * 100);
}
const roundsOf = (side: Side, kind: Kind): readonly Threads[] => costs.get(side)?.get(kind) ?? [];
const shown = (side: Side | undefined, figure: (of: Side) => number): number | string =>
  side === undefined ? '' : figure(side);

table([
  ...KINDS.flatMap((kind) => {
    const of = (side: Side): number => median(roundsOf(side, kind).map(sum));
    const threads = [...new Set(sides.flatMap((side) => roundsOf(side, kind).flatMap((one) => [...one.keys()])))];
    const ofThread =
      (thread: string) =>
      (side: Side): number =>
        median(roundsOf(side, kind).map((one) => one.get(thread) ?? 0));
    return [
      { 'processor time': `${kind}, µs`, here: of(here), there: shown(there, of) },
      ...threads
        .filter((thread) => sides.some((side) => ofThread(thread)(side) >= 1))
        .map((thread) => ({
          'processor time': `  ${thread}`,
          here: ofThread(thread)(here),
          there: shown(there, ofThread(thread)),
        })),
    ];
  }),
  {
    'processor time': 'at rest, % of a core',
    here: rest.get(here) ?? 0,
    there: shown(there, (side) => rest.get(side) ?? 0),
  },
  {
    'processor time': 'resident, MB',
    here: here.server.residentMb(),
    there: shown(there, ({ server }) => server.residentMb()),
  },
  { 'processor time': 'threads', here: here.threads().size, there: shown(there, ({ threads }) => threads().size) },
]);
if (there !== undefined)
  for (const kind of KINDS) {
    const ratios = roundsOf(here, kind).map((one, index) => sum(one) / sum(roundsOf(there, kind)[index] as Threads));
    console.log(`${kind}: pairs from ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`);
    verdict(`of what a ${kind} cost there`, median(ratios), { atMost: 0.95 });
  }
for (const { server, dir } of sides) {
  await server.stop();
  rmSync(dir, { recursive: true });
}
