/**
 * Redeeming gifts and looking them up over HTTP on servers of their own, beside the bare clients doing the same appends
 * and finds behind a bare Koa server, in the same run. A decision also reads its stream, and a look-up the log's end:
 * so the bare server does that, too. On the EventStoreDB, MongoDB and NATS that EVENTSTORE_URL, MONGODB_URL and NATS_URL
 * name; the first holds nothing yet, of the second a database of its own is used and dropped. With
 * `--embedded=MONGODB_URL,NATS_URL` what is named there runs embedded. `--clients=64,16,1`, `--rounds=N` (default 5),
 * `--amount=N` (redemptions a round with 64 clients, default 1,600; with fewer clients there are fewer),
 * `--profile=DIR` writes a CPU profile of the service.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { EventStoreDBClient, NO_STREAM } from '@eventstore/db-client';
import { MongoClient } from 'mongodb';
import { giftStream } from '../src/domain/gift/events.js';
import { giftsProjection } from '../src/projections/gifts.js';
import { layoutOf } from '../src/adapters/mongodb/layout.js';
import { collectionOf } from '../src/runtime/readmodels/projection.js';
import { buyer, importCatalogue, scratch, tillOf, tokensOf } from './support/data.js';
import { inFlight } from './support/contest.js';
import { load } from './support/load.js';
import { benchEvent, benchStream } from './support/rawEvents.js';
import { median, table, verdict } from './support/report.js';
import { type Server, startBaseline, startService } from './support/server.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    amount: { type: 'string', default: '1600' },
    // The most first: the few find every server warm.
    clients: { type: 'string', default: '64,16,1' },
    embedded: { type: 'string', default: '' },
    profile: { type: 'string' },
  },
});
const ROUNDS = Number(values.rounds);
const CLIENTS = values.clients.split(',').map(Number);
const WARM_ROUNDS = 1;
const FINDING_S = 2;
const RECEIVERS = 10_000;
const REDEEM = { atLeast: 0.5, slowest: 3 };
const LOOK_UP = 0.7;

/** The same each time: a log takes no other. */
const KEY = 'no secret: of the bench alone'.repeat(2);

const embedded = values.embedded.split(',').filter((name) => name !== '');
const missing = ['EVENTSTORE_URL', 'MONGODB_URL', 'NATS_URL'].filter(
  (name) => !embedded.includes(name) && (process.env[name] ?? '') === '',
);
if (missing.length > 0) {
  console.error(
    `This bench runs on servers that you start: set ${missing.join(', ')}, or name those but EVENTSTORE_URL in --embedded=…, to have them run embedded.`,
  );
  process.exit(2);
}
const url = (name: string): string | undefined => (embedded.includes(name) ? undefined : process.env[name]);
const eventStoreUrl = url('EVENTSTORE_URL') ?? '';
const mongoUrl = url('MONGODB_URL')?.replace(
  /^([^/]+:\/\/[^/?]+)(?:\/[^?]*)?/,
  `$1/gift_bench_${randomBytes(4).toString('hex')}`,
);

const dir = scratch('engines-http');
const settings = {
  EVENTSTORE_URL: eventStoreUrl,
  PAYMENTS: 'simulated',
  NOTIFICATIONS: 'simulated',
  TOKEN_KEY: KEY,
  HASH_KEY: KEY,
  MASTER_KEY: KEY,
  SEAL_KEY: KEY,
  KEYS_URL: mongoUrl === undefined ? 'embedded' : mongoUrl.replace('gift_bench_', 'gift_bench_keys_'),
  PUBLIC_URL: 'http://127.0.0.1',
  ...(mongoUrl === undefined ? {} : { MONGODB_URL: mongoUrl }),
  ...(url('NATS_URL') === undefined ? {} : { NATS_URL: url('NATS_URL') ?? '' }),
};

/** Redemptions of a round. */
const amountOf = (clients: number): number =>
  Math.ceil((Number(values.amount) * Math.min(64, clients * 4)) / 64 / 4) * (clients >= 16 ? 4 : 2);
const wanted = CLIENTS.reduce((sum, clients) => sum + amountOf(clients) * (ROUNDS + WARM_ROUNDS), 0);

importCatalogue(dir, settings);
const service = await startService(dir, {
  settings,
  ...(values.profile === undefined ? {} : { profile: values.profile }),
});
const till = tillOf({ id: '', receiver: undefined, status: 'issued', product_id: 'p1' });
const tokens = await tokensOf(service.url, [buyer.username, till.username]);
const json = { 'Content-Type': 'application/json' };
const headersOf = (username: string): Record<string, string> => ({
  ...json,
  Authorization: `Bearer ${tokens.get(username) ?? ''}`,
});
const events = EventStoreDBClient.connectionString(eventStoreUrl);

