import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { purchaseSubject, phoneSubject } from '../../../src/domain/personalFields.js';
import { MASK } from '../../../src/lib/mask.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import { eventView } from '../../../src/ops/history/eventView.js';
import { withPersonalTexts } from '../../../src/ops/history/personalTexts.js';
import { sealText } from '../../../src/runtime/personal/sealedTexts.js';
import { memoryKeys } from '../../support/engines/memoryKeys.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';

const test = suite('personal texts of events');
const NUMBER = '+447700900001';

const recorded = (type: string, data: object): RecordedEvent => ({
  id: 'e',
  type,
  at: '',
  data,
  metadata: { commandId: 'c', correlationId: 'c', by: {} },
  stream: 's-1',
  revision: 0,
  position: '1',
});

test('shows numbers and messages to those who may see them, and masks them for others', async () => {
  const keys = memoryKeys();
  const subjects = memorySubjects(keys);
  const [phone_id = '', own = ''] = await subjects.ids([phoneSubject(NUMBER), purchaseSubject('t')]);
  const events = [
    recorded('GiftsPurchased', {
      message: await sealText(subjects, own, 'Enjoy'),
      receivers: [{ phone_id }, { user_id: 'bob' }, {}],
    }),
    recorded('GiftReassigned', { receiver: { phone_id }, reason: 'lost' }),
    recorded('GiftReassigned', { receiver: { user_id: 'bob' }, reason: 'lost' }),
    recorded('GiftClaimed', { user_id: 'bob' }),
  ];
  const shown = async (personal: boolean, known = subjects): Promise<object[]> =>
    (await withPersonalTexts(known, events, { personal })).map((event) => eventView(event, { personal }).data);
  const expected = (number: string, message: string): object[] => [
    { message, receivers: [{ phone_number: number }, { user_id: 'bob' }, {}] },
    { receiver: {}, phone_number: number, reason: 'lost' },
    { receiver: { user_id: 'bob' }, phone_number: null, reason: 'lost' },
    { user_id: 'bob' },
  ];
  assert.equal(await shown(true), expected(NUMBER, 'Enjoy'));
  assert.equal(await shown(false), expected(MASK, MASK));
  await keys.remove([phone_id, own]);
  assert.equal(await shown(true, memorySubjects(keys)), expected('', ''), 'erased');
});

test.run();
