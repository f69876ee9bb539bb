/** The deliveries to all endpoints, in the process that leads: one line for each endpoint. */
import { inParallel } from '../lib/async/inParallel.js';
import { pause } from '../lib/async/pause.js';
import { idOf } from '../domain/streamName.js';
import type { EventStore, Position } from '../ports/eventStore.js';
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
import { attemptRecords } from '../messages/webhookAttempts.js';
import { giveUp, givenUpRecords } from './givenUp.js';
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
const LOOK_MS = 50;
/** Milliseconds between two polls of the feed while no endpoint is enabled. */
const IDLE_LOOK_MS = 500;
const LOOK_AGAIN_MS = 30_000;
const BUILT_LOOK_MS = 500;
/** Endpoints that are opened or read concurrently. */
const OPENED_AT_ONCE = 16;
/** Longest wait for the read model to fold the log's events of an endpoint. */
const FOLD_MS = 10_000;

export interface SessionDeps extends Omit<
  LineDeps,
  'slots' | 'reach' | 'lease' | 'fail' | 'onTrouble' | 'logId' | 'tally'
> {
  readonly events: Pick<EventStore, 'logId' | 'follow' | 'read'>;
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'get' | 'find' | 'folded' | 'reached'>;
  /** Whether the read models of endpoints and of the feed are built. */
  readonly areBuilt: () => Promise<boolean>;
  /** Events up to this position are delivered only if the owner requests them; absent: all are delivered. */
  readonly resumedAt?: Position | undefined;
  readonly tally: DeliveryTally;
  readonly health: Pick<FollowerRun, 'well' | 'onTrouble'>;
}

export interface SessionOptions {
  /** Ends the session; also aborted when the lease is lost. */
  readonly signal: AbortSignal;
  readonly lease: LineDeps['lease'];
}

