/** The deliveries to all endpoints, in the process that leads: one line for each endpoint. */
import { inParallel } from '../lib/async/inParallel.js';
import { pauseForBeats } from '../lib/async/beats.js';
import { pause } from '../lib/async/pause.js';
import { idOf } from '../domain/streamName.js';
import { ticks } from '../lib/world.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import type { StoredRecord } from '../ports/readStore.js';
import { LOOKS, positionFault, type ReachedLog, shownPosition } from '../ports/storedPosition.js';
import { UnavailableError } from '../ports/unavailable.js';
import { newSources } from '../projections/feed/feedPage.js';
import {
  endpointDocument,
  type EndpointDocument,
  type WebhookDocument,
  webhookEndpointsProjection,
} from '../projections/webhookEndpoints.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { FollowerRun } from '../runtime/supervision/followers.js';
import { giveUp } from './abandoned.js';
import { forgetDeleted, forgetEndpoint } from './forgotten.js';
import { type Line, openLine } from './line.js';
import type { LineDeps } from './lineState.js';
import {
  enabledAgain,
  firstProgress,
  resumedAgain,
  type Progress,
  progressRecord,
  storedProgress,
} from './progress.js';
import { nextRequests } from './requests.js';
import { openReach } from './reach.js';
import { openSlots } from '../lib/async/slots.js';
import type { DeliveryTally } from './tally.js';

/** Concurrent attempts to all endpoints (`main`), and to those that fail or are slow (`aside`). */
const AT_ONCE = { main: 256, aside: 128 };
const POLL_MS = 50;
/** Milliseconds between two polls of the feed while it holds all that the log is known to hold. */
const IDLE_POLL_MS = 500;
const POLL_AGAIN_MS = 30_000;
const BUILT_POLL_MS = 500;
const REPAIRS_POLL_MS = 1_000;
/** Endpoints that are opened or read concurrently. */
const OPENED_AT_ONCE = 16;
/** Longest wait for the read model to fold the log's events of an endpoint. */
const FOLD_MS = 10_000;

export interface SessionDeps extends Omit<
  LineDeps,
  'slots' | 'reach' | 'lease' | 'fail' | 'onTrouble' | 'logId' | 'tally'
> {
  readonly events: ReachedLog & Pick<EventStore, 'logId' | 'follow' | 'read'>;
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'edition' | 'get' | 'find' | 'folded' | 'reached'>;
  /** Whether the read models of endpoints and of the feed are built. */
  readonly areBuilt: () => Promise<boolean>;
  /** Events up to this position are delivered only if the owner requests them; absent: all are delivered. */
  readonly resumedAt?: Position | undefined;
  readonly tally: DeliveryTally;
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
}

interface SessionOptions {
  /** Ends the session; also aborted when the lease is lost. */
  readonly signal: AbortSignal;
  readonly lease: LineDeps['lease'];
}

/** The deliveries of a process, while it leads. */
interface Session {
  readonly deps: SessionDeps;
  readonly lineDeps: LineDeps;
  readonly lines: Map<string, Line>;
  /** Closings in progress, by endpoint. */
  readonly closings: Map<string, Promise<void>>;
  readonly looking: Set<string>;
  /** Endpoints to be read again, and the time from which they are, by the monotonic clock. */
  readonly pollAgain: Map<string, number>;
  /** A position that the log has reached, the latest that is known: earlier ones need no read of the log. */
  reachedTo: Position;
  /** Position of an event, the latest that was followed: the feed is to fold it soon. */
  followedTo: Position;
  /** Aborted once the log has grown. */
  growth: AbortController;
  /** Aborted when the session ends, or has failed. */
  readonly over: AbortSignal;
  readonly fail: (error: unknown) => void;
}

