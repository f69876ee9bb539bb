/**
 * Checks the keys against the log. With another HASH_KEY than the log's, or without its key store, no username or phone
 * number would be found, and an import would add every user and voucher code again: such a process must not start.
 */
import { EngineError } from '../lib/engineError.js';
import { HASH_KEY_FILE } from './keys.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import { usernameSubject } from '../domain/personalFields.js';
import { type LogRestored, RESTORED_STREAM } from '../domain/restored.js';
import { idOf } from '../domain/streamName.js';
import { type VoucherCodeAdded, voucherCodeStream } from '../domain/voucherCode.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { Subjects } from '../runtime/personal/subjects.js';

/** The most streams checked: an import that broke off may have left a username without its user. */
const MOST_STREAMS = 20;

export interface CheckedLog {
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  readonly keys: Pick<KeyStore, 'byId'>;
  readonly subjects: Pick<Subjects, 'secrets'>;
}

/** What the log says of a key: whether it fits, or that the key store lacks what would tell. */
type Witness = 'no row' | ((hash: KeyedHash) => boolean);

/**
 * Refuses a key under which none of the log's first usernames and voucher codes is found, and a key store that has none
 * of them. A log with neither takes any. In a log that was restored without its lost keys, only later events count.
 * @param findKey `undefined` where no key is set or kept; called once the log is seen to have one, since a process that
 * creates both makes the key first
 * @throws EngineError naming HASH_KEY or KEYS_URL; UnavailableError
 */
export async function refuseUnlessKeysFit(log: CheckedLog, findKey: () => Buffer | undefined): Promise<void> {
  let strange = 0;
  let withoutRow = 0;
  for await (const witness of witnesses(log, await restoredWithoutKey(log))) {
    const key = findKey();
    if (witness === 'no row') withoutRow += 1;
    else if (key !== undefined && witness(keyedHash(key))) return;
    strange += 1;
    if (strange === MOST_STREAMS) break;
  }
  if (strange === 0) return;
  const forGood = 'if it is lost for good, see gift restore --without-key';
  if (withoutRow === strange)
    throw new EngineError(
      'KEYS_URL',
      `the key store holds none of the log's usernames: put back the installation's own (keys.db in DATA_DIR, or the database of KEYS_URL); ${forGood}`,
    );
  const what =
    findKey() === undefined
      ? 'the key that the event log was made with is missing'
      : 'this is not the key that the event log was made with';
  throw new EngineError(
    'HASH_KEY',
    `${what}: put the installation's ${HASH_KEY_FILE} into DATA_DIR, or set HASH_KEY to what it was; ${forGood}`,
  );
}

/**
 * The log's usernames and voucher codes after a position, in log order: they come early, and reading ends with the
 * first that fits.
 */
async function* witnesses(
  { events, keys, subjects }: CheckedLog,
  after: Position | undefined,
): AsyncGenerator<Witness> {
  for await (const batch of events.readAll(
    after,
    { types: ['UsernameTaken', 'VoucherCodeAdded'] },
    { batchSize: MOST_STREAMS },
  )) {
    const ids = batch.events.flatMap(({ type, stream }) => (type === 'UsernameTaken' ? [idOf(stream)] : []));
    const [rows, names] = [await keys.byId(ids), await subjects.secrets(ids)];
    for (const { type, stream, data } of batch.events) {
      if (type === 'VoucherCodeAdded') {
        const { segment_id, code } = data as VoucherCodeAdded['data'];
        yield (hash) => stream === voucherCodeStream(segment_id, hash('code', code));
      } else {
        const [row, name] = [rows.get(idOf(stream)), names.get(idOf(stream))?.toString()];
        if (row === undefined || name === undefined) yield 'no row';
        else {
          const { kind, text } = usernameSubject(name);
          yield (hash) => row.lookup === hash(kind, text);
        }
      }
    }
  }
}

async function restoredWithoutKey({ events }: CheckedLog): Promise<Position | undefined> {
  const restores = await events.read(RESTORED_STREAM);
  return restores.findLast(({ data }) => (data as LogRestored['data']).without_key === true)?.position;
}
