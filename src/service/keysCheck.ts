/**
 * Checks the keys against the log. A process with another HASH_KEY than the log's, or without its key store, must not
 * start. It would find no username or phone number, and an import would add every user and voucher code again.
 */
import { EngineError } from '../lib/engineError.js';
import { HASH_KEY_FILE, MASTER_KEY_FILE } from './keys.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import { lookupOf, usernameSubject } from '../domain/personalFields.js';
import { type LogRestored, RESTORED_STREAM } from '../domain/restored.js';
import { idOf } from '../domain/streamName.js';
import { type VoucherCodeAdded, voucherCodeStream } from '../domain/voucherCode.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import type { KeyStore } from '../ports/keyStore.js';
import { type AlteredDataError, type Subjects, UnknownMasterKeyError } from '../runtime/personal/index.js';

/** The keys are not the log's. */
export class OtherKeysError extends EngineError {}

/** Most streams that are checked: several, since an interrupted import may have left a username without its user. */
const MOST_STREAMS = 20;

export interface CheckedLog {
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  readonly keys: Pick<KeyStore, 'byId' | 'removed'>;
  /** Reads secrets also of users who are being erased: their rows still show whether the key fits. */
  readonly subjects: Pick<Subjects, 'secretsForErasure'>;
}

/** A stream of the log that is found by means of HASH_KEY. `fits` tells whether a given key finds it. */
interface Probe {
  readonly fits: (hash: KeyedHash) => boolean;
  /** State of the stream's row in the key store, or why the row can't be opened. Absent: the stream needs no row. */
  readonly row?: 'missing' | 'opened' | Closed;
}

type Closed = UnknownMasterKeyError | AlteredDataError;

/**
 * Refuses a HASH_KEY under which none of the log's first usernames and voucher codes is found. Refuses a key store that
 * has none of the usernames, and a MASTER_KEY that opens none. Any keys fit a log without usernames and voucher codes.
 * In a log that was restored without its lost keys, only later events count; its key store has no rows from before that
 * MASTER_KEY can't open.
 * @param findKey returns `undefined` where no key is set or stored. It is called only once the log has shown a username
 * or voucher code, since a process that creates both makes the key first
 * @throws OtherKeysError naming HASH_KEY, KEYS_URL or MASTER_KEY; UnavailableError
 */
export async function refuseUnlessKeysFit(log: CheckedLog, findKey: () => Buffer | undefined): Promise<void> {
  const restored = await restoredWithoutKey(log);
  if (restored !== undefined) await refuseRowsOfLostKey(log, restored);
  const { fits, probed, usernames, rows, opened, closed } = await probe(log, restored, findKey);
  if (usernames > 0 && rows === 0)
    throw new OtherKeysError(
      'KEYS_URL',
      `the key store holds none of the log's usernames: put back the installation's own (keys.db in DATA_DIR, or the database of KEYS_URL); ${IF_LOST}`,
    );
  if (closed !== undefined && opened === 0)
    throw new OtherKeysError(
      'MASTER_KEY',
      `${closed.message}: put the installation's ${MASTER_KEY_FILE} into DATA_DIR, or set MASTER_KEY to what it was; if it is lost for good, see gift restore --without-key`,
      closed,
    );
  if (fits || probed === 0) return;
  const what =
    findKey() === undefined
      ? 'the key that the event log was made with is missing'
      : 'this is not the key that the event log was made with';
  throw new OtherKeysError(
    'HASH_KEY',
    `${what}: put the installation's ${HASH_KEY_FILE} into DATA_DIR, or set HASH_KEY to what it was; ${IF_LOST}`,
  );
}

const IF_LOST = 'if it is lost for good, see gift restore --without-key';

interface Probed {
  readonly fits: boolean;
  readonly probed: number;
  readonly usernames: number;
  /** Number of usernames with a row in the key store. */
  readonly rows: number;
  /** Number of rows that one of the given master keys opens. */
  readonly opened: number;
  /** The error of the last row that none of the master keys opens. */
  readonly closed?: Closed;
}