/** Delivers until `signal`, then waits a little for attempts in progress. @throws the first failure of any line */
export async function deliver(deps: SessionDeps, { signal, lease }: SessionOptions): Promise<void> {
  const { endpoints, tally, health } = deps;
  const ending = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  const fail = (error: unknown): void => {
    failure ??= { error };
    ending.abort();
  };
  const session = openSession(deps, lease, AbortSignal.any([signal, ending.signal]), fail);
  const { lines, closings, over } = session;
  try {
    // Until the read models are built there is nothing to send, so the wait is reported as healthy.
    while (!over.aborted && !(await deps.areBuilt())) {
      health.well();
      await pause(BUILT_POLL_MS, over);
    }
    if (over.aborted) return;
    // Read first, so that the endpoints found next include every event up to this position.
    const from = await endpoints.folded();
    session.reachedTo = from ?? '';
    const edition = endpoints.edition();
    const enabled = await endpoints.find({ where: { state: 'enabled' } });
    await inParallel(enabled, OPENED_AT_ONCE, async ({ body }) => see(session, body as EndpointDocument), over);
    await forgetDeleted(deps, lines);
    tally.leads(() => [...lines.values()].map((line) => line.status()));
    health.well();
    const watches = [followEndpoints(session, from), watchRepairs(session, edition), watchFeed(session)];
    await Promise.all(watches.map(async (watch) => watch.catch(fail)));
  } catch (error) {
    fail(error);
  } finally {
    ending.abort();
    await Promise.all([...lines.values()].map(async (line) => line.close()));
    while (closings.size > 0) await Promise.all(closings.values());
    tally.stands();
  }
  if (failure !== undefined && !signal.aborted) throw failure.error;
}

function openSession(
  deps: SessionDeps,
  lease: LineDeps['lease'],
  over: AbortSignal,
  fail: (error: unknown) => void,
): Session {
  const lineDeps: LineDeps = {
    ...deps,
    logId: deps.events.logId,
    slots: { main: openSlots(AT_ONCE.main), aside: openSlots(AT_ONCE.aside) },
    reach: openReach(),
    lease,
    fail,
    onTrouble: deps.health.onTrouble,
  };
  return {
    deps,
    lineDeps,
    lines: new Map(),
    closings: new Map(),
    looking: new Set(),
    pollAgain: new Map(),
    reachedTo: '',
    followedTo: '',
    growth: new AbortController(),
    over,
    fail,
  };
}

async function followEndpoints(session: Session, from: Position | undefined): Promise<void> {
  const { deps, over } = session;
  const { events, endpoints, health } = deps;
  const filter = { types: webhookEndpointsProjection.types };
  for await (const batch of events.follow(from, filter, { signal: over, onTrouble: health.onTrouble })) {
    session.followedTo = batch.position;
    session.growth.abort();
    const last = batch.events.at(-1);
    if (last === undefined) continue;
    if (!(await endpoints.reached(last.position, FOLD_MS)))
      throw new UnavailableError('the read model of webhook endpoints is behind');
    const ids = new Set(batch.events.map(({ stream }) => idOf(stream)));
    await inParallel(ids, OPENED_AT_ONCE, async (id) => poll(session, id), over);
  }
}

/** Reads all endpoints again where their documents may have changed without an event. */
async function watchRepairs(session: Session, from: string): Promise<void> {
  const { deps, lines, over } = session;
  const { endpoints } = deps;
  for (let seen = from; !over.aborted; await pauseForBeats(REPAIRS_POLL_MS, over)) {
    // The read model looks its edition up only where it is read.
    await endpoints.folded();
    const edition = endpoints.edition();
    if (edition === seen) continue;
    seen = edition;
    const enabled = await endpoints.find({ where: { state: 'enabled' } });
    const ids = new Set([...lines.keys(), ...enabled.map(({ body }) => (body as EndpointDocument).endpoint_id)]);
    await inParallel(ids, OPENED_AT_ONCE, async (id) => poll(session, id), over);
  }
}

async function watchFeed(session: Session): Promise<void> {
  const { deps, lines, pollAgain, over } = session;
  let seen: Position = '';
  while (!over.aborted) {
    await untilLook(session, seen);
    for (const [id, at] of pollAgain) {
      if (at > ticks()) continue;
      pollAgain.delete(id);
      await poll(session, id);
    }
    const now = lines.size === 0 ? undefined : await deps.feed.folded();
    if (now === undefined || now <= seen) continue;
    const sources = await newSources(deps.feed, seen, now);
    for (const line of lines.values()) if (sources === undefined || line.isOf(sources)) line.wake();
    seen = now;
  }
}

/** Waits for little where something is expected, else until the log grows; a feed that grows unseen is found, too. */
async function untilLook(session: Session, seen: Position): Promise<void> {
  const { lines, pollAgain, over } = session;
  const soon = ticks() + IDLE_POLL_MS;
  const expects = lines.size > 0 && seen < session.followedTo;
  if (expects || [...pollAgain.values()].some((at) => at <= soon)) return pause(POLL_MS, over);
  session.growth = new AbortController();
  return pauseForBeats(IDLE_POLL_MS, AbortSignal.any([over, session.growth.signal]));
}

