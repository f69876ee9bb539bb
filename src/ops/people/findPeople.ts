/** Finds persons by what a caller at the support desk knows of them (docs/support.md#finding-people). */
import { readReservation } from '../../commands/readStreams.js';
import { holderOf, ownerByPhone, phoneStream, type User, usernameStream } from '../../domain/account.js';
import { type Person, personId } from '../../domain/erasure.js';
import {
  type GiftClaimed,
  giftStream,
  type GiftIssued,
  type GiftReassigned,
  type Receiver,
} from '../../domain/gift/events.js';
import type { NotificationSent } from '../../domain/notification.js';
import { phoneSubject, usernameSubject } from '../../domain/personalFields.js';
import { readPhoneNumber } from '../../domain/phoneNumber.js';
import { normaliseUsername } from '../../lib/precis.js';
import { Refusal } from '../../domain/refusal.js';
import { idOf } from '../../domain/streamName.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { readableFields } from '../../runtime/personal/index.js';
import { purchasesCharged } from '../purchases/purchasesCharged.js';
import type { PeopleLog } from './personTraces.js';

/** What support searches by, and how far a search goes. */
export const SEARCH = {
  /**
   * Kinds of text that find persons: a number, a username, a part of a name, ids of the payment or message provider.
   */
  peopleBy: ['phone_number', 'username', 'name', 'charge', 'message_id'],
  /**
   * Kinds of text that find gifts; `person`, `transaction`, `redemption`: ids as in paths, the others are as for
   * persons.
   */
  giftsBy: ['person', 'phone_number', 'username', 'transaction', 'charge', 'message_id', 'redemption'],
  /** Least number of characters of a part of a name. */
  shortestName: 2,
  /** Number of persons that are found at most. */
  mostPeople: 100,
  /**
   * Position between pages of gifts: a time, and how many of its gifts were answered. New gifts move no page: they come
   * before it, or last of their time.
   */
  giftsPosition: '^(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\\.(\\d{1,9})$',
} as const;

export type PeopleBy = (typeof SEARCH.peopleBy)[number];

export interface FoundPerson {
  /** Id of the person, as in paths under `/ops/people`. */
  readonly person: string;
  readonly kind: Person['kind'];
  /** Role of the person, where it was found by a charge or a message. */
  readonly role?: 'buyer' | 'receiver';
  readonly transaction_id?: string;
  readonly gift_id?: string;
}

export interface FoundPeople {
  readonly people: readonly FoundPerson[];
  /** Whether there are more than `SEARCH.mostPeople` persons. */
  readonly has_more: boolean;
}

/**
 * Searches for names, charges and messages take one reading of the log.
 * @throws Refusal `invalid_phone_number`; UnavailableError
 */
export async function findPeople(log: PeopleLog, by: PeopleBy, text: string): Promise<FoundPeople> {
  const found: FoundPerson[] = [];
  for await (const person of FINDERS[by](log, text)) {
    if (found.length === SEARCH.mostPeople) return { people: found, has_more: true };
    found.push(person);
  }
  return { people: found, has_more: false };
}

type Finder = (log: PeopleLog, text: string) => AsyncIterable<FoundPerson>;