/** Buys so many gifts, and waits until each is issued. */
async function buy(count: number): Promise<string[]> {
  const purchase = {
    type: 'gift',
    reference: 'p1',
    message: 'Have one on us!',
    receivers: Array.from({ length: count }, () => ({})),
  };
  const body = JSON.stringify({ payment: { method: 'card', reference: buyer.card }, purchase });
  const response = await fetch(`${service.url}/api/v2/transactions`, {
    method: 'POST',
    headers: headersOf(buyer.username),
    body,
  });
  if (response.status !== 201)
    throw new Error(`the purchase was answered with ${response.status}: ${(await response.text()).slice(0, 500)}`);
  const { data } = (await response.json()) as { readonly data: { readonly gifts: readonly string[] } };
  const ids = [...data.gifts];
  await issued(ids.at(-1) ?? '');
  return ids;
}

async function issued(id: string): Promise<void> {
  for (;;) {
    const there = await first(giftStream(id)).catch(() => false);
    if (there) return;
    await wait(100);
  }
}

async function first(stream: string): Promise<boolean> {
  for await (const { event } of events.readStream(stream, { maxCount: 1 })) if (event !== undefined) return true;
  return false;
}

const gifts: string[] = [];
while (gifts.length < wanted) gifts.push(...(await buy(Math.min(RECEIVERS, wanted - gifts.length))));

const redeeming = join(dir, 'redeem.jsonl');
const looking = join(dir, 'look.jsonl');
const posting = join(dir, 'post.jsonl');
const body = JSON.stringify({ location_id: till.location });
writeFileSync(
  redeeming,
  gifts.map((id) => JSON.stringify({ path: `/api/v2/gifts/${id}/redemptions`, body })).join('\n'),
);
writeFileSync(looking, gifts.map((id) => JSON.stringify({ path: `/api/v2/gifts/${id}` })).join('\n'));
const decider = await startBaseline('koaDecide', dir, { EVENTSTORE_URL: eventStoreUrl });
const findSettings = { MONGODB_URL: mongoUrl ?? '', COLLECTION: layoutOf(collectionOf(giftsProjection)).collection };
const finders =
  mongoUrl === undefined
    ? undefined
    : {
        bare: await startBaseline('koaFind', dir, findSettings),
        fresh: await startBaseline('koaFind', dir, { ...findSettings, EVENTSTORE_URL: eventStoreUrl }),
      };

// What the purchases set off is over: the finder reads documents as they are, without waiting for the projector.
if (finders !== undefined)
  for (const id of gifts.filter((_, n) => (n + 1) % 100 === 0 || n + 1 === gifts.length))
    while ((await fetch(`${finders.bare.url}/api/v2/gifts/${id}`)).status !== 200) await wait(100);
await wait(2_000);

interface Figure {
  readonly perSecond: number;
  /** Median, ms. */
  readonly p50: number;
}

/** One event in a stream each. @returns the streams' ids, too */
async function rawAppends(clients: number, count: number): Promise<Figure & { readonly ids: readonly string[] }> {
  const took: number[] = [];
  const ids = Array.from({ length: count }, randomUUID);
  const perSecond = await inFlight(clients, ids, async (id) => {
    const began = performance.now();
    await events.appendToStream(benchStream(id), benchEvent(id), { expectedRevision: NO_STREAM });
    took.push(performance.now() - began);
  });
  return { perSecond, p50: median(took), ids };
}

/** A request to the bare Koa for each stream. */
async function posts(path: 'appends' | 'decisions', clients: number, ids: readonly string[]): Promise<Figure> {
  writeFileSync(posting, ids.map((id) => JSON.stringify({ path: `/${path}/${id}` })).join('\n'));
  return load({
    url: decider.url,
    method: 'POST',
    connections: clients,
    requests: posting,
    pick: { kind: 'once', skip: 0, amount: ids.length },
    expect: 201,
  });
}

let redeemed = 0;
async function redemptions(clients: number, count: number): Promise<Figure> {
  const pick = { kind: 'once', skip: redeemed, amount: count } as const;
  redeemed += count;
  return load({
    url: service.url,
    method: 'POST',
    connections: clients,
    requests: redeeming,
    pick,
    headers: headersOf(till.username),
    expect: 201,
  });
}

const lookUps = async (server: Server, clients: number): Promise<Figure> =>
  load({
    url: server.url,
    method: 'GET',
    connections: clients,
    requests: looking,
    pick: { kind: 'random', seconds: FINDING_S },
    headers: headersOf(buyer.username),
    expect: 200,
  });

