/** Removal of data derived from a person's: in records (docs/personal-data.md#records-of-a-person) and read models. */
import { type AccessRequest, subjectOfCall } from '../../../domain/access.js';
import type { KeyedHash } from '../../../domain/keyedHash.js';
import { normaliseUsername } from '../../../lib/precis.js';
import {
  ANSWERS,
  COUNTERS,
  LOGIN_HASHES,
  LOGIN_SEEN,
  SEND_CLAIMS,
  SESSIONS,
  smsMarker,
} from '../../../domain/recordKeys.js';
import { pages } from '../../../lib/async/pages.js';
import { inJson } from '../../../lib/quotedText.js';
import { sleep } from '../../../lib/world.js';
import { ATTEMPTS, type WebhookAttempt } from '../../../messages/webhookAttempts.js';
import type { Position } from '../../../ports/eventStore.js';
import type { PutOptions, ReadStore, Records, StoredRecord } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { PERSONAL_READ_MODELS, type ReadModels } from '../../../projections/index.js';
import { SECRETS_CACHED_MS } from '../../../runtime/personal/index.js';
import { awaitNoneFrozen, dropRepairsOf } from '../../../runtime/readmodels/index.js';
import type { ErasureLog } from './erasureRecord.js';

/** Milliseconds after which every request that read a key before the fence has ended. */
const SETTLED_MS = SECRETS_CACHED_MS + 1_000;
/** Milliseconds to wait for the projector. A slower one is not working, and the same call continues later. */
const CAUGHT_UP_MS = 30_000;
const PAGE = 500;

export interface ErasureDeps extends ErasureLog {
  /** Resolves when no process uses a previously fenced key any more. */
  readonly settle: () => Promise<void>;
  /** Removes what records hold of the person. @throws UnavailableError */
  readonly removeRecords: (person: ErasedPerson) => Promise<void>;
  /** Removes what read models held of the person up to the position. @throws UnavailableError */
  readonly removeDerived: (position: Position) => Promise<void>;
}

/** The stores that hold data derived from the log. */
export interface DerivedStores {
  readonly store: ReadStore;
  readonly models: Pick<ReadModels, 'accounts'>;
  readonly hash: KeyedHash;
}

export const erasureDeps = (
  { events, keys, subjects }: ErasureLog,
  { store, models, hash }: DerivedStores,
): ErasureDeps => ({
  events,
  keys,
  subjects,
  settle: async () => sleep(SETTLED_MS),
  removeRecords: async (person) => eraseRecordsOf({ records: store.records, hash }, person),
  removeDerived: async (position) => removeDerived(store, models, position),
});

interface ErasedPerson {
  readonly userId?: string;
  /** Normalised usernames of the person. */
  readonly usernames: readonly string[];
  /** Phone numbers of the person, in E.164. */
  readonly numbers: readonly string[];
  readonly phoneIds: readonly string[];
  /** Search keys of support's texts about the person (`subjectOfCall`). */
  readonly texts: ReadonlySet<string>;
}

export interface EraseRecordsDeps {
  readonly records: Records;
  readonly hash: KeyedHash;
}

interface Answer {
  readonly state: string;
  readonly answer?: {
    readonly body?: string;
    /** Access record of a call under /ops. */
    readonly accessRecord?: { readonly request: AccessRequest };
  };
}

/**
 * Erases sessions, counters, the number in claims of messages, bodies of stored answers, responses of webhook
 * receivers, and orders of repairs. Records that requests from before the erasure still store are not found, so the
 * call must be repeated once those have ended. Safe to repeat.
 * @throws UnavailableError: a part may be done
 */
