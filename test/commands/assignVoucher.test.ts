import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { assignGiftVoucher, type VoucherDeps } from '../../src/commands/assignVoucher.js';
import { codePool } from '../../src/commands/codePool.js';
import type { CommandContext } from '../../src/commands/transact.js';
import { loadGift } from '../../src/commands/loadGift.js';
import { idFrom } from '../../src/commands/commandIds.js';
import { type GiftEvent, giftStream, type VoucherAssigned } from '../../src/domain/gift/events.js';
import { voucherCodeStream } from '../../src/domain/voucherCode.js';
import type { UserDocument } from '../../src/projections/accounts.js';
import { type VoucherCodeDocument, voucherCodesProjection } from '../../src/projections/voucherCodes.js';
import { foldDocument, type ReadModel } from '../../src/runtime/readmodels/index.js';
import { refusal } from '../support/assertions/rejects.js';
import { isGeneratedCode } from '../support/fixtures/generatedCode.js';
import { giftIssued } from '../support/fixtures/giftEvents.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite('commands/assign voucher');
const GIFT = 'b1946ac92492d2347c62';
const NOW = '2026-05-04T12:00:00.000Z';
const BOB = { entry: 'user', id: 'bob', merchant_id: null, permissions: [], roles: [] } as unknown as UserDocument;
const SEGMENTS = [
  { id: 'till', expiry: 30, voucherType: 'alpha/pin' },
  { id: 'app', expiry: 9_000, voucherType: 'qr' },
  { id: 'former', expiry: 9, voucherType: 'qr' },
  { id: 'foreign', expiry: 9, voucherType: 'qr' },
];
const context = (commandId: string): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'bob' },
  now: NOW,
});

/** The model of codes, folded from the log at each read. `upTo`: how many events it has; default: all. */
function codesOf(events: MemoryEvents, upTo = (): number => events.log.length): ReadModel<VoucherCodeDocument> {
  type Bounds = { readonly gte?: string; readonly lt?: string };
  const meets = (value: unknown, wanted: unknown): boolean => {
    if (typeof wanted !== 'object' || wanted === null) return value === wanted;
    const { gte, lt } = wanted as Bounds;
    return (gte === undefined || String(value) >= gte) && (lt === undefined || String(value) < lt);
  };
  return {
    folded: async () => events.log.slice(0, upTo()).at(-1)?.position,
    async find({ where = {}, limit }: { readonly where?: object; readonly limit?: number }) {
      const log = events.log.slice(0, upTo());
      const streams = new Set(log.map(({ stream }) => stream).filter((one) => one.startsWith('voucherCode-')));
      return [...streams]
        .flatMap((id) => {
          const body = foldDocument(
            voucherCodesProjection,
            log.filter(({ stream }) => stream === id),
            id,
          );
          return body === undefined ? [] : [{ id, body }];
        })
        .filter(({ body }) => Object.entries(where).every(([key, one]) => meets(body[key as 'code'], one)))
        .sort((one, other) => (one.body.probe < other.body.probe ? -1 : 1))
        .slice(0, limit);
    },
  } as unknown as ReadModel<VoucherCodeDocument>;
}

interface Installation {
  readonly deps: VoucherDeps;
  readonly events: MemoryEvents;
}

/** A gift of bob's whose product has two live segments, and these codes in the first one's pool. */
function installation(
  {
    codes = [],
    integration = '1',
    segments = ['former', 'till', 'app'],
    product = 'latte',
  }: {
    readonly codes?: readonly string[];
    readonly integration?: string;
    readonly segments?: readonly string[];
    readonly product?: string;
  } = {},
  ...then: readonly GiftEvent[]
): Installation {
  const events = memoryEvents();
  events.given(giftStream(GIFT), giftIssued(), ...then);
  for (const code of codes) addCode(events, code);
  const catalogue = {
    current: () => ({
      segments: new Map(SEGMENTS.map((segment) => [segment.id, segment])),
      products: new Map([[product, { segments }]]),
      brandOf: () => ({ integration_id: integration }),
      retired: (_: string, id: string) => id === 'former',
    }),
  } as unknown as VoucherDeps['catalogue'];
  const deps = { events, gifts: {} as VoucherDeps['gifts'], catalogue, pool: codePool(events, codesOf(events)) };
  return { deps, events };
}
const addCode = (events: MemoryEvents, code: string): void =>
  events.given(voucherCodeStream('till', code.padEnd(22, '0')), {
    type: 'VoucherCodeAdded',
    data: { segment_id: 'till', code, pin: `pin ${code}` },
  });