const FINDERS: Readonly<Record<PeopleBy, Finder>> = {
  async *phone_number({ events, subjects }, text) {
    const number = readPhoneNumber(text);
    if (number === undefined) throw new Refusal('invalid_phone_number', 'phone_number');
    const [id] = await subjects.find([phoneSubject(number)]);
    if (id === undefined) return;
    const holder = holderOf(await readReservation(events, phoneStream(id)));
    yield holder === undefined ? found({ kind: 'number', phoneId: id }) : found({ kind: 'user', userId: holder });
  },

  async *username({ events, subjects }, text) {
    const [id] = await subjects.find([usernameSubject(normaliseUsername(text))]);
    const holder = id === undefined ? undefined : holderOf(await readReservation(events, usernameStream(id)));
    if (holder !== undefined) yield found({ kind: 'user', userId: holder });
  },

  async *name({ events }, text) {
    const part = text.toLocaleLowerCase();
    const names = new Map<string, string>();
    for await (const { stream, data } of eventsOf(events, ['UserAdded', 'UserChanged'])) {
      // A search leaves out a name that was altered.
      const { name } = readableFields(data) as Partial<User>;
      if (name !== undefined) names.set(idOf(stream), name);
    }
    for (const [userId, name] of names)
      if (name.toLocaleLowerCase().includes(part)) yield found({ kind: 'user', userId });
  },

  async *charge({ events }, text) {
    for await (const { data, at } of purchasesCharged(events, text)) {
      const { transaction_id, buyer_id, receivers } = data;
      yield found({ kind: 'user', userId: buyer_id }, { role: 'buyer', transaction_id });
      for (const receiver of receivers) yield* receiverIn(events, receiver, at, { transaction_id });
    }
  },

  async *message_id({ events }, text) {
    for await (const { giftId: gift_id, issued, receiver, at } of notifiedGifts(events, text)) {
      const about = { transaction_id: issued.transaction_id, gift_id };
      yield found({ kind: 'user', userId: issued.sender_id }, { role: 'buyer', ...about });
      yield* receiverIn(events, receiver, at, about);
    }
  },
};

/**
 * A gift that a message was sent about. `receiver` is that of the message, `at` the time when the gift became theirs.
 */
interface NotifiedGift {
  readonly giftId: string;
  readonly issued: GiftIssued['data'];
  readonly receiver: Receiver;
  readonly at: string;
}

const GIVES: ReadonlySet<string> = new Set(['GiftReassigned', 'GiftClaimed']);

function givenTo(given: RecordedEvent | undefined): Receiver | undefined {
  if (given?.type === 'GiftClaimed') return { user_id: (given.data as GiftClaimed['data']).user_id };
  return (given?.data as GiftReassigned['data'] | undefined)?.receiver;
}

export async function* notifiedGifts(events: PeopleLog['events'], messageId: string): AsyncGenerator<NotifiedGift> {
  for await (const { stream, data, position } of eventsOf(events, ['NotificationSent', 'ReminderSent'])) {
    if ((data as NotificationSent['data']).message_id !== messageId) continue;
    const giftId = idOf(stream);
    const [first, ...later] = await events.read(giftStream(giftId));
    if (first === undefined) continue;
    const issued = first.data as GiftIssued['data'];
    // Reminders go to the user who claimed a gift, so claims count as well.
    const given = later.findLast((event) => GIVES.has(event.type) && event.position < position);
    yield { giftId, issued, receiver: givenTo(given) ?? issued.receiver, at: given?.at ?? issued.purchased_at };
  }
}

const found = (person: Person, more: Omit<FoundPerson, 'person' | 'kind'> = {}): FoundPerson => ({
  person: personId(person),
  kind: person.kind,
  ...more,
});

/** Receiver of a gift: a gift that was sent to a number is its owner's (docs/api/gifts.md#gift-owner). */
async function* receiverIn(
  events: PeopleLog['events'],
  { user_id, phone_id }: Receiver,
  sentAt: string,
  about: Pick<FoundPerson, 'transaction_id' | 'gift_id'>,
): AsyncGenerator<FoundPerson> {
  const userId =
    phone_id === undefined ? user_id : ownerByPhone(await readReservation(events, phoneStream(phone_id)), sentAt);
  if (userId !== undefined) yield found({ kind: 'user', userId }, { role: 'receiver', ...about });
  else if (phone_id !== undefined) yield found({ kind: 'number', phoneId: phone_id }, { role: 'receiver', ...about });
}

async function* eventsOf(events: PeopleLog['events'], types: readonly string[]): AsyncGenerator<RecordedEvent> {
  for await (const batch of events.readAll(undefined, { types })) yield* batch.events;
}
