import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { phoneSubject } from '../../../src/domain/personalFields.js';
import { findGifts } from '../../../src/ops/people/findGifts.js';
import { findPeople } from '../../../src/ops/people/findPeople.js';
import { openReadModels } from '../../../src/projections/index.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';
import { installed } from '../../support/fixtures/projecting.js';
import { eventOf } from '../../support/service/testLog.js';

const test = suite('finding people');

/** Sold to once, and not any more. */
const LANDLINE = '+442079460018';
const PREMIUM = '+449098790000';

test('finds the receiver and the user whose numbers are not valid any more, and their gifts', async () => {
  const events = memoryEvents();
  const subjects = memorySubjects();
  const [landlineId = '', premiumId = ''] = await subjects.ids([phoneSubject(LANDLINE), phoneSubject(PREMIUM)]);
  const append = async (stream: string, type: string, data: object): Promise<void> => {
    await events.append(stream, [eventOf(type, data, '2026-05-04T10:00:00.000Z')], 'any');
  };
  await append('user-eve', 'UserAdded', { id: 'eve', username: 'eve', name: 'eve', phone_number: PREMIUM });
  await append(`phone-${premiumId}`, 'PhoneTaken', { user_id: 'eve' });
  await append('transaction-t', 'GiftsPurchased', {
    transaction_id: 't',
    seed: '0'.repeat(64),
    buyer_id: 'eve',
    receivers: [{ phone_id: landlineId }],
    message: '',
  });
  const deps = { events, subjects };
  const { people } = await findPeople(deps, 'phone_number', '020 7946 0018');
  assert.equal(people, [{ person: `phone:${landlineId}`, kind: 'number' }]);
  assert.equal((await findPeople(deps, 'phone_number', PREMIUM)).people, [{ person: 'eve', kind: 'user' }]);
  await installed(async ({ store }) => {
    const search = { ...deps, models: openReadModels(store, events), withoutBuilds: true } as const;
    const { gifts } = await findGifts(search, { by: 'phone_number', text: LANDLINE }, { limit: 10 });
    assert.equal(
      gifts.map(({ transaction_id, as }) => [transaction_id, as]),
      [['t', 'receiver']],
    );
  })();
});

test.run();