async function assign(
  { deps }: Installation,
  {
    segmentId,
    format = 'V1',
    command = 'k',
    user = BOB,
  }: {
    readonly segmentId?: string;
    readonly format?: 'V1' | 'V2';
    readonly command?: string;
    readonly user?: UserDocument;
  } = {},
): Promise<VoucherAssigned['data'] | undefined> {
  const loaded = await loadGift(deps, GIFT, user, NOW);
  const request = { format, ...(segmentId === undefined ? {} : { segmentId }) };
  const { own } = await assignGiftVoucher(deps, loaded, user, context(command), request);
  return own[0]?.data as VoucherAssigned['data'] | undefined;
}
const codesUsed = ({ log }: MemoryEvents): string[] =>
  log.flatMap(({ type, stream }) => (type === 'VoucherCodeAssigned' ? [stream.slice(-22).replace(/0+$/, '')] : []));

test('makes a code with a PIN for the first live segment, where that has no pool', async () => {
  const at = installation();
  const voucher = await assign(at);
  assert.ok(isGeneratedCode(voucher?.code ?? ''));
  assert.match(voucher?.pin ?? '', /^\d{4}$/);
  assert.deepEqual(
    { ...voucher, code: '', pin: '' },
    {
      voucher_id: idFrom('k', 'voucher'),
      code: '',
      pin: '',
      segment_id: 'till',
      expires_at: '2026-06-03T12:00:00.000Z',
    },
  );
  const other = await assign(installation(), { segmentId: 'app' });
  assert.deepEqual([other?.segment_id, other?.pin, other?.expires_at], ['app', null, '2026-06-30T23:59:59.999Z']);
});

test('a gift has one voucher, whatever is requested later', async () => {
  const at = installation();
  const first = await assign(at);
  assert.deepEqual(await assign(at), first, 'the same command');
  for (const segmentId of [undefined, 'app', 'former'])
    assert.equal(
      await assign(at, { command: `${segmentId}`, ...(segmentId === undefined ? {} : { segmentId }) }),
      undefined,
    );
  await assert.rejects(assign(at, { command: 'x', segmentId: 'never' }), refusal('invalid_segment'));
  assert.deepEqual(
    at.events.log.map(({ type }) => type),
    ['GiftIssued', 'VoucherAssigned'],
  );
});

test('refuses segments that the product does not have, or no more', async () => {
  for (const segmentId of ['former', 'foreign', 'never'])
    await assert.rejects(assign(installation(), { segmentId }), refusal('invalid_segment'));
  await assert.rejects(assign(installation({ segments: ['former'] })), refusal('voucher_not_available'));
  await assert.rejects(assign(installation({ segments: [] })), refusal('voucher_not_available'));
  const unknown = installation({ product: 'tea' });
  await assert.rejects(assign(unknown), refusal('voucher_not_available'), 'the catalogue lacks the product');
});

test('a V1 voucher needs an integration that has some, a V2 voucher does not', async () => {
  await assert.rejects(assign(installation({ integration: '9' })), refusal('voucher_not_available'));
  assert.equal((await assign(installation({ integration: '9' }), { format: 'V2' }))?.segment_id, 'till');
  const { deps, events } = installation();
  const current = { ...deps.catalogue.current(), brandOf: () => undefined };
  const catalogue = { current: () => current } as unknown as VoucherDeps['catalogue'];
  await assert.rejects(assign({ deps: { ...deps, catalogue }, events }), refusal('voucher_not_available'), 'no brand');
});

test('refuses strangers, staff, and gifts that cannot be used, and draws no code for them', async () => {
  const stranger = { ...BOB, id: 'eve' };
  const at = installation({ codes: ['A'] });
  await assert.rejects(assign(at, { user: stranger }), refusal('cannot_redeem'));
  await assert.rejects(assign(at, { user: { ...BOB, roles: ['support'] } }), refusal('staff_receives_no_gifts'));
  const cancelled = installation({ codes: ['A'] }, {
    type: 'GiftCancelled',
    data: { reason: 'refunded' },
  } as GiftEvent);
  await assert.rejects(assign(cancelled), refusal('gift_cancelled'));
  assert.deepEqual([codesUsed(at.events), codesUsed(cancelled.events)], [[], []]);
});

