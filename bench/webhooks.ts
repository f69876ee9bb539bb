/**
 * Delivery of 10,000 webhooks a minute to 40 endpoints that answer, beside 10 dead ones: how late the latest comes.
 * Half of the dead refuse connections, half never answer. `--minutes=N` (default 1), `--rate=N` deliveries a minute.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { hashSync } from '@node-rs/argon2';
import { createEndpoint } from '../src/commands/webhookEndpoints.js';
import { giftStream } from '../src/domain/gift/events.js';
import { deriveGiftIds } from '../src/domain/giftIds.js';
import { transactionStream } from '../src/domain/purchase/events.js';
import { inParallel } from '../src/lib/async/inParallel.js';
import { NO_TEXT } from '../src/lib/seal.js';
import type { EventStore } from '../src/ports/eventStore.js';
import { loadConfig } from '../src/service/config.js';
import { openLog } from '../src/service/engines.js';
import { GIFT } from './support/command.js';
import { table, verdict } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '1' }, rate: { type: 'string', default: '10000' } },
});
const SECONDS = Number(values.minutes) * 60;
const RATE = Number(values.rate);
const LIVE = 40;
const DEAD = 10;
const GIFTS_EACH = 40;
const TICK_MS = 50;
/** No delivery to one that answers may be later. */
const LATE_MS = 5_000;

/** By id: how long after it happened it arrived first, ms. */
const arrived = new Map<string, number>();
let repeated = 0;

const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};

const live = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk: Buffer) => (text += chunk.toString()));
  request.on('end', () => {
    const { id, created_at } = JSON.parse(text) as { readonly id: string; readonly created_at: string };
    if (arrived.has(id)) repeated += 1;
    else arrived.set(id, Date.now() - Date.parse(created_at));
    response.end();
  });
});
const silent = createServer(() => undefined);
const closed = createServer();
const urls = {
  live: `http://127.0.0.1:${await listening(live)}/`,
  silent: `http://127.0.0.1:${await listening(silent)}/`,
  closed: `http://127.0.0.1:${await listening(closed)}/`,
};
closed.close();

/** One for each endpoint, which gets what was bought through it. */
const clients = Array.from({ length: LIVE + DEAD }, (_, n) => `client-${n}`);

const dir = mkdtempSync(join(tmpdir(), 'webhooks-'));
const file = join(dir, 'clients.json');
// Nobody signs in as one.
const secret_hash = hashSync(randomUUID());
writeFileSync(file, JSON.stringify({ clients: clients.map((id) => ({ id, name: id, secret_hash })) }));
execFileSync(process.execPath, [GIFT, 'import', file], {
  env: { PATH: process.env['PATH'], DATA_DIR: dir },
  stdio: ['ignore', 'ignore', 'inherit'],
});
const { events, subjects } = await openLog(loadConfig({ DATA_DIR: dir }));
const metadata = (client: string) => ({ commandId: randomUUID(), correlationId: 'bench', by: { client } });
const append = async (to: EventStore, stream: string, type: string, data: object, client: string): Promise<string> => {
  const id = randomUUID();
  const event = { id, type, at: new Date().toISOString(), data, metadata: metadata(client) };
  await to.append(stream, [event], 'any');
  return id;
};

for (const [n, client] of clients.entries()) {
  const url = n < LIVE ? `${urls.live}${n}` : n % 2 === 0 ? urls.silent : urls.closed;
  const context = { commandId: randomUUID(), correlationId: 'bench', by: { client }, now: new Date().toISOString() };
  await createEndpoint(
    { events, subjects },
    { id: randomUUID(), owner: { kind: 'client', id: client } },
    { url, types: null, description: null },
    context,
    async () => undefined,
  );
}