interface Rounds {
  readonly clients: number;
  readonly append: Figure[];
  /** Behind a bare Koa, as the next ones. */
  readonly appendBehind: Figure[];
  readonly decide: Figure[];
  readonly find: Figure[];
  readonly findFresh: Figure[];
  /** The service's. */
  readonly redeem: Figure[];
  readonly look: Figure[];
}

async function roundsWith(clients: number): Promise<Rounds> {
  const of: Rounds = {
    clients,
    append: [],
    appendBehind: [],
    decide: [],
    find: [],
    findFresh: [],
    redeem: [],
    look: [],
  };
  const count = amountOf(clients);
  for (let n = 0; n < WARM_ROUNDS + ROUNDS; n++) {
    const append = await rawAppends(clients, count);
    const appendBehind = await posts('appends', clients, Array.from({ length: count }, randomUUID));
    const decide = await posts('decisions', clients, append.ids);
    const redeem = await redemptions(clients, count);
    const find = finders && (await lookUps(finders.bare, clients));
    const findFresh = finders && (await lookUps(finders.fresh, clients));
    const look = await lookUps(service, clients);
    if (n < WARM_ROUNDS) continue;
    of.append.push(append);
    of.appendBehind.push(appendBehind);
    of.decide.push(decide);
    of.redeem.push(redeem);
    if (find !== undefined) of.find.push(find);
    if (findFresh !== undefined) of.findFresh.push(findFresh);
    of.look.push(look);
  }
  return of;
}

const all: Rounds[] = [];
for (const clients of CLIENTS) all.push(await roundsWith(clients));
const mid = (figures: readonly Figure[], what: keyof Figure): number => median(figures.map((one) => one[what]));
const ratio = (ours: readonly Figure[], theirs: readonly Figure[], what: keyof Figure): number =>
  median(ours.map((one, n) => one[what] / (theirs[n] as Figure)[what]));
console.log(
  `EventStoreDB${mongoUrl === undefined ? '' : ', MongoDB'}${url('NATS_URL') === undefined ? '' : ', NATS'}; ${gifts.length.toLocaleString('en')} gifts; median of ${ROUNDS} rounds`,
);
table(
  all.map(({ clients, append, appendBehind, decide, redeem }) => ({
    clients: String(clients),
    'raw appends/s': mid(append, 'perSecond'),
    'appends behind Koa/s': mid(appendBehind, 'perSecond'),
    'reads and appends behind Koa/s': mid(decide, 'perSecond'),
    'redeems/s': mid(redeem, 'perSecond'),
    'of raw appends': ratio(redeem, append, 'perSecond'),
    'of reads and appends': ratio(redeem, decide, 'perSecond'),
    'raw append p50 ms': mid(append, 'p50'),
    'redeem p50 ms': mid(redeem, 'p50'),
  })),
);
table(
  all.map(({ clients, find, findFresh, look }) => ({
    clients: String(clients),
    'look-ups/s': mid(look, 'perSecond'),
    'look-up p50 ms': mid(look, 'p50'),
    ...(find.length === 0
      ? {}
      : {
          'finds behind Koa/s': mid(find, 'perSecond'),
          "with the log's end": mid(findFresh, 'perSecond'),
          'of finds': ratio(look, find, 'perSecond'),
          "of those with the log's end": ratio(look, findFresh, 'perSecond'),
          'find p50 ms': mid(find, 'p50'),
          "with the log's end p50 ms": mid(findFresh, 'p50'),
        }),
  })),
);
for (const { clients, append, redeem, find, look } of all) {
  if (clients === 64)
    verdict('of the raw appends with 64 clients: redemptions', ratio(redeem, append, 'perSecond'), {
      atLeast: REDEEM.atLeast,
    });
  if (clients === 1)
    verdict('times the raw latency with 1 client: a redemption', ratio(redeem, append, 'p50'), {
      atMost: REDEEM.slowest,
    });
  if (find.length > 0)
    verdict(`of the raw finds behind Koa with ${clients} clients: look-ups`, ratio(look, find, 'perSecond'), {
      atLeast: LOOK_UP,
    });
}

await Promise.all([service.stop(), decider.stop(), finders?.bare.stop(), finders?.fresh.stop()]);
if (mongoUrl !== undefined) {
  const client = new MongoClient(mongoUrl);
  await client.db().dropDatabase();
  await client.close();
}
rmSync(dir, { recursive: true });
// Last: the client waits for what the server may still have to say.
await events.dispose();
