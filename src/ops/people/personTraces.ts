/** What the log holds of a person besides their own stream, from one reading of it; and by which ids it names them. */
import { readReservation } from '../../commands/readStreams.js';
import {
  accountStream,
  evolvePaymentMethod,
  ownerByPhone,
  type PaymentMethod,
  phoneStream,
  type Reservation,
  type User,
} from '../../domain/account.js';
import type { Entry } from '../../domain/entry.js';
import { type Person, personOfStream } from '../../domain/erasure.js';
import { giftStream, type GiftIssued, type GiftReassigned, type Receiver } from '../../domain/gift/events.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { normaliseUsername } from '../../lib/precis.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import { idOf, kindOf } from '../../domain/streamName.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { readableFields, type Subjects } from '../../runtime/personal/index.js';

/** Ids by which gifts, purchases and payment methods are recognised as a person's. */
export interface Identity {
  /** Id of the user; absent where the person is a number. */
  readonly userId?: string;
  /** Ids of numbers that are the person's: a gift to such a number that is no user's is theirs. */
  readonly phoneIds: ReadonlySet<string>;
  /**
   * Holders, in order of time, of these and of all numbers that the person ever had, by the numbers' ids: a gift that
   * was sent is its owner's (docs/api/gifts.md#gift-owner).
   */
  readonly numberHolders: ReadonlyMap<string, Reservation>;
}

/** All names by which a user was ever found: usernames normalised, numbers in E.164. */
export interface Names {
  readonly usernames: readonly string[];
  readonly numbers: readonly string[];
}

/** A log, and the subjects of its personal data. */
export interface PeopleLog {
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  readonly subjects: Pick<Subjects, 'find' | 'rowsForErasure' | 'secrets'>;
}

export interface ReservedNames {
  /**
   * Reads the log further, up to its present end.
   * @returns streams of the names that the user ever had
   * @throws UnavailableError
   */
  readOn(userId: string): Promise<ReadonlySet<string>>;
}

/** Reader of the names that one person ever had. @param after position behind which the log is read */
export function reservedNames(events: Pick<EventStore, 'readAll'>, after?: Position): ReservedNames {
  const streams = new Set<string>();
  let position = after;
  return {
    async readOn(userId) {
      for await (const batch of events.readAll(position, { types: ['UsernameTaken', 'PhoneTaken'] })) {
        for (const { stream, data } of batch.events)
          if ((data as { readonly user_id: string }).user_id === userId) streams.add(stream);
        ({ position } = batch);
      }
      return streams;
    },
  };
}

/** Ids of the numbers that a user had up to a position; `undefined`: the log's beginning. */
export interface FoldedNumbers {
  readonly phoneIds: readonly string[];
  readonly position: Position | undefined;
}

const NOTHING_FOLDED: FoldedNumbers = { phoneIds: [], position: undefined };

/**
 * A person's names, and the numbers by which gifts were ever theirs. The log names these, since the key store has lost
 * those that were erased for a later holder.
 * @throws UnavailableError
 */
export async function identityOf(
  { events }: Pick<PeopleLog, 'events'>,
  person: Person,
  folded = NOTHING_FOLDED,
): Promise<Identity & Names> {
  if (person.kind === 'number') {
    const { phoneId } = person;
    const numberHolders = new Map([[phoneId, await readReservation(events, phoneStream(phoneId))]]);
    return { phoneIds: new Set([phoneId]), numberHolders, usernames: [], numbers: [] };
  }
  const { userId } = person;
  const usernames = new Set<string>();
  const numbers = new Set<string>();
  for (const { data } of await events.read(accountStream('user', userId))) {
    const { username = '', phone_number = null } = data as Partial<User>;
    if (username !== '') usernames.add(normaliseUsername(username));
    if (phone_number !== null) numbers.add(phone_number);
  }
  const numberHolders = new Map<string, Reservation>();
  const later = await reservedNames(events, folded.position).readOn(userId);
  for (const stream of [...folded.phoneIds.map(phoneStream), ...later])
    if (kindOf(stream) === 'phone' && !numberHolders.has(idOf(stream)))
      numberHolders.set(idOf(stream), await readReservation(events, stream));
  return { userId, phoneIds: new Set(), numberHolders, usernames: [...usernames], numbers: [...numbers] };
}

/** Gifts of one purchase that the person got, at a time (ISO 8601, UTC). */
export interface GotGifts {
  readonly transaction_id: string;
  readonly at: string;
  readonly as: 'receiver' | 'claimer' | 'later receiver';
  readonly giftIds: () => readonly string[];
}

export interface TraceVisitor {
  /** Further event types. `see` gets every event of these types, after its effect on gifts was visited. */
  readonly others?: readonly string[];
  see?(event: RecordedEvent): void;
  /** Called where a gift went to another receiver; it may not have been the person's. */
  lost?(giftId: string): void;
  bought(purchase: GiftsPurchased['data'], at: string): void | Promise<void>;
  got(gifts: GotGifts): void;
}

