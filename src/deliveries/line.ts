/** The deliveries to one endpoint, in the process that leads (docs/api/webhooks.md#webhook-deliveries). */
import { ticks } from '../lib/world.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Waiting } from './backlog.js';
import { lineReader } from './lineReader.js';
import { lineSender } from './lineSender.js';
import { type LineDeps, type LineState, nowMs, openLineState, presentProgress } from './lineState.js';
import { isSubscribed } from './message.js';
import { type Progress, startedAfresh } from './progress.js';
import type { Reading } from './reading.js';
import { isWaitedFor } from './retries.js';
import type { EndpointStatus } from './tally.js';
import { isFailing } from './verdict.js';

export interface Line {
  /** Called when there may be new events for the endpoint. */
  wake(): void;
  /** Called when the endpoint's URL, types or secrets may have changed. */
  update(endpoint: EndpointDocument): void;
  /** Adds requested events to the backlog; they and the progress of the requests are stored in one record. */
  take(items: readonly Waiting[], change: (progress: Progress) => Progress): void;
  progress(): Progress;
  /** Whether events of these sources may be for the endpoint. */
  isOf(sources: ReadonlySet<string>): boolean;
  status(): EndpointStatus;
  /** See `LineState.report`. */
  report(error: Error | undefined): void;
  /** Waits a little for attempts that are in progress. */
  close(): Promise<void>;
}

/** @param version version of the stored progress; 0: nothing is stored */
export function openLine(endpoint: EndpointDocument, stored: Progress, version: number, deps: LineDeps): Line {
  const line = openLineState(endpoint, stored, version, deps);
  const sender = lineSender(line, () => reader.readOn());
  const reader = lineReader(line, take);
  /** Time since which every call of `status` has found something due, by the monotonic clock. */
  let dueSince: number | undefined;

  function take({ items, change }: Pick<Reading, 'items' | 'change'>): void {
    for (const item of items) line.backlog.add(item);
    line.progress = change(line.progress);
    line.saver.changed();
    sender.start();
  }

  function isStalled(): boolean {
    const now = ticks();
    const sending = sender.state();
    dueSince = sending !== 'idle' || reader.isDue() ? (dueSince ?? now) : undefined;
    return dueSince !== undefined && sending !== 'queued' && now - Math.max(dueSince, line.movedAt) >= deps.stalledMs;
  }

  followUrl(line);
  leaveOutUnwanted(line);
  sender.start();
  reader.readOn();

  return {
    wake: () => reader.wake(),
    update(now) {
      const before = line.endpoint;
      line.endpoint = now;
      if (followUrl(line)) sender.start();
      if (String(now.types) !== String(before.types)) {
        if (leaveOutUnwanted(line)) sender.start();
        reader.forgetSources();
      }
      // The reader waits for this after it has met other types, which may have been taken back since.
      reader.wake();
    },
    take(items, change) {
      take({ items, change });
      reader.readOn();
    },
    progress: () => presentProgress(line),
    isOf: (sources) => reader.isOf(sources),
    status() {
      const failing = isFailing(line.progress) || isWaitedFor(line.progress.pausedUntil ?? 0, nowMs(line));
      const state = isStalled() ? 'stalled' : failing ? 'failing' : 'working';
      return { state, waiting: line.backlog.size, oldest: line.backlog.oldest() };
    },
    report: line.report,
    async close() {
      line.closing.abort();
      await sender.close();
      await reader.ended();
      await line.saver.close();
      line.report(undefined);
    },
  };
}

/**
 * Follows a change of the URL: failures at the earlier one do not count for the new one.
 * @returns whether the URL has changed, so that every waiting event is due
 */
function followUrl(line: LineState): boolean {
  const { url } = line.endpoint;
  const { url: before = url } = line.progress;
  line.progress = before === url ? { ...line.progress, url } : startedAfresh(line.progress, url);
  if (before === url) return false;
  line.backlog.startAfresh();
  line.saver.changed();
  return true;
}

/** Drops waiting events of types that the endpoint no longer gets. @returns whether there were any */
function leaveOutUnwanted({ backlog, endpoint, saver }: LineState): boolean {
  const { size } = backlog;
  backlog.keep((item) => item.ping !== undefined || isSubscribed(endpoint, item));
  if (backlog.size === size) return false;
  saver.changed();
  return true;
}
