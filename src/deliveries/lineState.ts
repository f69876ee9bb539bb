/** The state that the reader and the sender of one endpoint's deliveries share. */
import type { Logger } from 'pino';
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import type { Slots } from '../lib/async/slots.js';
import { ticks } from '../lib/world.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Lease } from '../runtime/coordination/index.js';
import type { AttemptDeps } from './attempt.js';
import { type Backlog, openBacklog } from './backlog.js';
import type { Progress } from './progress.js';
import { type ProgressSaver, progressSaver } from './progressSaver.js';
import type { Reach } from './reach.js';
import type { ReadingDeps } from './reading.js';
import type { RetrySchedule } from './retries.js';
import type { DeliveryTally } from './tally.js';
import { isFailing } from './verdict.js';

/** Number of waiting events at which nothing more is read, by whether the endpoint works or fails. */
const MOST_WAITING = { working: 1_000, failing: 100 };
/** Number of untried events at which nothing more is read. */
const READY = 100;
/** Least milliseconds between two writes of the progress, and the milliseconds that each waiting event adds. */
const SAVE_MS = 250;
const SAVE_MS_EACH = 5;

export interface LineDeps extends AttemptDeps, ReadingDeps {
  /** Slots for attempts; `aside` is for endpoints that fail or are slow, so that they take no slots from others. */
  readonly slots: { readonly main: Slots; readonly aside: Slots };
  readonly feed: ReadingDeps['feed'];
  readonly schedule: RetrySchedule;
  /** Shared by all endpoints. */
  readonly reach: Reach;
  readonly random: () => number;
  /** Milliseconds that closing waits for attempts in progress. */
  readonly finishMs: number;
  /** Milliseconds without any start or end of work, after which an endpoint with something due counts as stalled. */
  readonly stalledMs: number;
  /** Appends the event that disables the endpoint. @throws UnavailableError */
  readonly disable: (endpointId: string, cause: Exclude<DisabledBy, 'owner'>) => Promise<void>;
  readonly tally: Pick<DeliveryTally, 'count' | 'countDisabled'>;
  readonly logger: Logger;
  /** The lease, checked before each attempt and each write; the session ends with it. */
  readonly lease: Pick<Lease, 'held' | 'renewed'>;
  /** Ends the deliveries to all endpoints with this error. */
  readonly fail: (error: unknown) => void;
  /** Reports that something could not be read, made or stored, while all else goes on; `undefined`: it is over. */
  readonly onTrouble: (error: Error | undefined) => void;
}

export interface LineState {
  readonly id: string;
  readonly deps: LineDeps;
  readonly backlog: Backlog;
  readonly saver: ProgressSaver;
  /** Aborted once no further work may begin. */
  readonly closing: AbortController;
  endpoint: EndpointDocument;
  /** The progress, whose `waiting` is out of date: the backlog holds the present one. */
  progress: Progress;
  /** Time of the last read, or start or end of an attempt: milliseconds by the monotonic clock. */
  movedAt: number;
}

/** @param version version of the stored progress; 0: nothing is stored */
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
  const line = { id, deps, backlog, saver, closing, endpoint, progress: stored, movedAt: ticks() };
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