interface UsableMethod extends Omit<PaymentMethod, 'customer'> {
  /** Customer id at the provider. @throws AlteredDataError */
  readonly customer: () => PaymentMethod['customer'];
  /** Ids of other users of the method who are not erased. */
  readonly others: readonly string[];
}

interface TraceReading {
  /** Payment methods that the person may use. */
  methods(): readonly UsableMethod[];
  /** Reads the log further, up to its present end. @throws UnavailableError */
  readOn(): Promise<void>;
}

const TYPES: readonly string[] = [
  'PaymentMethodAdded',
  'PaymentMethodChanged',
  'PaymentMethodRetired',
  'PaymentMethodErased',
  'PersonErased',
  'GiftsPurchased',
  'GiftClaimed',
  'GiftReassigned',
];

/** Whether a gift that a receiver got at a time (ISO 8601) is the person's. */
export function isTheirs(
  { userId, phoneIds, numberHolders }: Identity,
  { user_id, phone_id }: Receiver,
  sentAt: string,
): boolean {
  const owner = phone_id === undefined ? user_id : ownerByPhone(numberHolders.get(phone_id) ?? [], sentAt);
  if (owner === undefined) return phone_id !== undefined && phoneIds.has(phone_id);
  return owner === userId;
}

/** @param after position behind which the log is read; absent: from its beginning */
export function readTraces(
  events: Pick<EventStore, 'read' | 'readAll'>,
  identity: Identity,
  visitor: TraceVisitor,
  after?: Position,
): TraceReading {
  const { userId } = identity;
  const methods = new Map<string, Entry<PaymentMethod>>();
  const customers = new Map<string, UsableMethod['customer']>();
  const erased = new Set<string>();
  const types = [...new Set([...TYPES, ...(visitor.others ?? [])])];
  let position = after;

  async function note(event: RecordedEvent): Promise<void> {
    if (TYPES.includes(event.type)) await trace(event);
    if (visitor.others?.includes(event.type) === true) visitor.see?.(event);
  }

  async function trace({ type, stream, data, at }: RecordedEvent): Promise<void> {
    switch (type) {
      case 'GiftsPurchased': {
        const purchase = data as GiftsPurchased['data'];
        const { transaction_id, seed, receivers } = purchase;
        if (purchase.buyer_id === userId) await visitor.bought(purchase, at);
        const theirs = receivers.flatMap((receiver, index) => (isTheirs(identity, receiver, at) ? [index] : []));
        if (theirs.length === 0) return;
        const giftIds = (): readonly string[] => {
          const ids = deriveGiftIds(seed, receivers.length);
          return theirs.flatMap((index) => ids[index]?.gift_id ?? []);
        };
        visitor.got({ transaction_id, at, as: 'receiver', giftIds });
        return;
      }
      case 'GiftClaimed': {
        if ((data as { readonly user_id: string }).user_id !== userId) return;
        const [issued] = await events.read(giftStream(idOf(stream)), { limit: 1 });
        if (issued === undefined) return;
        const { transaction_id } = issued.data as GiftIssued['data'];
        visitor.got({ transaction_id, at, as: 'claimer', giftIds: () => [idOf(stream)] });
        return;
      }
      case 'GiftReassigned': {
        const { receiver, transaction_id } = data as GiftReassigned['data'];
        if (isTheirs(identity, receiver, at))
          visitor.got({ transaction_id, at, as: 'later receiver', giftIds: () => [idOf(stream)] });
        else visitor.lost?.(idOf(stream));
        return;
      }
      case 'PersonErased': {
        const person = personOfStream(stream);
        if (person.kind === 'user') erased.add(person.userId);
        return;
      }
      default: {
        const reference = idOf(stream);
        const before = methods.get(reference) ?? { status: 'none' };
        // Altered fields of another person's method must not keep this person's methods from being found.
        methods.set(reference, evolvePaymentMethod(before, { type, data: readableFields(data) }));
        if (type === 'PaymentMethodErased') customers.delete(reference);
        else if (Object.hasOwn(data, 'customer')) customers.set(reference, () => (data as PaymentMethod).customer);
      }
    }
  }

  return {
    methods: () =>
      [...methods].flatMap(([reference, entry]) =>
        userId !== undefined && entry.status !== 'none' && entry.value.users.includes(userId)
          ? [
              {
                ...entry.value,
                reference,
                customer: customers.get(reference) ?? ((): null => null),
                others: entry.value.users.filter((id) => id !== userId && !erased.has(id)),
              },
            ]
          : [],
      ),
    async readOn() {
      for await (const batch of events.readAll(position, { types })) {
        for (const event of batch.events) await note(event);
        ({ position } = batch);
      }
    },
  };
}