test('gives a code of the pool to one gift, and none where the pool is empty', async () => {
  const at = installation({ codes: ['A'] });
  const voucher = await assign(at);
  assert.deepEqual([voucher?.code, voucher?.pin], ['A', 'pin A']);
  assert.deepEqual(codesUsed(at.events), ['A']);
  const pool = codePool(at.events, codesOf(at.events));
  await assert.rejects(pool.draw('till', 'other', context('x')), refusal('voucher_not_available'));
  assert.equal(await pool.draw('app', 'other', context('x')), undefined, 'no pool');
});

test('gives the code of an interrupted draw again', async () => {
  const at = installation({ codes: ['A', 'B', 'C'] });
  const first = await at.deps.pool.draw('till', GIFT, context('interrupted'));
  const voucher = await assign(at);
  assert.deepEqual([voucher?.code, voucher?.pin], [first?.code, first?.pin]);
  assert.equal(codesUsed(at.events).length, 1);
});

test('gives a repeated draw of one command its code again, though the model is behind', async () => {
  const { events } = installation({ codes: ['A', 'B'] });
  const before = events.log.length;
  const stale = codePool(
    events,
    codesOf(events, () => before),
  );
  const first = await stale.draw('till', GIFT, context('x'));
  assert.deepEqual(await stale.draw('till', GIFT, context('x')), first);
  assert.deepEqual(codesUsed(events), [first?.code]);
});

test('takes the next code where another gift was first, though the model is behind', async () => {
  const { events } = installation({ codes: ['A', 'B'] });
  const before = events.log.length;
  const stale = codePool(
    events,
    codesOf(events, () => before),
  );
  const drawn = [await stale.draw('till', 'one', context('x')), await stale.draw('till', 'two', context('y'))];
  assert.deepEqual(new Set(drawn.map((one) => one?.code)), new Set(['A', 'B']));
  assert.deepEqual(
    drawn.map((one) => one?.code),
    codesUsed(events),
  );
  assert.equal(events.log.length, before + 2, 'nothing is appended to a code of another gift');
});

test('gives the PIN that an import has just changed, though the model is behind', async () => {
  const { events } = installation({ codes: ['A'] });
  const before = events.log.length;
  events.given(voucherCodeStream('till', 'A'.padEnd(22, '0')), { type: 'VoucherCodeChanged', data: { pin: 'new' } });
  const stale = codePool(
    events,
    codesOf(events, () => before),
  );
  for (const command of ['x', 'x', 'y'])
    assert.deepEqual(await stale.draw('till', 'one', context(command)), { code: 'A', pin: 'new' });
});

test('generates no code for a pool that only the log knows yet, and one for a segment with a like id', async () => {
  const { events } = installation({ codes: ['A'] });
  const added = events.log.findIndex(({ type }) => type === 'VoucherCodeAdded');
  const stale = codePool(
    events,
    codesOf(events, () => added),
  );
  await assert.rejects(stale.draw('till', 'one', context('x')), refusal('voucher_not_available'));
  events.given(voucherCodeStream('app-2', 'B'.padEnd(22, '0')), {
    type: 'VoucherCodeAdded',
    data: { segment_id: 'app-2', code: 'B', pin: null },
  });
  assert.equal(await stale.draw('app', 'one', context('y')), undefined);
});

test('reads on where all codes of a round were taken', async () => {
  const { events } = installation({ codes: ['A'] });
  let upTo = events.log.length;
  const other = codePool(events, codesOf(events));
  await other.draw('till', 'one', context('x'));
  addCode(events, 'B');
  let reads = 0;
  const behind = codesOf(events, () => {
    if (++reads > 4) upTo = events.log.length;
    return upTo;
  });
  assert.equal((await codePool(events, behind).draw('till', 'two', context('y')))?.code, 'B');
});

test('gives up where a model that is behind shows only codes that are taken', async () => {
  const { events } = installation({ codes: ['A'] });
  const before = events.log.length;
  const stale = codePool(
    events,
    codesOf(events, () => before),
  );
  await stale.draw('till', 'one', context('x'));
  await assert.rejects(stale.draw('till', 'two', context('y')), refusal('voucher_not_available'));
  assert.deepEqual(codesUsed(events), ['A']);
});

test.run();
