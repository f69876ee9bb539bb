/** The state that the reader and the sender of one endpoint's deliveries share. */
import type { Logger } from 'pino';
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import type { Slots } from '../lib/async/slots.js';
import { ticks } from '../lib/world.js';
import type { EndpointDocument, WebhookDocument } from '../projections/webhookEndpoints.js';
import { type Lease, NotOursError } from '../runtime/coordination/index.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { AttemptDeps } from './attempt.js';
import { type Backlog, openBacklog } from './backlog.js';
import { type Progress, progressRecord } from './progress.js';
import type { Reach } from './reach.js';
import type { ReadingDeps } from './reading.js';
import type { RetrySchedule } from './retries.js';
import type { DeliveryTally } from './tally.js';
import { isFailing } from './verdict.js';
import { pause } from '../lib/async/pause.js';
import type { Records } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';

/** Number of waiting events at which nothing more is read, by whether the endpoint works or fails. */
const MOST_WAITING = { working: 1_000, failing: 100 };
/** Number of events that are ready to be sent at which nothing more is read. */
const READY = 100;
/** Least milliseconds between two writes of the progress, and the milliseconds that each waiting event adds. */
const SAVE_MS = 250;
const SAVE_MS_EACH = 5;

export interface LineDeps extends AttemptDeps, ReadingDeps {
  /** Slots for attempts; `aside` is for endpoints that fail or are slow, so that they take no slots from others. */
  readonly slots: { readonly main: Slots; readonly aside: Slots };
  readonly feed: ReadingDeps['feed'];
  readonly endpoints: Pick<ReadModel<WebhookDocument>, 'get' | 'reached'>;
  readonly schedule: RetrySchedule;
  /** Shared by all endpoints. */
  readonly reach: Reach;
  readonly random: () => number;
  /** Milliseconds that closing waits for attempts in progress. */
  readonly finishMs: number;
  /** Milliseconds without any start or end of work, after which an endpoint with something due counts as stalled. */
  readonly stalledMs: number;
  /**
   * Appends the event that disables the endpoint.
   * @throws UnavailableError, also where it has another URL by now
   */
  readonly disable: (
    endpoint: { readonly id: string; readonly url: string },
    cause: Exclude<DisabledBy, 'owner'>,
  ) => Promise<void>;
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
  /** Reports trouble of this endpoint's deliveries; `undefined`: something was done, so that any trouble is over. */
  readonly report: (error: Error | undefined) => void;
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
  let isTroubled = false;
  const report = (error: Error | undefined): void => {
    if (error !== undefined || isTroubled) deps.onTrouble(error);
    isTroubled = error !== undefined;
  };
  const line = { id, deps, backlog, saver, closing, report, endpoint, progress: stored, movedAt: ticks() };
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
  return backlog.size < most && backlog.ready < READY;
}

/** Writes an endpoint's progress from time to time: deliveries answered since then are repeated after a kill. */
interface ProgressSaver {
  /** Notes that the progress has changed: it is written after `pauseMs`. */
  changed(): void;
  /**
   * Resolves once all changes are written; nothing may rely on them before that.
   * @throws UnavailableError; NotOursError
   */
  save(): Promise<void>;
  /** Writes the outstanding changes, if the lease is still held. */
  close(): Promise<void>;
}

interface ProgressSaverOptions {
  readonly records: Records;
  readonly endpointId: string;
  /** Version of the stored record; 0: there is none. */
  readonly version: number;
  readonly read: () => Progress;
  readonly pauseMs: () => number;
  /** Once the lease is lost nothing is written: another process may deliver. */
  readonly lease: Pick<Lease, 'held'>;
  readonly fail: (error: unknown) => void;
}

function progressSaver(options: ProgressSaverOptions): ProgressSaver {
  const { records, endpointId, read, pauseMs, lease, fail } = options;
  const closing = new AbortController();
  let { version } = options;
  let dirty = false;
  let soon: Promise<void> | undefined;
  let last: Promise<void> = Promise.resolve();

  async function put(): Promise<void> {
    if (!dirty) return;
    if (!lease.held) throw new NotOursError('another process may deliver by now');
    dirty = false;
    try {
      const stored = await records.put(progressRecord(endpointId), read(), { expected: version });
      if (stored === undefined) throw new UnavailableError('another process delivers to the endpoint');
      version = stored;
    } catch (error) {
      dirty = true;
      throw error;
    }
  }

  /** Writes run one after the other, since each expects the version that the previous one stored. */
  function save(): Promise<void> {
    const next = last.then(put);
    last = next.catch(() => undefined);
    return next;
  }

  async function saveSoon(): Promise<void> {
    await pause(pauseMs(), closing.signal);
    soon = undefined;
    await save();
  }

  return {
    changed() {
      dirty = true;
      if (!closing.signal.aborted) soon ??= saveSoon().catch(fail);
    },
    save: async () => {
      dirty = true;
      await save();
    },
    async close() {
      closing.abort();
      await soon;
      await save().catch(fail);
    },
  };
}
