/**
 * Checks HASH_KEY against the log. With another key no username or phone number would be found, and an import would add
 * every voucher code again, so the process must not start.
 */
import { EngineError } from '../lib/engineError.js';
import { type User, type UsernameTaken, accountStream, usernameStream } from '../domain/account.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import { type LogRestored, RESTORED_STREAM } from '../domain/restored.js';
import { normaliseUsername } from '../domain/precis.js';
import { type VoucherCodeAdded, voucherCodeStream } from '../domain/voucherCode.js';
import { HASH_KEY_FILE } from './keys.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';

/** More than one: an import that broke off may have left a username without its user. */
const MOST_STREAMS = 20;

export type CheckedLog = Pick<EventStore, 'read' | 'readAll'>;

/** A stream named by a keyed hash, and the names that the same data gives with another key. */
interface KeyedStream {
  readonly stream: string;
  readonly namesUnder: (hash: KeyedHash) => readonly string[];
}

/**
 * Refuses a key that fits none of the log's first usernames and voucher codes. A log without any accepts every key.
 * After a restore without the key only later events count.
 * @param findKey `undefined`: no key is set or stored. Called after the log was read, since a new installation makes
 * its key first
 * @throws EngineError naming HASH_KEY; UnavailableError
 */
export async function refuseUnlessHashKeyFits(events: CheckedLog, findKey: () => Buffer | undefined): Promise<void> {
  let strange = 0;
  for await (const { stream, namesUnder } of keyedStreams(events, await restoredWithoutKey(events))) {
    const key = findKey();
    if (key !== undefined && namesUnder(keyedHash(key)).includes(stream)) return;
    strange += 1;
    if (strange === MOST_STREAMS) break;
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

/** In log order after a position; the caller stops at the first match. */
async function* keyedStreams(events: CheckedLog, after: Position | undefined): AsyncGenerator<KeyedStream> {
  for await (const batch of events.readAll(
    after,
    { types: ['UsernameTaken', 'VoucherCodeAdded'] },
    { batchSize: MOST_STREAMS },
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

async function namesOf(events: CheckedLog, userId: string): Promise<string[]> {
  const history: readonly RecordedEvent[] = await events.read(accountStream('user', userId));
  return history.flatMap(({ type, data }) => {
    const { username } = data as Partial<User>;
    return (type === 'UserAdded' || type === 'UserChanged') && username !== undefined ? [username] : [];
  });
}

async function restoredWithoutKey(events: CheckedLog): Promise<Position | undefined> {
  const restores = await events.read(RESTORED_STREAM);
  return restores.findLast(({ data }) => (data as LogRestored['data']).without_key === true)?.position;
}