/** Delivers until `signal`, then waits a little for attempts in progress. @throws the first failure of any line */
export async function deliver(deps: SessionDeps, { signal, lease }: SessionOptions): Promise<void> {
  const { events, endpoints, feed, records, tally, health } = deps;
  const lines = new Map<string, Line>();
  /** Closings in progress, by endpoint. */
  const closings = new Map<string, Promise<void>>();
  const looking = new Set<string>();
  /** Endpoints to be read again, and the time from which they are, by the monotonic clock. */
  const lookAgain = new Map<string, number>();
  const ending = new AbortController();
  const over = AbortSignal.any([signal, ending.signal]);
  let failure: { readonly error: unknown } | undefined;

  const fail = (error: unknown): void => {
    failure ??= { error };
    ending.abort();
  };
  const lineDeps: LineDeps = {
    ...deps,
    logId: events.logId,
    slots: { main: openSlots(AT_ONCE.main), aside: openSlots(AT_ONCE.aside) },
    reach: openReach(),
    lease,
    fail,
    onTrouble: health.onTrouble,
  };

  async function open(endpoint: EndpointDocument): Promise<Line> {
    const id = endpoint.endpoint_id;
    const record = await records.get<Progress>(progressRecord(id));
    const stored = storedProgress(record, events.logId);
    let progress = stored ?? firstProgress(endpoint, events.logId);
    const isEnabledAgain = progress.enabledAt !== endpoint.enabled_at;
    const isResumed = deps.resumedAt !== undefined && progress.cursor < deps.resumedAt;
    if (isEnabledAgain || isResumed)
      for (const item of progress.waiting)
        if (item.ping === undefined) await giveUp(records, id, item, Date.parse(deps.now()));
    if (isEnabledAgain) progress = enabledAgain(progress, endpoint);
    if (deps.resumedAt !== undefined && progress.cursor < deps.resumedAt)
      progress = resumedAgain(progress, deps.resumedAt);
    const line = openLine(endpoint, progress, record?.version ?? 0, lineDeps);
    lines.set(id, line);
    return line;
  }

  /** Closes a line in the background, so that its attempts in progress hold up no other endpoint. */
  function close(id: string, then: () => Promise<void> = async () => undefined): void {
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

  async function see(endpoint: EndpointDocument): Promise<void> {
    const { endpoint_id: id, state } = endpoint;
    if (state === 'deleted') return close(id, async () => forget(id));
    if (state === 'disabled') return close(id);
    // An endpoint that was disabled and enabled again between two polls starts again.
    if (lines.get(id) !== undefined && lines.get(id)?.progress().enabledAt !== endpoint.enabled_at) close(id);
    // A second line alongside the closing one would write the same record.
    if (closings.has(id)) return lookLater(id, LOOK_MS);
    const line = lines.get(id) ?? (await open(endpoint));
    line.update(endpoint);
    try {
      for (;;) {
        const asked = await nextRequests(deps, endpoint, line.progress());
        if (asked === undefined) return;
        line.take(asked.items, asked.change);
      }
    } catch (error) {
      // An unreadable event, for example one under repair, holds up no other endpoint.
      if (!(error instanceof UnavailableError)) throw error;
      health.onTrouble(error);
      lookLater(id, LOOK_AGAIN_MS);
    }
  }

  function lookLater(id: string, ms: number): void {
    lookAgain.set(id, performance.now() + ms);
  }

  async function forget(id: string): Promise<void> {
    for (const prefix of [attemptRecords(id), givenUpRecords(id)])
      for (const { key } of await records.list(prefix)) await records.delete(key);
    await records.delete(progressRecord(id));
  }

  /** Reads an endpoint's present state. Only one call at a time for each, since each may open its line. */
  async function look(id: string): Promise<void> {
    if (looking.has(id)) return lookLater(id, LOOK_MS);
    looking.add(id);
    try {
      const document = await endpoints.get(endpointDocument(id));
      if (document !== undefined) await see(document as EndpointDocument);
    } finally {
      looking.delete(id);
    }
  }

  async function followEndpoints(from: Position | undefined): Promise<void> {
    const filter = { types: webhookEndpointsProjection.types };
    for await (const batch of events.follow(from, filter, { signal: over, onTrouble: health.onTrouble })) {
      const last = batch.events.at(-1);
      if (last === undefined) continue;
      if (!(await endpoints.reached(last.position, FOLD_MS)))
        throw new UnavailableError('the read model of webhook endpoints is behind');
      const ids = new Set(batch.events.map(({ stream }) => idOf(stream)));
      await inParallel(ids, OPENED_AT_ONCE, look, over);
    }
  }

  async function watchFeed(): Promise<void> {
    let seen: Position = '';
    while (!over.aborted) {
      await pause(lines.size === 0 ? IDLE_LOOK_MS : LOOK_MS, over);
      for (const [id, at] of lookAgain) {
        if (at > performance.now()) continue;
        lookAgain.delete(id);
        await look(id);
      }
      const now = lines.size === 0 ? undefined : await feed.folded();
      if (now === undefined || now <= seen) continue;
      const sources = await newSources(feed, seen, now);
      for (const line of lines.values()) if (sources === undefined || line.isOf(sources)) line.wake();
      seen = now;
    }
  }

  try {
    // Until the read models are built there is nothing to send, so the wait is reported as healthy.
    while (!over.aborted && !(await deps.areBuilt())) {
      health.well();
      await pause(BUILT_LOOK_MS, over);
    }
    if (over.aborted) return;
    // Read first, so that the endpoints found next include every event up to this position.
    const from = await endpoints.folded();
    const enabled = await endpoints.find({ where: { state: 'enabled' } });
    await inParallel(enabled, OPENED_AT_ONCE, async ({ body }) => see(body as EndpointDocument), over);
    tally.leads(() => [...lines.values()].map((line) => line.status()));
    health.well();
    await Promise.all([followEndpoints(from).catch(fail), watchFeed().catch(fail)]);
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
