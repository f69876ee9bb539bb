/**
 * Holds HASH_KEY against the log. With another key than the log was made with, nobody's username or phone number would
 * be found, and an import would add every voucher code once more, so that it is handed out twice: such a process must
 * not begin.
 */
import { EngineError } from '../lib/engineError.js';
import type { User, UsernameTaken } from '../domain/account.js';
import { accountStream, usernameStream } from '../domain/account.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import { type LogRestored, RESTORED_STREAM } from '../domain/restored.js';
import { normaliseUsername } from '../domain/precis.js';
import { type VoucherCodeAdded, voucherCodeStream } from '../domain/voucherCode.js';
import { HASH_KEY_FILE } from './keys.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';

/** So many witnesses are heard: an import that broke off may have left a username without its user. */
const WITNESSES = 20;

/** The part of a log that is looked at. */
export type CheckedLog = Pick<EventStore, 'read' | 'readAll'>;

/** A stream whose name is a keyed hash of what the log tells elsewhere: the names it could have, by key. */
interface Witness {
  readonly stream: string;
  readonly namesUnder: (hash: KeyedHash) => readonly string[];
}

/**
 * Refuses a key under which none of the first usernames and voucher codes of the log is found. `findKey` gives
 * `undefined` where none is set or kept; it is asked once the log is seen to have one: another process that makes log
 * and key right now has made the key before. A log with neither takes any key. Of one that was restored without its
 * key, which is lost, only what came after that is held against the new one.
 * @throws EngineError naming HASH_KEY; UnavailableError
 */
export async function refuseUnlessHashKeyFits(events: CheckedLog, findKey: () => Buffer | undefined): Promise<void> {
  let strange = 0;
  for await (const { stream, namesUnder } of witnesses(events, await restoredWithoutKey(events))) {
    const key = findKey();
    if (key !== undefined && namesUnder(keyedHash(key)).includes(stream)) return;
    strange += 1;
    if (strange === WITNESSES) break;
  }
  if (strange === 0) return;
  const what =
    findKey() === undefined
      ? 'the key that the event log was made with is missing'
      : 'this is not the key that the event log was made with';
  throw new EngineError(
    'HASH_KEY',
    `${what}: put the installation's ${HASH_KEY_FILE} into DATA_DIR, or set HASH_KEY to what it was; if it is lost for good, see gift restore --without-key`,
  );
}

/**
 * The log's usernames and voucher codes after a position, in its order. Accounts and codes come early in a log, and a
 * reading ends with the first that fits.
 */
async function* witnesses(events: CheckedLog, after: Position | undefined): AsyncGenerator<Witness> {
  for await (const batch of events.readAll(
    after,
    { types: ['UsernameTaken', 'VoucherCodeAdded'] },
    { batchSize: WITNESSES },
  )) {
    for (const { type, stream, data } of batch.events) {
      if (type === 'VoucherCodeAdded') {
        const { segment_id, code } = data as VoucherCodeAdded['data'];
        yield { stream, namesUnder: (hash) => [voucherCodeStream(segment_id, hash('code', code))] };
      } else if (type === 'UsernameTaken') {
        const names = await namesOf(events, (data as UsernameTaken['data']).user_id);
        if (names.length > 0)
          yield {
            stream,
            namesUnder: (hash) => names.map((name) => usernameStream(hash('username', normaliseUsername(name)))),
          };
      }
    }
  }
}

/** Every username that a user ever had. */
async function namesOf(events: CheckedLog, userId: string): Promise<string[]> {
  const history: readonly RecordedEvent[] = await events.read(accountStream('user', userId));
  return history.flatMap(({ type, data }) => {
    const { username } = data as Partial<User>;
    return (type === 'UserAdded' || type === 'UserChanged') && username !== undefined ? [username] : [];
  });
}

/** Where the log was last restored without its key. */
async function restoredWithoutKey(events: CheckedLog): Promise<Position | undefined> {
  const restores = await events.read(RESTORED_STREAM);
  return restores.findLast(({ data }) => (data as LogRestored['data']).without_key === true)?.position;
}
