/** What reading and sending share of the deliveries to one endpoint. */
import type { Logger } from 'pino';
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import type { Slots } from '../lib/async/slots.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Lease } from '../runtime/coordination/lease.js';
import type { AttemptDeps } from './attempt.js';
import { type Backlog, openBacklog } from './backlog.js';
import type { Progress } from './progress.js';
import { type ProgressSaver, progressSaver } from './progressSaver.js';
import type { Reach } from './reach.js';
import type { ReadingDeps } from './reading.js';
import type { RetrySchedule } from './retries.js';
import type { DeliveryTally } from './tally.js';
import { isFailing } from './verdict.js';

/** With so many waiting, nothing more is read; of an endpoint that fails, fewer. */
const MOST_WAITING = { working: 1_000, failing: 100 };
/** With so many ready, nothing more is read. */
const READY = 100;
/** The least time between two records of the progress, and what each waiting event adds to it. */
const SAVE_MS = 250;
const SAVE_MS_EACH = 5;

export interface LineDeps extends AttemptDeps, ReadingDeps {
  /** `aside`: of endpoints that fail or are slow, so that they take no room from others. */
  readonly slots: { readonly main: Slots; readonly aside: Slots };
  readonly feed: ReadingDeps['feed'];
  readonly schedule: RetrySchedule;
  /** Of all endpoints. */
  readonly reach: Reach;
  readonly random: () => number;
  /** For attempts that are in progress at the end. */
  readonly finishMs: number;
  /** An endpoint with something due, for which nothing has begun or ended for so long, is reported as stalled. */
  readonly stalledMs: number;
  /** Appends the event. @throws UnavailableError */
  readonly disable: (endpointId: string, cause: Exclude<DisabledBy, 'owner'>) => Promise<void>;
  readonly tally: Pick<DeliveryTally, 'count' | 'countDisabled'>;
  readonly logger: Logger;
  /** Whether this process leads still: asked before each attempt and record. Once it is over the session ends. */
  readonly lease: Pick<Lease, 'held' | 'renewed'>;
  /** Ends the deliveries to all endpoints. */
  readonly fail: (error: unknown) => void;
  /** Something could not be read, made or noted; all else goes on. `undefined`: it can again. */
  readonly onTrouble: (error: Error | undefined) => void;
}

export interface LineState {
  readonly id: string;
  readonly deps: LineDeps;
  readonly backlog: Backlog;
  readonly saver: ProgressSaver;
  /** Aborted when nothing more is to begin. */
  readonly closing: AbortController;
  endpoint: EndpointDocument;
  /** Without `waiting`, which is the backlog's. */
  progress: Progress;
  /** When something was read, or an attempt began or ended, by the monotonic clock. */
  movedAt: number;
}

/** @param version of the stored progress; 0: there is none */
export function openLineState(
  endpoint: EndpointDocument,
  stored: Progress,
  version: number,
  deps: LineDeps,
): LineState {
  const id = endpoint.endpoint_id;
  const backlog = openBacklog(stored.waiting);
  const { records, lease, fail } = deps;
  const saver = progressSaver({
    records,
    endpointId: id,
    version,
    read: () => presentProgress(line),
    pauseMs: () => SAVE_MS + backlog.size * SAVE_MS_EACH,
    lease,
    fail,
  });
  const closing = new AbortController();
  const line = { id, deps, backlog, saver, closing, endpoint, progress: stored, movedAt: performance.now() };
  if (version === 0) saver.changed();
  return line;
}

export const presentProgress = ({ progress, backlog }: LineState): Progress => ({
  ...progress,
  waiting: backlog.items(),
});

export const mayWork = ({ closing, deps }: LineState): boolean => !closing.signal.aborted && deps.lease.held;

/** Milliseconds since the epoch, by the service's clock. */
export const nowMs = ({ deps }: LineState): number => Date.parse(deps.now());

export function hasRoom({ backlog, progress }: LineState): boolean {
  const most = isFailing(progress) ? MOST_WAITING.failing : MOST_WAITING.working;
  return backlog.size < most && backlog.untried < READY;
}
