/** A person's gifts, however much of the log the read models have folded. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { phoneSubject } from '../../../src/domain/personalFields.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { findGifts } from '../../../src/ops/people/findGifts.js';
import type { PersonGiftDeps } from '../../../src/ops/people/personGifts.js';
import { byUserProjection } from '../../../src/projections/byUser.js';
import { giftsProjection } from '../../../src/projections/gifts.js';
import { redemptionsProjection } from '../../../src/projections/redemptions.js';
import { openReadModels } from '../../../src/projections/index.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';
import { type Installation, installed, newEvent, purchase, settled } from '../../support/fixtures/projecting.js';

const test = suite('gifts of a person');

const PROJECTIONS = [giftsProjection, transactionsProjection, byUserProjection, redemptionsProjection];
const NUMBER = '+447700900123';
const START = Date.parse('2026-03-01T10:00:00.000Z');

/** Appends a story; each event is a minute after the last one. */
function teller({ events }: Installation) {
  let minute = 0;
  const tell = async (stream: string, type: string, data: object): Promise<string> => {
    const at = new Date(START + ++minute * 60_000).toISOString();
    await events.append(stream, [newEvent(type, data, at)], 'any');
    return at;
  };
  return {
    tell,
    /** Buys and issues a gift for each receiver. */
    async buy(buyer_id: string, receivers: readonly object[], isIssued = true): Promise<readonly string[]> {
      const data = { ...purchase(receivers), buyer_id };
      const { transaction_id, product_id, brand_id, sale_price: value, expires_on } = data;
      const purchased_at = await tell(transactionStream(transaction_id), 'GiftsPurchased', data);
      const ids = deriveGiftIds(data.seed, receivers.length);
      if (!isIssued) return ids.map(({ gift_id }) => gift_id);
      await tell(transactionStream(transaction_id), 'PaymentCharged', {
        amount: 350,
        provider: 'test',
        charge_id: 'c',
      });
      for (const [index, { gift_id, message_id }] of ids.entries())
        await tell(giftStream(gift_id), 'GiftIssued', {
          transaction_id,
          index,
          message_id,
          product_id,
          brand_id,
          value,
          expires_on,
          purchased_at,
          sender_id: buyer_id,
          receiver: receivers[index] as object,
        });
      return ids.map(({ gift_id }) => gift_id);
    },
  };
}

const EVE = { person: { kind: 'user', userId: 'eve' } } as const;

async function listed(deps: PersonGiftDeps, search: Parameters<typeof findGifts>[1]): Promise<string[]> {
  const { gifts, count } = await findGifts(deps, search, { limit: 100 });
  assert.is(count, gifts.length);
  return gifts.map(({ gift_id, as, gift_status, last_event }) => `${gift_id} ${as} ${gift_status} ${last_event}`);
}

