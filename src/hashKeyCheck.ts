/**
 * Holds HASH_KEY against the log. With another key than the log was made with, nobody's username or phone number would be found, and an import would add
 * every voucher code once more, so that it is handed out twice: such a process must not begin.
 */
import { EngineError } from './adapters/engineError.js';
import type { User, UsernameTaken } from './domain/account.js';
import { accountStream, usernameStream } from './domain/account.js';
import { keyedHash } from './domain/keyedHash.js';
import { type LogRestored, RESTORED_STREAM } from './domain/restored.js';
import { normaliseUsername } from './domain/username.js';
import { HASH_KEY_FILE } from './keys.js';
import type { EventStore, RecordedEvent } from './ports/eventStore.js';

/** Usernames are looked for in so many events: accounts come early in a log, and starting must not read all of it. */
const EVENTS = 20_000;
/** So many usernames are tried: an import that broke off may have left one without its user. */
const USERNAMES = 20;

/** The part of a log that is looked at. */
export type CheckedLog = Pick<EventStore, 'read' | 'readAll'>;

/**
 * Refuses a key under which none of the first usernames of the log is found. `findKey` gives `undefined` where none is set or kept; it is asked once the log is
 * seen to have a username: another process that makes log and key right now has made the key before. A log without users takes any key, and so does one that
 * was restored without its key, since that is lost.
 * @throws EngineError naming HASH_KEY; UnavailableError
 */
export async function refuseUnlessHashKeyFits(events: CheckedLog, findKey: () => Buffer | undefined): Promise<void> {
  let strange = 0;
  for await (const { user_id, stream } of usernames(events)) {
    const names = await namesOf(events, user_id);
    const key = findKey();
    if (key !== undefined && names.some((name) => stream === usernameStream(keyedHash(key)('username', normaliseUsername(name))))) return;
    if (names.length > 0) strange += 1;
    if (strange === USERNAMES) break;
  }
  if (strange === 0 || (await restoredWithoutKey(events))) return;
  const what = findKey() === undefined ? 'the key that the event log was made with is missing' : 'this is not the key that the event log was made with';
  throw new EngineError('HASH_KEY', `${what}: put the installation's ${HASH_KEY_FILE} into DATA_DIR, or set HASH_KEY to what it was; if it is lost for good, see gift restore --without-key`);
}

/** The first reservations of usernames, with whose they are. */
async function* usernames(events: CheckedLog): AsyncGenerator<{ readonly user_id: string; readonly stream: string }> {
  let seen = 0;
  for await (const batch of events.readAll(undefined, undefined, { batchSize: 500 })) {
    for (const { type, stream, data } of batch.events) {
      if (seen++ === EVENTS) return;
      if (type === 'UsernameTaken') yield { stream, user_id: (data as UsernameTaken['data']).user_id };
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

async function restoredWithoutKey(events: CheckedLog): Promise<boolean> {
  const restores = await events.read(RESTORED_STREAM);
  return restores.some(({ data }) => (data as LogRestored['data']).without_key === true);
}
