import type { CommandContext } from '../../../commands/context.js';
import { readReservation } from '../../../commands/readStreams.js';
import { holderOf, phoneStream, type Reservation, type ReservationKind } from '../../../domain/account.js';
import type { Person } from '../../../domain/erasure.js';
import { lookupOf, userSubject } from '../../../domain/personalFields.js';
import { idOf, kindOf } from '../../../domain/streamName.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { ErasureDeps } from './erasureDeps.js';
import type { Names } from './names.js';
import { freeReservation, retireUser } from './retire.js';

/** Data to be removed with a person who can do nothing any more. */
export interface Stopped {
  readonly userId?: string;
  /** Names of the person that no other user holds. */
  readonly names: Names;
  /** Ids of numbers that no other user holds, also of those whose rows are gone. */
  readonly phoneIds: readonly string[];
  /** Holders in order of time of the numbers that another user holds now, by the number's id. */
  readonly held: ReadonlyMap<string, Reservation>;
  /** Streams of names that were altered in the key store: other data with these names is not found. */
  readonly unread: readonly string[];
  /** Streams of the reservations of `names`. */
  readonly streams: readonly string[];
  /** Ids of the key store rows of `names`. */
  readonly rows: readonly string[];
  /** Ids of the row of a user's own fields. */
  readonly own: readonly string[];
}

/**
 * Stops a person: no event of theirs can be appended, and no login finds them. Others are not harmed: names are
 * released, and may be taken. Former names are read from the log, so that they are found again when all keys are gone.
 * @throws UnavailableError, ConflictError
 */
export async function stopPerson(
  deps: ErasureDeps,
  person: Person,
  reserved: ReservedNames,
  context: CommandContext,
): Promise<Stopped> {
  return person.kind === 'user' ? stopUser(deps, person.userId, reserved, context) : numberOf(deps, person.phoneId);
}

async function stopUser(
  deps: ErasureDeps,
  userId: string,
  reserved: ReservedNames,
  context: CommandContext,
): Promise<Stopped> {
  const { events, keys, hash } = deps;
  const own = [...(await keys.byLookup([lookupOf(hash, userSubject(userId))])).values()].map(({ id }) => id);
  await keys.fence(own);
  await retireUser(events, userId, context);
  const free: string[] = [];
  const held = new Map<string, Reservation>();
  for (const stream of await reserved.readOn(userId)) {
    const reservation = await freeReservation(events, stream, userId, context);
    const holder = holderOf(reservation);
    if (holder === undefined || holder === userId) free.push(stream);
    else if (kindOf(stream) === 'phone') held.set(idOf(stream), reservation);
  }
  return { ...(await rowsOf(deps, free)), userId, held, own };
}

const numberOf = async (deps: ErasureDeps, phoneId: string): Promise<Stopped> => ({
  ...(await rowsOf(deps, [phoneStream(phoneId)])),
  held: new Map(),
  own: [],
});

async function rowsOf(
  { subjects }: ErasureDeps,
  free: readonly string[],
): Promise<Pick<Stopped, 'names' | 'phoneIds' | 'streams' | 'rows' | 'unread'>> {
  const texts = await subjects.secretsForErasure(free.map(idOf));
  const streams = free.filter((stream) => texts.has(idOf(stream)));
  const named = (kind: ReservationKind): string[] =>
    streams.flatMap((stream) => {
      const text = kindOf(stream) === kind ? texts.get(idOf(stream)) : undefined;
      return Buffer.isBuffer(text) ? [text.toString()] : [];
    });
  return {
    names: { usernames: named('username'), numbers: named('phone') },
    phoneIds: free.filter((stream) => kindOf(stream) === 'phone').map(idOf),
    streams,
    rows: streams.map(idOf),
    unread: streams.filter((stream) => !Buffer.isBuffer(texts.get(idOf(stream)))),
  };
}

export interface ReservedNames {
  /**
   * Reads the log further, up to its present end.
   * @returns streams of the names that the user ever had
   * @throws UnavailableError
   */
  readOn(userId: string): Promise<ReadonlySet<string>>;
}

/** Reader of the names that one person ever had. */
export function reservedNames(events: Pick<EventStore, 'readAll'>): ReservedNames {
  const streams = new Set<string>();
  let position: Position | undefined;
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

/** Whether another user has taken one of the names since. @throws UnavailableError */
export async function isTaken(
  events: Pick<EventStore, 'read'>,
  { userId, streams }: Pick<Stopped, 'userId' | 'streams'>,
): Promise<boolean> {
  for (const stream of streams) {
    const holder = holderOf(await readReservation(events, stream));
    if (holder !== undefined && holder !== userId) return true;
  }
  return false;
}
