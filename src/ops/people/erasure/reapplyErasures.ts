/**
 * Repeats erasures after a log, a key store, or both were restored to an earlier time. Each store knows the erasures
 * that the other has lost; an external list knows those that both have lost (docs/personal-data.md#erasure).
 */
import { fold } from '../../../domain/decider.js';
import {
  erasureRequestAggregate,
  type PersonErased,
  personId,
  personOfStream,
  personStream,
} from '../../../domain/erasure.js';
import { userSubject } from '../../../domain/personalFields.js';
import { Refusal } from '../../../domain/refusal.js';
import { randomUUID } from '../../../lib/world.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { Records } from '../../../ports/readStore.js';
import { storedPosition } from '../../../ports/storedPosition.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { type ErasureDeps, type EraseRecordsDeps, eraseRecordsOf } from './derivedData.js';
import { endPerson } from './endPerson.js';
import {
  type Erasure,
  erasedIn,
  type ErasureLog,
  isFinished,
  isRequest,
  storedErasures,
  storeErasure,
  unfinished,
} from './erasureRecord.js';
import { endRequest, erasureRequestedIn } from './requestErasure.js';

/** Key of the record that holds the last scan. */
const SCANNED = 'erasures/looked';

/**
 * Result of an earlier scan: the log up to `position` held no erasure or request unknown to the key store. The key
 * store then had `known` erasures and ends of erasures; one that was restored since has fewer.
 */
interface Scan {
  readonly position: Position;
  readonly known: number;
}

interface OpenErasure {
  readonly erasure: Erasure;
  readonly error: Error;
}

/** Erasures that were repeated after a restore. */
export interface Reapplied {
  /** Number of persons who were erased again. */
  readonly again: number;
  /** Erasures that wait or failed. They are stored as unfinished ones, so that a running service finishes them. */
  readonly open: readonly OpenErasure[];
  /** Result for the next scan; `undefined` where it must scan the whole log. */
  readonly scanned: Scan | undefined;
}

export interface RepeatOptions {
  readonly now: string;
  /** Erasures that may be unknown to both log and key store. */
  readonly listed?: readonly Erasure[];
  /** Records of the read store: data of the persons is removed from them, and they hold the last scan. */
  readonly derived?: EraseRecordsDeps;
}

/**
 * Repeats erasures that a restore of the log or the key store has undone, before anything is served from them.
 * @throws UnavailableError
 */
export async function repeatErasures(
  { events, keys, subjects }: ErasureLog,
  { now, listed, derived }: RepeatOptions,
): Promise<Reapplied> {
  const nothing = async (): Promise<void> => undefined;
  const deps: ErasureDeps = {
    events,
    keys,
    subjects,
    // A service that runs afterwards finishes the erasures, with its read models.
    settle: nothing,
    removeRecords: derived === undefined ? nothing : async (person) => eraseRecordsOf(derived, person),
    removeDerived: nothing,
  };
  const scanned = derived && (await earlierScan(derived.records, events));
  const repeated = await reapplyErasures(deps, now, { listed, scanned });
  if (repeated.scanned !== undefined) await unlessAway(derived?.records.put(SCANNED, repeated.scanned));
  return repeated;
}

async function earlierScan(records: Records, events: EventStore): Promise<Scan | undefined> {
  const scanned = (await unlessAway(records.get<Scan>(SCANNED)))?.value;
  return scanned !== undefined && (await storedPosition(events, scanned.position)).invalid === null
    ? scanned
    : undefined;
}

/** The call's result; `undefined` while the read store is unavailable: a start can do without the record. */
async function unlessAway<T>(call: Promise<T> | undefined): Promise<T | undefined> {
  return call?.catch((error: unknown) => {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  });
}

/**
 * Erases persons again whom the log or the key store shows as not erased. Read models are left to the service, since
 * the erasures are stored as unfinished. Reads the log from `scanned` on, and once more for each erasure.
 * @param listed erasures that may be unknown to both log and key store
 * @throws UnavailableError
 */
export async function reapplyErasures(
  deps: ErasureDeps,
  now: string,
  {
    listed = [],
    scanned,
  }: { readonly listed?: readonly Erasure[] | undefined; readonly scanned?: Scan | undefined } = {},
): Promise<Reapplied> {
  const stored = new Map<string, Erasure>();
  for await (const erasure of storedErasures(deps.keys)) stored.set(erasure.id, erasure);
  const known = stored.size + [...stored.values()].filter(isFinished).length;
  const done = [...stored.values()].filter(({ done_at }) => done_at !== undefined);
  const { inLog, requested, position } = await erasuresInLog(
    deps,
    scanned !== undefined && known >= scanned.known ? scanned.position : undefined,
  );
  await restoreRequests(deps, now, stored, requested, listed);
  const isKnown = ({ id }: Erasure): boolean => {
    const erasure = stored.get(id);
    return erasure !== undefined && !isRequest(erasure);
  };
  const lost = [
    ...(await lostByKeys(deps, inLog, stored)),
    ...(await lostByLog(deps, inLog, done)),
    ...listed.filter((one) => one.withdrawn_at === undefined && !isRequest(one) && !inLog.has(one.id) && !isKnown(one)),
  ];
  const open: OpenErasure[] = [];
  for (const erasure of lost) {
    const commandId = randomUUID();
    try {
      await endPerson(deps, erasure, { commandId, correlationId: commandId, by: erasure.by, now });
    } catch (error) {
      // A refused erasure is stored as withdrawn already.
      if (!(error instanceof Refusal)) await storeErasure(deps.keys, unfinished(erasure));
      open.push({ erasure, error: error instanceof Error ? error : new Error(String(error)) });
    }
  }
  return {
    again: lost.length - open.length,
    open,
    scanned: open.length > 0 || position === undefined ? undefined : { position, known },
  };
}