async function buy(client: string): Promise<readonly string[]> {
  const seed = randomBytes(32).toString('hex');
  const transaction_id = randomUUID();
  const purchase = {
    transaction_id,
    seed,
    buyer_id: 'buyer',
    product_id: 'p1',
    brand_id: 'b1',
    product_name: 'Coffee',
    sale_price: 350,
    total: 350 * GIFTS_EACH,
    payment_reference: 'pm_card_visa',
    expires_on: '2099-01-01',
    message: NO_TEXT,
    receivers: Array.from({ length: GIFTS_EACH }, () => ({})),
  };
  const stream = transactionStream(transaction_id);
  await append(events, stream, 'GiftsPurchased', purchase, client);
  await append(events, stream, 'PaymentCharged', { amount: purchase.total }, client);
  const ids = deriveGiftIds(seed, GIFTS_EACH);
  for (const [index, { gift_id, message_id }] of ids.entries())
    await append(
      events,
      giftStream(gift_id),
      'GiftIssued',
      {
        transaction_id,
        index,
        message_id,
        product_id: 'p1',
        brand_id: 'b1',
        value: 350,
        sender_id: 'buyer',
        receiver: {},
        purchased_at: new Date().toISOString(),
        expires_on: '2099-01-01',
      },
      client,
    );
  return ids.map(({ gift_id }) => gift_id);
}

const gifts = await Promise.all(clients.map(buy));
const service = await startService(dir, { settings: { WEBHOOK_PRIVATE_ADDRESSES: 'allow' } });
try {
  // Made, charged and issued, each gift.
  const before = LIVE * (2 + GIFTS_EACH);
  for (const end = Date.now() + 120_000; arrived.size < before && Date.now() < end;) await sleep(100);
  if (arrived.size < before) throw new Error(`${arrived.size} of ${before} events of the purchases arrived`);
  arrived.clear();
  repeated = 0;
  const cpu = service.cpuSeconds();

  // Of the dead ones, too, at the same pace.
  const each = ((RATE / 60_000) * TICK_MS * clients.length) / LIVE;
  const sent = new Set<string>();
  const started = performance.now();
  for (let tick = 1, n = 0; tick * TICK_MS <= SECONDS * 1_000; tick++) {
    const some = Array.from({ length: Math.round(tick * each) - n }, () => n++);
    await inParallel(some, some.length, async (one) => {
      const of = one % clients.length;
      const round = Math.floor(one / clients.length);
      const gift = gifts[of]?.[round % GIFTS_EACH] ?? '';
      const type = Math.floor(round / GIFTS_EACH) % 2 === 0 ? 'GiftBlocked' : 'GiftUnblocked';
      const id = await append(
        events,
        giftStream(gift),
        type,
        { cause: 'support:B', reason: NO_TEXT },
        clients[of] ?? '',
      );
      if (of < LIVE) sent.add(id);
    });
    await sleep(Math.max(0, started + tick * TICK_MS - performance.now()));
  }
  const took = (performance.now() - started) / 1_000;
  const processor = (service.cpuSeconds() - cpu) / took;
  await sleep(LATE_MS);
  const late = [...sent].map((id) => arrived.get(id) ?? Number.POSITIVE_INFINITY).sort((one, other) => one - other);
  const at = (share: number): number => late[Math.min(late.length - 1, Math.floor(share * late.length))] ?? Number.NaN;
  const perMinute = (late.filter(Number.isFinite).length / took) * 60;
  table([
    {
      'delivered a minute': perMinute,
      'p50 ms': at(0.5),
      'p99 ms': at(0.99),
      'latest ms': at(1),
      repeated: String(repeated),
      'processor %': processor * 100,
      'resident MB': service.residentMb(),
    },
  ]);
  verdict('delivered a minute', perMinute, { atLeast: RATE * 0.99 });
  verdict('the latest delivery to an endpoint that answers', at(1), { atMost: LATE_MS }, ' ms');
} finally {
  await service.stop();
  await events.close();
  for (const server of [live, silent]) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(dir, { recursive: true });
}