/** Reads an endpoint's present state. Only one call at a time for each, since each may open its line. */
async function poll(session: Session, id: string): Promise<void> {
  const { deps, looking } = session;
  if (looking.has(id)) return pollLater(session, id, POLL_MS);
  looking.add(id);
  try {
    const document = await deps.endpoints.get(endpointDocument(id));
    // A repair removes a document that the log lacks.
    if (document === undefined) close(session, id);
    else await see(session, document as EndpointDocument);
  } finally {
    looking.delete(id);
  }
}

function pollLater({ pollAgain }: Session, id: string, ms: number): void {
  pollAgain.set(id, ticks() + ms);
}

async function see(session: Session, endpoint: EndpointDocument): Promise<void> {
  const { deps, lines } = session;
  const { endpoint_id: id, state } = endpoint;
  if (state === 'deleted') return close(session, id, async () => forgetEndpoint(deps.records, id));
  if (state === 'disabled') return close(session, id);
  // An endpoint that was disabled and enabled again between two polls starts again.
  if (lines.get(id) !== undefined && lines.get(id)?.progress().enabledAt !== endpoint.enabled_at) close(session, id);
  // A second line alongside the closing one would write the same record.
  if (session.closings.has(id)) return pollLater(session, id, POLL_MS);
  const line = lines.get(id) ?? (await open(session, endpoint));
  line.update(endpoint);
  try {
    for (;;) {
      const requested = await nextRequests(deps, endpoint, line.progress());
      if (requested === undefined) return line.report(undefined);
      line.take(requested.items, requested.change);
    }
  } catch (error) {
    // An unreadable event, for example one under repair, holds up no other endpoint.
    if (!(error instanceof UnavailableError)) throw error;
    line.report(error);
    pollLater(session, id, POLL_AGAIN_MS);
  }
}

async function open(session: Session, endpoint: EndpointDocument): Promise<Line> {
  const { deps, lineDeps, lines } = session;
  const { records, resumedAt } = deps;
  const id = endpoint.endpoint_id;
  const record = await records.get<Progress>(progressRecord(id));
  let progress = (await progressOnLog(session, record)) ?? firstProgress(endpoint, lineDeps.logId);
  const isEnabledAgain = progress.enabledAt !== endpoint.enabled_at;
  const isResumed = resumedAt !== undefined && progress.cursor < resumedAt;
  if (isEnabledAgain || isResumed)
    for (const item of progress.waiting)
      if (item.ping === undefined) await giveUp(records, id, item, Date.parse(deps.now()));
  if (isEnabledAgain) progress = enabledAgain(progress, endpoint);
  if (resumedAt !== undefined && progress.cursor < resumedAt) progress = resumedAgain(progress, resumedAt);
  const line = openLine(endpoint, progress, record?.version ?? 0, lineDeps);
  lines.set(id, line);
  return line;
}

/**
 * The stored progress. One that this log can't have given counts as absent: all that happens up to its cursor would
 * never be delivered (docs/design.md#stored-positions).
 */
async function progressOnLog(
  session: Session,
  record: StoredRecord<Progress> | undefined,
): Promise<Progress | undefined> {
  const { events, logger } = session.deps;
  const stored = storedProgress(record, events.logId);
  if (stored === undefined) return undefined;
  if (events.isPosition(stored.cursor) && stored.cursor <= session.reachedTo) return stored;
  const fault = await positionFault(events, stored.cursor, LOOKS.most);
  if (fault === undefined) {
    session.reachedTo = stored.cursor;
    return stored;
  }
  logger.warn(
    { record: record?.key, position: shownPosition(stored.cursor) },
    `webhooks: the stored position ${fault}`,
  );
  return undefined;
}

/** Closes a line in the background, so that its attempts in progress hold up no other endpoint. */
function close(
  { lines, closings, fail }: Session,
  id: string,
  then: () => Promise<void> = async () => undefined,
): void {
  const line = lines.get(id);
  lines.delete(id);
  const closed = Promise.all([line?.close(), closings.get(id)])
    .then(then)
    .catch(fail)
    .finally(() => {
      if (closings.get(id) === closed) closings.delete(id);
    });
  closings.set(id, closed);
}
