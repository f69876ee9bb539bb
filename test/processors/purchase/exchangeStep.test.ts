/** A gift that is exchanged for its replacement: by support's command or by the process, whichever comes first. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { CommandContext } from '../../../src/commands/transact.js';
import { type ReplaceDeps, replaceGift } from '../../../src/commands/replaceGift.js';
import type { DomainEvent } from '../../../src/domain/decider.js';
import { type GiftReplaced, giftStream, type ReplacementDeclined } from '../../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { type GiftsPurchased, transactionStream } from '../../../src/domain/purchase/events.js';
import type { Recorded, RecordedEvent } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { exchange } from '../../../src/processors/purchase/exchangeStep.js';
import { causeOf } from '../../../src/processors/runner/cause.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';
import { giftIssued, giftsPurchased, SEED } from '../../support/fixtures/giftEvents.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';

const test = suite('the exchange of a gift for its replacement');
const NOW = '2026-05-04T12:00:00.000Z';
const [GIFT = ''] = deriveGiftIds(SEED, 1).map(({ gift_id }) => gift_id);
const OLD = transactionStream('t');
const DISPUTE = { provider: 'p', dispute_id: 'd', amount: 350, reason: 'fraudulent' };
const OPENED: DomainEvent = { type: 'DisputeOpened', data: DISPUTE };
const WON: DomainEvent = { type: 'DisputeClosed', data: { ...DISPUTE, outcome: 'won' } };

/** A gift that was bought, paid for and issued. */
function bought(): MemoryEvents {
  const events = memoryEvents();
  events.given(OLD, giftsPurchased({ transaction_id: 't', receivers: [{}] }), {
    type: 'PaymentCharged',
    data: { amount: 350, provider: 'p', charge_id: 'ch_1' },
  });
  events.given(giftStream(GIFT), giftIssued({ receiver: {}, expires_on: '2026-12-31' }));
  return events;
}

const replace = (events: MemoryEvents, commandId = 'k'): ReturnType<typeof replaceGift> => {
  const deps = { events, subjects: memorySubjects(), gifts: { get: async () => undefined } };
  const context: CommandContext = { commandId, correlationId: 'c', by: { user: 'sue' }, now: NOW };
  return replaceGift(deps as unknown as ReplaceDeps, GIFT, context, { voided: false, reason: 'lost' });
};
/** The purchases that replace the gift, in order. */
const replacements = ({ log }: MemoryEvents): RecordedEvent[] =>
  log.filter(({ type, stream }) => type === 'GiftsPurchased' && stream !== OLD);
/** The process does its step for one of these purchases, and appends what comes of it. */
async function process(events: MemoryEvents, number = 1): Promise<void> {
  const made = replacements(events)[number - 1] as Recorded<GiftsPurchased>;
  const now = (): number => Date.parse(NOW);
  const deps = { events, writer: openWriter(events, now), mayAct: () => undefined, now };
  const reason = { commandId: `charge-${made.data.transaction_id}`, cause: causeOf(made) };
  events.given(made.stream, await exchange(deps, made.data, reason));
}
/** Events of each replacement's purchase, and for which of them the gift was given. */
function outcome(events: MemoryEvents): { readonly purchases: string[][]; readonly given: number[] } {
  const made = replacements(events).map(({ stream }) => stream);
  const given = events.log.filter(({ type }) => type === 'GiftReplaced') as Recorded<GiftReplaced>[];
  return {
    purchases: made.map((stream) => events.log.filter((one) => one.stream === stream).map(({ type }) => type)),
    given: given.map(({ data }) => made.indexOf(transactionStream(data.replaced_by.transaction_id)) + 1),
  };
}

test('is never made by a command that looked before the process declined: it makes another purchase', async () => {
  const events = bought();
  events.beforeAppend = async (_, [first]) => {
    if (first?.type !== 'GiftReplaced') return;
    events.beforeAppend = () => undefined;
    events.given(OLD, OPENED);
    await process(events);
    events.given(OLD, WON);
  };
  await replace(events);
  assert.deepEqual(outcome(events), {
    purchases: [['GiftsPurchased', 'PaymentDeclined'], ['GiftsPurchased']],
    given: [2],
  });
  await process(events, 2);
  assert.deepEqual(outcome(events).purchases[1], ['GiftsPurchased', 'PaymentCharged']);
});

/** The command ends after its purchase; the process declines it in the gift's stream, and dies before it says so. */
async function declined(): Promise<MemoryEvents> {
  const events = bought();
  events.beforeAppend = (stream) => {
    if (stream === giftStream(GIFT)) throw new UnavailableError('down');
  };
  await assert.rejects(replace(events), UnavailableError);
  events.beforeAppend = () => undefined;
  events.given(OLD, OPENED);
  const { log } = events;
  const before = log.length;
  await process(events);
  (log as RecordedEvent[]).splice(before + 1);
  assert.deepEqual(log.at(-1)?.type, 'ReplacementDeclined');
  events.given(OLD, WON);
  return events;
}

test('is not made once it was declined, though the reason is gone', async () => {
  const events = await declined();
  await process(events);
  assert.deepEqual(outcome(events), { purchases: [['GiftsPurchased', 'PaymentDeclined']], given: [] });
  const kept = events.log.filter(({ type }) => type === 'ReplacementDeclined') as Recorded<ReplacementDeclined>[];
  assert.deepEqual(
    kept.map(({ data, metadata }) => [data.code, metadata.by.user]),
    [['gift_disputed', 'system:process-managers']],
  );
  assert.deepEqual(events.log.at(-1)?.data, { provider: 'replacement', code: 'gift_disputed' });
});

test('pays for the purchase that the gift was given for, and for no earlier one of the same command', async () => {
  const events = await declined();
  await replace(events);
  assert.deepEqual(outcome(events), { purchases: [['GiftsPurchased'], ['GiftsPurchased']], given: [2] });
  await process(events, 1);
  await process(events, 2);
  assert.deepEqual(outcome(events), {
    purchases: [
      ['GiftsPurchased', 'PaymentDeclined'],
      ['GiftsPurchased', 'PaymentCharged'],
    ],
    given: [2],
  });
});

test.run();
