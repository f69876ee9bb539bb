import { type CommandContext, partOf, transact } from '../../../commands/transact.js';
import { readReservation } from '../../../commands/readStreams.js';
import {
  accountStream,
  evolveUser,
  giveUpReservation,
  holderOf,
  phoneStream,
  type Reservation,
  reservationAggregate,
  type ReservationKind,
  type User,
} from '../../../domain/account.js';
import type { Aggregate, DomainEvent } from '../../../domain/decider.js';
import { type Entry, retireEntry } from '../../../domain/entry.js';
import { ERASURE_REASON, type Person } from '../../../domain/erasure.js';
import { userSubject } from '../../../domain/personalFields.js';
import { idOf, kindOf } from '../../../domain/streamName.js';
import type { EventStore } from '../../../ports/eventStore.js';
import { readableFields } from '../../../runtime/personal/index.js';
import type { Names, ReservedNames } from '../personTraces.js';
import type { ErasureLog } from './erasureRecord.js';

/** Data to be removed with a person who can do nothing any more. */
export interface Stopped {
  readonly userId?: string;
  /** Names of the person that no other user holds. */
  readonly names: Names;
  /** Ids of numbers that no other user holds, also of those whose rows are gone. */
  readonly phoneIds: readonly string[];
  /**
   * Holders in order of time of all numbers that the person ever had, by the number's id: gifts that another holder got
   * stay theirs.
   */
  readonly numberHolders: ReadonlyMap<string, Reservation>;
  /** Streams of names that were altered in the key store: other data with these names is not found. */
  readonly unreadable: readonly string[];
  /** Streams of the reservations of `names`. */
  readonly nameStreams: readonly string[];
  /** Ids of the key store rows of `names`. */
  readonly nameRows: readonly string[];
  /** Id of the key store row of a user's own fields, where there is one. */
  readonly ownFieldRows: readonly string[];
}

/**
 * Stops a person: no event of theirs can be appended, and no login finds them. Others are not harmed: names are
 * released, and may be taken. Former names are read from the log, so that they are found again when all keys are gone.
 * @throws UnavailableError, ConflictError
 */
export async function stopPerson(
  log: ErasureLog,
  person: Person,
  reserved: ReservedNames,
  context: CommandContext,
): Promise<Stopped> {
  if (person.kind === 'user') return stopUser(log, person.userId, reserved, context);
  const stream = phoneStream(person.phoneId);
  return {
    ...(await namesWith(log, [stream])),
    numberHolders: new Map([[person.phoneId, await readReservation(log.events, stream)]]),
    ownFieldRows: [],
  };
}

async function stopUser(
  log: ErasureLog,
  userId: string,
  reserved: ReservedNames,
  context: CommandContext,
): Promise<Stopped> {
  const { events, keys, subjects } = log;
  const ownFieldRows = (await subjects.rowsForErasure([userSubject(userId)])).flatMap((row) => row?.id ?? []);
  await keys.fence(ownFieldRows);
  await transact(events, userAggregate, accountStream('user', userId), partOf(context), (user) =>
    retireEntry('user', user, ERASURE_REASON),
  );
  const free: string[] = [];
  const numberHolders = new Map<string, Reservation>();
  for (const stream of await reserved.readOn(userId)) {
    const { state: reservation } = await transact(events, reservationAggregate, stream, partOf(context), (before) =>
      giveUpReservation(kindOf(stream) as ReservationKind, before, userId),
    );
    const holder = holderOf(reservation);
    if (holder === undefined || holder === userId) free.push(stream);
    if (kindOf(stream) === 'phone') numberHolders.set(idOf(stream), reservation);
  }
  return { ...(await namesWith(log, free)), userId, numberHolders, ownFieldRows };
}

/** A user's entry, without altered fields: they are destroyed with the others, and must not prevent the erasure. */
export const userAggregate: Aggregate<Entry<User>, DomainEvent> = {
  initial: { status: 'none' },
  evolve: (state, { type, data }) => evolveUser(state, { type, data: readableFields(data) }),
};

/** The names of these streams. */
async function namesWith(
  { subjects }: ErasureLog,
  streams: readonly string[],
): Promise<Pick<Stopped, 'names' | 'phoneIds' | 'nameStreams' | 'nameRows' | 'unreadable'>> {
  const texts = await subjects.secretsForErasure(streams.map(idOf));
  const nameStreams = streams.filter((stream) => texts.has(idOf(stream)));
  const named = (kind: ReservationKind): string[] =>
    nameStreams.flatMap((stream) => {
      const text = kindOf(stream) === kind ? texts.get(idOf(stream)) : undefined;
      return Buffer.isBuffer(text) ? [text.toString()] : [];
    });
  return {
    names: { usernames: named('username'), numbers: named('phone') },
    phoneIds: streams.filter((stream) => kindOf(stream) === 'phone').map(idOf),
    nameStreams,
    nameRows: nameStreams.map(idOf),
    unreadable: nameStreams.filter((stream) => !Buffer.isBuffer(texts.get(idOf(stream)))),
  };
}

/** Whether another user has taken one of the names since. @throws UnavailableError */
export async function isTaken(
  events: Pick<EventStore, 'read'>,
  { userId, nameStreams }: Pick<Stopped, 'userId' | 'nameStreams'>,
): Promise<boolean> {
  for (const stream of nameStreams) {
    const holder = holderOf(await readReservation(events, stream));
    if (holder !== undefined && holder !== userId) return true;
  }
  return false;
}
