/**
 * A till that follows docs/api/tills.md, while its connection is cut at every byte of the answer to a redemption, and
 * at places of its request: in the end till and log agree, and late requests change nothing.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { fold } from '../../src/domain/decider.js';
import { giftStream } from '../../src/domain/gift/events.js';
import { giftAggregate } from '../../src/domain/gift/state.js';
import { inParallel } from '../../src/lib/async/inParallel.js';
import { buy, redeem, unredeem } from '../support/service/giftFlow.js';
import { requestText } from '../support/service/rawHttp.js';
import { type Reply, type Service, startService } from '../support/service/service.js';

const test = suite("the till's protocol");
const TILL = 'till-coffee';
/** A gift's stream stays short. */
const CUTS_A_GIFT = 24;
const GIFTS_AT_ONCE = 8;
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

/** Where the connection ends: after so many bytes of the request, or of the answer. */
type Cut = { readonly sent: number } | { readonly received: number };

/** What the till has of the answer when the connection is gone. */
async function sendUntil(text: string, cut: Cut): Promise<Buffer> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  let answer = Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const end = (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('error', reject).on('close', end);
    if ('sent' in cut) {
      socket.write(text.slice(0, cut.sent), 'latin1', end);
      return;
    }
    socket.on('data', (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk]).subarray(0, cut.received);
      if (answer.length === cut.received) end();
    });
    socket.write(text, 'latin1', () => {
      if (cut.received === 0) end();
    });
  });
}

/** The status of a whole answer; `undefined`: it is not whole. */
function statusOf(answer: Buffer): number | undefined {
  const text = answer.toString('latin1');
  const head = text.indexOf('\r\n\r\n');
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
  return head >= 0 && answer.length - head - 4 === length ? Number(text.split(' ')[1]) : undefined;
}

async function settled(ask: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    const reply = await ask();
    if (reply.status !== 409 && reply.status !== 429 && reply.status < 500) return reply;
    await sleep(20);
  }
}

const again = async (gift: string, key: string): Promise<Reply> =>
  settled(async () => redeem(service, gift, TILL, 'bean-soho', { key }));
const cancel = async (gift: string, key: string): Promise<Reply> =>
  settled(async () => unredeem(service, gift, `key:${key}`, TILL));
const lookUp = async (gift: string, key: string): Promise<Reply> =>
  settled(async () =>
    service.ask('GET', `/api/v2/idempotency-keys/${key}?gift_id=${gift}`, { token: await service.userToken(TILL) }),
  );

/** What a till does without a whole answer. Each says whether it holds the gift for redeemed. */
const FOLLOWING = {
  repeats: async (gift: string, key: string) => (await again(gift, key)).status === 201,
  async asks(gift: string, key: string) {
    const { status, answer, redemption } = (await lookUp(gift, key)).json.data;
    if (status === 'done') return answer.status === 201 && redemption.redeemed === true;
    return this.repeats(gift, key);
  },
  async cancels(gift: string, key: string) {
    const reply = await cancel(gift, key);
    assert.equal(reply.status, 200, reply.text);
    return false;
  },
};
const NAMES = Object.keys(FOLLOWING) as (keyof typeof FOLLOWING)[];

async function isRedeemed(gift: string): Promise<boolean> {
  return fold(giftAggregate, await service.events.read(giftStream(gift))).status === 'redeemed';
}

async function requestOf(gift: string, key: string): Promise<string> {
  return requestText(
    'POST',
    `/api/v2/gifts/${gift}/redemptions`,
    {
      Authorization: `Bearer ${await service.userToken(TILL)}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    },
    JSON.stringify({ location_id: 'bean-soho' }),
  );
}

/** Cuts, follows the protocol, and holds both sides against each other. The gift is free again in the end. */
async function cutAndFollow(gift: string, key: string, cut: Cut, how: keyof typeof FOLLOWING): Promise<void> {
  const what = `${how}, cut at ${JSON.stringify(cut)}`;
  const status = statusOf(await sendUntil(await requestOf(gift, key), cut));
  const redeemed = status === undefined ? await FOLLOWING[how](gift, key) : status === 201;
  assert.equal(await isRedeemed(gift), redeemed, what);
  assert.equal((await cancel(gift, key)).status, 200, what);
  const { length } = await service.events.read(giftStream(gift));
  const { data } = (await lookUp(gift, key)).json;
  const late = await again(gift, key);
  if (data.status === 'void') assert.deepEqual([late.status, late.json], [422, { error: 'Redemption voided.' }], what);
  else assert.deepEqual([data.status, data.redemption.redeemed, late.status], ['done', false, 201], what);
  assert.equal((await service.events.read(giftStream(gift))).length, length, `${what}: a late request did something`);
}

async function cutAll(name: string, cuts: readonly Cut[]): Promise<void> {
  const gifts = await buy(
    service,
    'latte',
    Array.from({ length: Math.ceil(cuts.length / CUTS_A_GIFT) }, () => ({})),
  );
  await inParallel(gifts.entries(), GIFTS_AT_ONCE, async ([index, gift]) => {
    const first = index * CUTS_A_GIFT;
    for (const [n, cut] of cuts.slice(first, first + CUTS_A_GIFT).entries())
      await cutAndFollow(gift, `${name}-${String(first + n).padStart(6, '0')}`, cut, NAMES[n % NAMES.length] ?? 'asks');
  });
  // What a cut connection left behind would have ended by now.
  await sleep(200);
  for (const gift of gifts) assert.equal(await isRedeemed(gift), false, gift);
}

test('cut at every byte of the answer, both sides end at one truth', async () => {
  const [gift = ''] = await buy(service, 'latte', [{}]);
  const whole = await sendUntil(await requestOf(gift, 'answer-whole!'), { received: Number.POSITIVE_INFINITY });
  assert.equal(statusOf(whole), 201, whole.toString());
  assert.ok(whole.length > 300);
  await cutAll(
    'answer',
    Array.from({ length: whole.length + 1 }, (_, received) => ({ received })),
  );
});

test('cut within the request, or just after it, both sides end at one truth', async () => {
  const [gift = ''] = await buy(service, 'latte', [{}]);
  const { length } = await requestOf(gift, 'request-000000');
  const body = JSON.stringify({ location_id: 'bean-soho' }).length;
  const places = [0, 1, Math.floor(length / 2), length - body - 4, length - body, length - body + 1, length - 1];
  await cutAll(
    'request',
    [...places, ...Array.from({ length: 30 }, () => length)].flatMap((sent) => NAMES.map(() => ({ sent }))),
  );
});

test.run();