test(
  'are what they bought, got, claimed and were reassigned, once each, also those that went to others',
  installed(async (installation) => {
    const { events, store } = installation;
    const subjects = memorySubjects();
    const [phone_id = '', strange = ''] = await subjects.ids([phoneSubject(NUMBER), phoneSubject('+447700900999')]);
    const deps = { events, subjects };
    const { tell, buy } = teller(installation);
    await tell('user-eve', 'UserAdded', { id: 'eve', username: 'eve', name: 'eve', phone_number: NUMBER });
    const [early = ''] = await buy('dan', [{ phone_id }]);
    await tell(`phone-${phone_id}`, 'PhoneTaken', { user_id: 'eve' });
    const [bought = '', forOther = ''] = await buy('eve', [{ user_id: 'eve' }, { user_id: 'dan' }]);
    const [phoned = '', taken = '', toNobody = ''] = await buy('dan', [{ phone_id }, { user_id: 'eve' }, {}]);
    await tell(giftStream(toNobody), 'GiftClaimed', { user_id: 'eve' });
    await tell(giftStream(phoned), 'GiftRedeemed', { redemption_id: 'r', location_id: 's' });
    const reassign = async (gift: string, receiver: object): Promise<string> =>
      tell(giftStream(gift), 'GiftReassigned', { receiver, reason: '', transaction_id: 't' });
    await reassign(taken, { user_id: 'dan' });
    await reassign(taken, { phone_id: strange });
    const projected = async (work: () => Promise<void>): Promise<void> => {
      const projector = await installation.project({ projections: PROJECTIONS });
      await settled(projector, events);
      await work();
      await projector.close();
    };
    const before = [
      `${toNobody} claimer sent GiftClaimed`,
      ...[`${phoned} receiver redeemed GiftRedeemed`, `${taken} former receiver sent GiftReassigned`].toSorted(),
      ...[`${bought} buyer sent GiftIssued`, `${bought} receiver sent GiftIssued`].toSorted(),
      `${forOther} buyer sent GiftIssued`,
      `${early} receiver sent GiftIssued`,
    ];
    const models = () => openReadModels(store, events);
    const sorted = (lines: readonly string[]): string[] => lines.toSorted();
    const redeemed = { by: 'redemption', text: 'r' } as const;
    const ofRedemption = [`${phoned} undefined redeemed GiftRedeemed`];
    assert.equal(await listed({ ...deps, models: models(), withoutBuilds: true }, redeemed), ofRedemption);
    assert.equal(sorted(await listed({ ...deps, models: models(), withoutBuilds: true }, EVE)), sorted(before));
    await projected(async () => assert.equal(sorted(await listed({ ...deps, models: models() }, EVE)), sorted(before)));

    // What follows is not folded.
    const [moved = ''] = await buy('dan', [{ user_id: 'dan' }]);
    await reassign(moved, { phone_id });
    await reassign(early, { user_id: 'dan' });
    const [pending = ''] = await buy('eve', [{}], false);
    await tell(notificationStream(moved), 'NotificationSent', { attempt: 1 });
    const after = [
      `${pending} buyer pending GiftsPurchased`,
      `${moved} later receiver sent NotificationSent`,
      ...before.map((line) =>
        line.replace(`${early} receiver sent GiftIssued`, `${early} former receiver sent GiftReassigned`),
      ),
    ];
    assert.equal(sorted(await listed({ ...deps, models: models() }, EVE)), sorted(after));
    const [others = ''] = await buy('dan', [{ user_id: 'dan' }]);
    for (const type of ['GiftRedeemed', 'GiftUnredeemed'])
      await tell(giftStream(others), type, { redemption_id: 'later', location_id: 's' });
    for (const [text, found] of [
      ['r', ofRedemption],
      ['later', [`${others} undefined sent GiftUnredeemed`]],
      ['unknown', []],
    ] as const)
      assert.equal(await listed({ ...deps, models: models() }, { by: 'redemption', text }), found);
    const byPhone = { by: 'phone_number', text: NUMBER } as const;
    assert.equal(sorted(await listed({ ...deps, models: models() }, byPhone)), sorted(after));
    await projected(async () => {
      const found = await listed({ ...deps, models: models() }, EVE);
      assert.equal(sorted(found), sorted(after));
      assert.equal(found.slice(0, 2), after.slice(0, 2));
      const erased = { ...subjects, find: async () => [undefined] };
      assert.equal(sorted(await listed({ ...deps, subjects: erased, models: models() }, EVE)), sorted(after));
      const number = { person: { kind: 'number', phoneId: strange } } as const;
      assert.equal(await listed({ ...deps, models: models() }, number), [
        `${taken} later receiver sent GiftReassigned`,
      ]);
    });
  }),
);

test(
  'take no reading of the log once it is folded',
  installed(async (installation) => {
    const { events, store } = installation;
    const { buy } = teller(installation);
    for (let n = 0; n < 30; n++) await buy('dan', [{ user_id: 'eve' }]);
    await settled(await installation.project({ projections: PROJECTIONS }), events);
    let read = 0;
    const counted: PersonGiftDeps['events'] = {
      end: async () => events.end(),
      read: async (...asked) => events.read(...asked),
      async *readAll(...asked) {
        for await (const batch of events.readAll(...asked)) {
          read += batch.events.length;
          yield batch;
        }
      },
    };
    const deps = { events: counted, subjects: memorySubjects(), models: openReadModels(store, events) };
    assert.is((await listed(deps, EVE)).length, 30);
    assert.is(read, 0);
  }),
);

test('do not take longer for each gift of others that support has reassigned', async () => {
  const events = memoryEvents();
  const unbuilt = {
    reached: async () => Promise.resolve(false),
    folded: async () => Promise.reject(new UnavailableError('no build')),
  };
  const models = { gifts: unbuilt, byUser: unbuilt } as unknown as PersonGiftDeps['models'];
  const deps: PersonGiftDeps = { events, subjects: memorySubjects(), models, withoutBuilds: true };
  for (let n = 0; n < 3; n++) {
    const data = { ...purchase(Array<object>(10_000).fill({})), buyer_id: 'eve' };
    events.given(transactionStream(data.transaction_id), { type: 'GiftsPurchased', data });
  }
  const milliseconds = async (): Promise<number> => {
    const before = process.cpuUsage();
    assert.is((await findGifts(deps, EVE, { limit: 1 })).count, 30_000);
    return process.cpuUsage(before).user / 1_000;
  };
  const first = await milliseconds();
  for (let n = 0; n < 500; n++)
    events.given(giftStream(`other-${n}`), {
      type: 'GiftReassigned',
      data: { transaction_id: 't', receiver: { user_id: 'dan' }, reason: '' },
    });
  const then = await milliseconds();
  assert.ok(then < 3 * first + 300, `${then} ms of the processor instead of ${first}`);
});

test.run();