export async function eraseRecordsOf({ records, hash }: EraseRecordsDeps, person: ErasedPerson): Promise<void> {
  const { userId, usernames, numbers, phoneIds, texts } = person;

  const remove = async <V>(prefix: string, concerns: (value: V) => boolean = () => true): Promise<void> => {
    for await (const { key, value } of allRecords<V>(records, prefix)) if (concerns(value)) await records.delete(key);
  };

  if (userId !== undefined) {
    await remove<{ readonly user: string | null }>(SESSIONS, ({ user }) => user === userId);
    await remove<{ readonly user?: string }>(LOGIN_HASHES, ({ user }) => user === userId);
    await remove<{ readonly user?: string }>(LOGIN_SEEN, ({ user }) => user === userId);
    await records.delete(`${COUNTERS.smsBuyer}:${userId}`);
    await remove(smsMarker('buyer', userId));
  }
  for (const username of usernames.map((name) => hash('username', name))) {
    await records.delete(`${COUNTERS.loginUsername}:${username}`);
    await records.delete(LOGIN_HASHES + username);
    await remove(`${COUNTERS.loginPair}:${username}.`);
    await remove(`${LOGIN_SEEN}${username}.`);
  }
  for (const number of numbers.map((one) => hash('phone', one))) {
    await records.delete(`${COUNTERS.smsNumber}:${number}`);
    await remove(smsMarker('number', number));
  }

  const streams = new Set([
    ...(userId === undefined ? [] : [`user-${userId}`]),
    ...phoneIds.map((id) => `phone-${id}`),
  ]);
  await dropRepairsOf({ records }, streams);

  // A claim stays, so that its message is not sent again.
  await change<{ readonly to: string }>(records, SEND_CLAIMS, (claim) =>
    numbers.includes(claim.to) ? { ...claim, to: '' } : undefined,
  );
  const names = [...numbers.map(inJson), ...usernames.map((name) => `"${inJson(name)}"`)];
  await change<Answer>(records, ANSWERS, (stored) => {
    const { body, ...rest } = stored.answer ?? {};
    if (body === undefined) return undefined;
    const about = rest.accessRecord === undefined ? undefined : subjectOfCall(rest.accessRecord.request);
    if (about !== undefined && texts.has(about)) return { ...stored, answer: rest };
    // A body has usernames as they were written, so it is normalised.
    const folded = normaliseUsername(body);
    return names.some((text) => folded.includes(text)) ? { ...stored, answer: rest } : undefined;
  });
  // A webhook receiver may know the person from other sources, and name them in any form.
  const spelt = [...numbers.map((number) => number.slice(1)), ...usernames];
  await change<WebhookAttempt>(records, ATTEMPTS, (attempt) => {
    const { about, response } = attempt;
    if (response === '') return undefined;
    const folded = normaliseUsername(response);
    const names = (about !== undefined && texts.has(about)) || spelt.some((text) => folded.includes(text));
    return names ? { ...attempt, response: '' } : undefined;
  });
}

/** @param changed returns `undefined` where the record stays as it is */
async function change<V>(records: Records, prefix: string, changed: (value: V) => V | undefined): Promise<void> {
  for await (const listed of allRecords<V>(records, prefix)) {
    for (let record: StoredRecord<V> | undefined = listed; record !== undefined;) {
      const next = changed(record.value);
      if (next === undefined) break;
      const { key, version: expected, expiresAt }: StoredRecord<V> = record;
      const options: PutOptions = { expected, ...(expiresAt === undefined ? {} : { expiresAt }) };
      if ((await records.put(key, next, options)) !== undefined) break;
      record = await records.get<V>(key);
    }
  }
}

/** Records whose keys start with the prefix, in pages. @throws UnavailableError */
export async function* allRecords<V>(records: Records, prefix: string): AsyncGenerator<StoredRecord<V>, void> {
  for await (const page of pages<StoredRecord<V>>(PAGE, async (last) => records.list(prefix, PAGE, last?.key)))
    yield* page;
}

/**
 * Waits until read models have folded the erasure and builds that never will are dropped, and leaves nothing in unused
 * parts of files.
 * @throws UnavailableError where some read models are behind: the call must be repeated
 */
export async function removeDerived(
  store: ReadStore,
  { accounts }: Pick<ReadModels, 'accounts'>,
  position: Position,
): Promise<void> {
  if (!(await accounts.reached(position, CAUGHT_UP_MS))) throw unfinished(['accounts']);
  const behind = await awaitNoneFrozen(store, PERSONAL_READ_MODELS, position);
  if (behind.length > 0) throw unfinished(behind);
  await store.scrub();
}

/**
 * Error that names the missing projector: without it every repetition ends in the same way, and the command line starts
 * none.
 */
function unfinished(behind: readonly string[]): UnavailableError {
  return new UnavailableError(
    `the erasure is not finished: it has not reached ${behind.join(', ')} yet, for which a process with the role projector must run, of the release that builds it`,
    { publicReason: 'read models have not followed an erasure yet' },
  );
}
