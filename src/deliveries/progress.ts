/** The progress of the deliveries to an endpoint: a record, changed by compare-and-set. */
import type { Position } from '../ports/eventStore.js';
import type { StoredRecord } from '../ports/readStore.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Waiting } from './backlog.js';

/** Prefix of the keys of progress records; the rest is the endpoint's id. */
export const PROGRESS = 'webhook/';

export const progressRecord = (endpointId: string): string => PROGRESS + endpointId;

/** A part of the feed after `after`, up to `through`. */
interface Part {
  readonly after: Position;
  readonly through: Position;
  /** Limits the part to events before this time (ISO 8601, UTC); absent: all of it. */
  readonly before?: string;
}

/** Progress of one endpoint's deliveries; numeric times are milliseconds since the epoch. */
export interface Progress {
  /** Id of the log that the positions belong to. */
  readonly logId: string;
  /** Time of the endpoint's enabling that these deliveries belong to. */
  readonly enabledAt: string;
  /** Position up to which every event was delivered or abandoned, is in `skipped`, or waits. */
  readonly cursor: Position;
  readonly waiting: readonly Waiting[];
  /** Position up to which the owner's requests are done, or wait; absent: none. */
  readonly requested?: Position;
  /** Parts of the feed that were passed over while the endpoint was disabled. */
  readonly skipped: readonly Part[];
  /** Parts of the feed that the owner requested again, with the time from which events count (ISO 8601, UTC). */
  readonly recovering: readonly (Part & { readonly since: string })[];
  /** Time from which abandoned events are requested again (ISO 8601, UTC); absent: none are. */
  readonly recoveringAbandoned?: string;
  /** The endpoint's URL that the failures belong to; absent: the present one. */
  readonly url?: string;
  /** Failures since the last success. */
  readonly failures: number;
  readonly failingSince?: number;
  /** Time of the latest failure. */
  readonly failedAt?: number;
  /** End of the pause that the receiver requested. */
  readonly pausedUntil?: number;
  /** Counts of all attempts so far; they tell which record the next attempt replaces. */
  readonly attempts: { readonly delivered: number; readonly failed: number };
}

/** Milliseconds after which a request is not repeated where the records were lost. */
const REPEATED_MS = 3 * 24 * 3_600_000;

/** Progress of an endpoint without a record: the endpoint is new, or the records were lost. */
export function firstProgress({ from, enabled_at: enabledAt, url }: EndpointDocument, logId: string): Progress {
  return {
    logId,
    enabledAt,
    cursor: from,
    waiting: [],
    skipped: [],
    recovering: [],
    url,
    failures: 0,
    attempts: { delivered: 0, failed: 0 },
  };
}

/** Whether a request is repeated where the records were lost. @param now milliseconds since the epoch */
export function isRepeated(requestedAt: string, now: number): boolean {
  return now - Date.parse(requestedAt) < REPEATED_MS;
}

/** Most skipped parts; beyond that the first two are merged, and events between them may be delivered twice. */
const MOST_SKIPPED = 20;

function withSkipped(skipped: readonly Part[], part: Part): readonly Part[] {
  if (part.through <= part.after) return skipped;
  const all = [...skipped, part];
  if (all.length <= MOST_SKIPPED) return all;
  const [first, second, ...rest] = all as [Part, Part, ...Part[]];
  return [{ after: first.after, through: second.through }, ...rest];
}

/** Progress at a new URL: failures of the earlier URL and a pause that it requested do not count. */
export function startedAfresh(before: Progress, url: string): Progress {
  const { failingSince: _, failedAt: __, pausedUntil: ___, ...rest } = before;
  return { ...rest, url, failures: 0 };
}

/** Progress of an endpoint that was enabled again; its waiting events must have been abandoned before. */
export function enabledAgain(before: Progress, { from, enabled_at: enabledAt, url }: EndpointDocument): Progress {
  const skipped = withSkipped(before.skipped, { after: before.cursor, through: from });
  return { ...startedAfresh(before, url), enabledAt, cursor: from, waiting: [], skipped };
}

/**
 * Progress on a restored or copied log, whose outward work was resumed at `from`. Waiting and requested events are
 * dropped, since another log may have delivered them; the owner may request them again.
 */
export function resumedAgain(before: Progress, from: Position): Progress {
  const { pausedUntil: _, recoveringAbandoned: __, recovering, ...rest } = before;
  const parts = [...recovering, { after: before.cursor, through: from }];
  const skipped = parts.reduce((all, { after, through }) => withSkipped(all, { after, through }), before.skipped);
  return { ...rest, cursor: from, requested: from, waiting: [], recovering: [], skipped };
}

type Recovered = Progress['recovering'][number];

/** Most parts to recover; beyond that all skipped parts are read again, and some events may be delivered twice. */
const MOST_RECOVERING = 50;

function withParts(recovering: readonly Recovered[], skipped: readonly Part[], since: string): readonly Recovered[] {
  // A part whose events since then were all requested before is not read again.
  const repeated = skipped.filter(({ before: end }) => end === undefined || end > since);
  const all = [...recovering, ...repeated.map((part) => ({ ...part, since }))];
  if (all.length <= MOST_RECOVERING) return all;
  const earliest = all.reduce((first, one) => (one.since < first ? one.since : first), since);
  return skipped.map(({ after, through }) => ({ after, through, since: earliest }));
}

/** Adds a request to recover missed events. @param since time of the earliest one: ISO 8601, UTC */
export function withRecovery(before: Progress, since: string): Progress {
  const { skipped, recovering, recoveringAbandoned = since } = before;
  return {
    ...before,
    recoveringAbandoned: recoveringAbandoned < since ? recoveringAbandoned : since,
    recovering: withParts(recovering, skipped, since),
    skipped: skipped.map((part) => ({
      ...part,
      before: part.before !== undefined && part.before < since ? part.before : since,
    })),
  };
}

/** The stored progress; a record of another log counts as absent. */
export function storedProgress(record: StoredRecord<Progress> | undefined, logId: string): Progress | undefined {
  return record?.value.logId === logId ? record.value : undefined;
}
