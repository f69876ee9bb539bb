/**
 * A client that repeats its request, with its Idempotency-Key, until it has an answer, while at each append, read and
 * record of the request one thing goes wrong, once each: in the end what it asks for has been done once, and what it is
 * told then and ever after is the first outcome.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { kindOf } from '../../src/domain/streamName.js';
import type { Engines } from '../../src/ports/engines.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { buyOne, purchaseOf, redeem, unredeem } from '../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../support/service/service.js';
import { until } from '../support/assertions/until.js';

/**
 * What may go wrong. Who dies does nothing more until the client asks again; what is unknown stays so while the append
 * is repeated.
 */
const FAULTS = {
  append: ['dies before', 'dies after', 'fails', 'unknown undone', 'unknown done'],
  read: ['dies before', 'fails'],
  get: ['dies before', 'fails'],
  put: ['dies before', 'dies after', 'fails', 'unknown done'],
} as const;
type Kind = keyof typeof FAULTS;

/** One request, from its first try until it is answered. */
interface Watched {
  /** Whose stream it may touch. */
  readonly gift: string | undefined;
  readonly plan: { readonly point: string; readonly fault: string } | undefined;
  /** All that it came to, by name. */
  readonly points: string[];
  happened: boolean;
  dead: boolean;
  /** The append that nobody knows the outcome of, by its first event's id. */
  unknown: string | undefined;
}
let watched: Watched | undefined;

const unknown = (): UnavailableError => new UnavailableError('no answer', { outcomeUnknown: true });

/** Does it, unless something is to go wrong with it. `id`: of what is known again when it is repeated. */
async function at<T>(kind: Kind, what: string, run: () => Promise<T>, id?: string): Promise<T> {
  const now = watched;
  if (now === undefined) return run();
  if (now.dead) throw new UnavailableError('this process is gone');
  if (id !== undefined && id === now.unknown) throw unknown();
  const times = now.points.filter((point) => point.startsWith(`${kind} ${what} `)).length + 1;
  const point = `${kind} ${what} ${times}`;
  now.points.push(point);
  if (now.happened || now.plan?.point !== point) return run();
  now.happened = true;
  const [how, when] = now.plan.fault.split(' ');
  if (when === 'after' || when === 'done') await run();
  if (how === 'dies') now.dead = true;
  if (how === 'unknown') now.unknown = id;
  throw how === 'unknown' ? unknown() : new UnavailableError(`it ${how ?? ''}`);
}

/** The engines, as the watched request's process sees them; the process managers' own work goes on beside it. */
function through(engines: Engines): Engines {
  const { records } = engines.store;
  const isOf = (stream: string): boolean =>
    watched !== undefined && (stream === giftStream(watched.gift ?? '') || kindOf(stream) === 'voucherCode');
  const isKey = (key: string): boolean => key.startsWith('idempotency:');
  return {
    ...engines,
    events: {
      ...engines.events,
      async append(stream, events, expected) {
        const [first] = events;
        const run = (): ReturnType<typeof engines.events.append> => engines.events.append(stream, events, expected);
        if (
          first === undefined ||
          !(isOf(stream) || first.type === 'GiftsPurchased') ||
          first.metadata.by.user?.startsWith('system:') === true
        )
          return run();
        return at('append', `${kindOf(stream)} ${first.type}`, run, first.id);
      },
      read: async (stream, options) =>
        isOf(stream)
          ? at('read', kindOf(stream), () => engines.events.read(stream, options))
          : engines.events.read(stream, options),
    },
    store: {
      ...engines.store,
      records: {
        ...records,
        get: async <V>(key: string) => (isKey(key) ? at('get', 'key', () => records.get<V>(key)) : records.get<V>(key)),
        put: async (key, value, options) =>
          isKey(key) ? at('put', 'key', () => records.put(key, value, options)) : records.put(key, value, options),
        delete: async (key, expected) =>
          isKey(key)
            ? at('put', 'key that is given back', () => records.delete(key, expected))
            : records.delete(key, expected),
      },
    },
  };
}

const test = suite('requests with a key, at every point where something can go wrong');
let service: Service;
test.before(async () => {
  service = await startService({ app: { through } });
  await service.import({
    voucher_codes: Array.from({ length: 400 }, (_, n) => ({ segment_id: 'seg-pool', code: `MANY-${n}`, pin: '1' })),
  });
});
test.after(() => service.close());

/** A request that is repeated. */
interface Asking {
  readonly name: string;
  /** What is bought before; none: nothing. */
  readonly product?: string;
  readonly before?: (gift: string) => Promise<unknown>;
  readonly ask: (gift: string, key: string) => Promise<Reply>;
  /** Of the first outcome. */
  readonly status: number;
  /** What the gift's stream holds in the end. */
  readonly events: readonly string[];
}
const post = async (user: string, path: string, key: string, body?: object): Promise<Reply> =>
  service.ask('POST', path, { token: await service.userToken(user), key, ...(body === undefined ? {} : { body }) });