/** Reads usernames and voucher codes until a key fits and a row is opened, or enough of them were read. */
async function probe(log: CheckedLog, after: Position | undefined, findKey: () => Buffer | undefined): Promise<Probed> {
  let found: Probed = { fits: false, probed: 0, usernames: 0, rows: 0, opened: 0 };
  for await (const { fits, row } of probes(log, after)) {
    const key = findKey();
    found = {
      fits: found.fits || (key !== undefined && fits(keyedHash(key))),
      probed: found.probed + 1,
      usernames: found.usernames + (row === undefined ? 0 : 1),
      rows: found.rows + (row === undefined || row === 'missing' ? 0 : 1),
      opened: found.opened + (row === 'opened' ? 1 : 0),
      ...(typeof row === 'object' ? { closed: row } : found.closed && { closed: found.closed }),
    };
    if (found.fits ? found.opened > 0 || found.usernames >= MOST_STREAMS : found.probed >= MOST_STREAMS) break;
  }
  return found;
}

/** Probes of the log's usernames and voucher codes after a position, in log order: they are early in a log. */
async function* probes({ events, keys, subjects }: CheckedLog, after: Position | undefined): AsyncGenerator<Probe> {
  for await (const batch of events.readAll(
    after,
    { types: ['UsernameTaken', 'VoucherCodeAdded'] },
    { batchSize: MOST_STREAMS },
  )) {
    const ids = batch.events.flatMap(({ type, stream }) => (type === 'UsernameTaken' ? [idOf(stream)] : []));
    const [rows, removed] = [await keys.byId(ids), await keys.removed(ids)];
    const names = await namesIn(subjects, ids);
    for (const { type, stream, data } of batch.events) {
      // The username of an erased user has no row.
      if (removed.has(idOf(stream))) continue;
      if (type === 'VoucherCodeAdded') {
        const { segment_id, code } = data as VoucherCodeAdded['data'];
        yield { fits: (hash) => stream === voucherCodeStream(segment_id, hash('code', code)) };
      } else {
        const [row, name] = [rows.get(idOf(stream)), names.get(idOf(stream))];
        yield {
          fits: (hash) => typeof name === 'string' && row?.lookup === lookupOf(hash, usernameSubject(name)),
          row: row === undefined || name === undefined ? 'missing' : typeof name === 'string' ? 'opened' : name,
        };
      }
    }
  }
}

/**
 * Usernames of these ids, or the error of a row that can't be opened. An altered row, or one wrapped under a key that
 * was not given, must not hide the others.
 */
async function namesIn(
  subjects: CheckedLog['subjects'],
  ids: readonly string[],
): Promise<ReadonlyMap<string, string | Closed>> {
  try {
    const secrets = await subjects.secretsForErasure(ids);
    return new Map([...secrets].map(([id, name]) => [id, Buffer.isBuffer(name) ? name.toString() : name]));
  } catch (error) {
    if (!(error instanceof UnknownMasterKeyError)) throw error;
    const [id] = ids;
    if (id !== undefined && ids.length === 1) return new Map([[id, error]]);
  }
  // One of the rows can't be opened, so each is read by itself.
  const names = new Map<string, string | Closed>();
  for (const id of ids) for (const [known, name] of await namesIn(subjects, [id])) names.set(known, name);
  return names;
}

/**
 * Refuses a key store with the old rows of a log that was restored without its keys, where MASTER_KEY opens none: read
 * models would wait for that key for ever.
 * @throws OtherKeysError naming KEYS_URL; UnavailableError
 */
async function refuseRowsOfLostKey({ events, subjects }: CheckedLog, restored: Position): Promise<void> {
  for await (const batch of events.readAll(undefined, { types: ['UsernameTaken'] }, { batchSize: MOST_STREAMS })) {
    const ids = batch.events.flatMap(({ position, stream }) => (position < restored ? [idOf(stream)] : []));
    const names = [...(await namesIn(subjects, ids)).values()];
    const closed = names.find((name) => name instanceof UnknownMasterKeyError);
    if (closed !== undefined && !names.some((name) => typeof name === 'string'))
      throw new OtherKeysError(
        'KEYS_URL',
        `the log was restored without its keys, and MASTER_KEY opens no row that the key store has of before: begin with an empty key store (move keys.db out of DATA_DIR, or name another database), or put the installation's ${MASTER_KEY_FILE} back`,
        closed,
      );
    // The first usernames tell; a batch may also only report how far the log was read.
    if (batch.events.length > 0) return;
  }
}

async function restoredWithoutKey({ events }: CheckedLog): Promise<Position | undefined> {
  const restores = await events.read(RESTORED_STREAM);
  return restores.findLast(({ data }) => (data as LogRestored['data']).without_key === true)?.position;
}