async function erasuresInLog(
  { events }: Pick<ErasureLog, 'events'>,
  after: Position | undefined,
): Promise<{
  readonly inLog: ReadonlyMap<string, Erasure>;
  readonly requested: readonly Erasure[];
  readonly position: Position | undefined;
}> {
  const inLog = new Map<string, Erasure>();
  const requested: Erasure[] = [];
  let position = after;
  for await (const batch of events.readAll(after, { types: ['PersonErased', 'ErasureRequested'] })) {
    for (const event of batch.events) {
      if (event.type === 'ErasureRequested') {
        requested.push(erasureRequestedIn(event));
        continue;
      }
      const erasure = erasureIn(event);
      inLog.set(erasure.id, erasure);
    }
    ({ position } = batch);
  }
  return { inLog, requested, position };
}

function erasureIn({ stream, data, at, metadata }: RecordedEvent): Erasure {
  const { erasure_id: id, reason } = data as PersonErased['data'];
  return { id, person: personOfStream(stream), reason, by: metadata.by, at };
}

/**
 * Restores requests that the key store has lost, and withdrawals that the log or the key store has lost. A request that
 * the log has lost is appended again when it is due.
 * @param requested requests in the log
 */
async function restoreRequests(
  { events, keys }: Pick<ErasureLog, 'events' | 'keys'>,
  now: string,
  stored: ReadonlyMap<string, Erasure>,
  requested: readonly Erasure[],
  listed: readonly Erasure[],
): Promise<void> {
  for (const erasure of [...stored.values(), ...listed]) {
    if (erasure.due_at === undefined || erasure.withdrawn_at === undefined) continue;
    const request = fold(erasureRequestAggregate, await events.read(personStream(erasure.person)));
    const known = stored.get(erasure.id);
    if (request.status === 'requested' && request.id === erasure.id) {
      const commandId = randomUUID();
      const context = { commandId, correlationId: commandId, by: { user: 'system:erasures' }, now };
      await endRequest({ events, keys }, erasure, context, 'a restore had undone the withdrawal');
    } else if (known !== undefined && isRequest(known)) await storeErasure(keys, erasure);
  }
  for (const erasure of [...requested, ...listed.filter(isRequest)]) {
    if (stored.has(erasure.id)) continue;
    const history = await events.read(personStream(erasure.person));
    const request = fold(erasureRequestAggregate, history);
    if (erasedIn(history) !== undefined || (request.status !== 'none' && request.id !== erasure.id)) continue;
    if (request.status === 'started') await storeErasure(keys, { ...erasure, started_at: now });
    else if (request.status !== 'withdrawn') await storeErasure(keys, erasure);
  }
}

/** Erasures in the log that the key store does not know, or whose person it still has. */
async function lostByKeys(
  { keys, subjects }: ErasureLog,
  inLog: ReadonlyMap<string, Erasure>,
  stored: ReadonlyMap<string, Erasure>,
): Promise<readonly Erasure[]> {
  const users = [...inLog.values()].flatMap(({ person }) => (person.kind === 'user' ? [person] : []));
  const phoneIds = [...inLog.values()].flatMap(({ person }) => (person.kind === 'number' ? [person.phoneId] : []));
  const userRows = await subjects.rowsForErasure(users.map(({ userId }) => userSubject(userId)));
  const present = new Set([
    ...users.filter((_, index) => userRows[index] !== undefined).map(personId),
    ...[...(await keys.byId(phoneIds)).keys()].map((phoneId) => personId({ kind: 'number', phoneId })),
  ]);
  return [...inLog.values()].filter(({ id, person }) => {
    const known = stored.get(id);
    return known === undefined || (known.withdrawn_at === undefined && present.has(personId(person)));
  });
}

/**
 * Erasures that the log has lost, though it has the user. A number may have no stream before its erasure, so it needs
 * none.
 */
async function lostByLog(
  { events }: Pick<ErasureLog, 'events'>,
  inLog: ReadonlyMap<string, Erasure>,
  done: readonly Erasure[],
): Promise<readonly Erasure[]> {
  const lost: Erasure[] = [];
  for (const erasure of done) {
    if (inLog.has(erasure.id)) continue;
    const history = await events.read(personStream(erasure.person));
    if (erasedIn(history) === undefined && (erasure.person.kind === 'number' || history.length > 0)) lost.push(erasure);
  }
  return lost;
}