const REQUESTS: readonly Asking[] = [
  {
    name: 'purchase',
    ask: (_, key) => post('ann', '/api/v2/transactions', key, purchaseOf('latte')),
    status: 201,
    events: [],
  },
  {
    name: 'redeem',
    product: 'latte',
    ask: (gift, key) => redeem(service, gift, 'till-coffee', 'bean-soho', { key }),
    status: 201,
    events: ['GiftIssued', 'GiftRedeemed'],
  },
  {
    name: 'unredeem',
    product: 'latte',
    before: (gift) => redeem(service, gift),
    ask: (gift, key) => unredeem(service, gift, 'latest', 'till-coffee', { key }),
    status: 200,
    events: ['GiftIssued', 'GiftRedeemed', 'GiftUnredeemed'],
  },
  {
    name: 'claim',
    product: 'latte',
    ask: (gift, key) => post('cat', `/api/v2/gifts/${service.shortcodeOf(gift)}/claim`, key),
    status: 200,
    events: ['GiftIssued', 'GiftClaimed'],
  },
  {
    name: 'V1 voucher',
    product: 'latte',
    ask: (gift, key) => post('ann', `/api/v2/gifts/${gift}/voucher`, key),
    status: 200,
    events: ['GiftIssued', 'VoucherAssigned'],
  },
  {
    name: 'V2 voucher from a pool',
    product: 'pooled',
    ask: (gift, key) => post('ann', `/api/v2/gifts/${gift}/voucher/claimed`, key),
    status: 200,
    events: ['GiftIssued', 'VoucherAssigned'],
  },
];

/** Whoever died holds its key for 30 s: they pass. */
async function letHoldsPass(): Promise<void> {
  const store = await service.openStore();
  try {
    for (const { key, value, version } of await store.records.list<{ readonly state: string }>('idempotency:')) {
      if (value.state === 'running')
        await store.records.put(key, { ...value, until: 0 }, { expected: version, expiresAt: Date.now() + 60_000 });
    }
  } finally {
    await store.close();
  }
}

/** The client: asks until it is answered. */
async function answered(ask: () => Promise<Reply>, now: Watched): Promise<Reply> {
  for (let tries = 1; ; tries++) {
    const reply = await ask();
    const died = now.dead;
    Object.assign(now, { dead: false, unknown: undefined });
    if (!died && reply.status < 500 && reply.status !== 409) return reply;
    assert.ok(tries < 10, `no answer: ${reply.status} ${reply.text}`);
    if (died || reply.status === 409) await letHoldsPass();
  }
}

/** How many events of this type there are that name it so. */
async function count(type: string, named: (data: Record<string, unknown>) => boolean = () => true): Promise<number> {
  let found = 0;
  for await (const batch of service.events.readAll(undefined, { types: [type] }))
    found += batch.events.filter(({ data }) => named(data as Record<string, unknown>)).length;
  return found;
}

let keys = 0;
/** The request, with what is to go wrong in it. @returns the points that it came to */
async function once(
  { product, before, ask, status, events }: Asking,
  plan: Watched['plan'],
): Promise<readonly string[]> {
  const gift = product === undefined ? undefined : await buyOne(service, product);
  if (gift !== undefined) {
    // Else the request may issue it first, or not: it would come to other points than the time before.
    await until(async () => (await service.events.read(giftStream(gift))).length > 0, 'the gift to be issued');
    await before?.(gift);
  }
  const [key, bought] = [`crash-${++keys}`, await count('GiftsPurchased')];
  const now: Watched = { gift, plan, points: [], happened: false, dead: false, unknown: undefined };
  const requested = (): Promise<Reply> => ask(gift ?? '', key);
  let reply: Reply;
  watched = now;
  try {
    reply = await answered(requested, now);
  } finally {
    watched = undefined;
  }
  assert.equal(now.happened, plan !== undefined, 'it goes wrong');
  assert.equal(reply.status, status, reply.text);
  await letHoldsPass();
  const again = await requested();
  assert.deepEqual([again.status, again.json], [reply.status, reply.json], 'the first outcome again');
  if (gift === undefined) assert.equal(await count('GiftsPurchased'), bought + 1);
  else
    assert.deepEqual(
      (await service.events.read(giftStream(gift))).map(({ type }) => type),
      events,
    );
  if (product === 'pooled') assert.equal(await count('VoucherCodeAssigned', ({ gift_id }) => gift_id === gift), 1);
  return now.points;
}

for (const request of REQUESTS) {
  test(request.name, async () => {
    const points = await once(request, undefined);
    for (const kind of ['append', 'get', 'put'] as const)
      assert.ok(
        points.some((point) => point.startsWith(kind)),
        `it comes to ${kind}`,
      );
    for (const point of points) {
      for (const fault of FAULTS[point.slice(0, point.indexOf(' ')) as Kind]) {
        await once(request, { point, fault }).catch((error: unknown) =>
          assert.fail(`${fault} @ ${point}: ${String(error)}`),
        );
      }
    }
  });
}

test.run();
