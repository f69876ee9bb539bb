/** How far the deliveries to an endpoint have come: a record, changed by compare-and-set. */
import type { Position } from '../ports/eventStore.js';
import type { StoredRecord } from '../ports/readStore.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Waiting } from './backlog.js';

export const progressRecord = (endpointId: string): string => `webhook/${endpointId}`;

/** A part of the feed after `after`, up to `through`. */
export interface Part {
  readonly after: Position;
  readonly through: Position;
  /** Of it what happened before then (ISO 8601, UTC); absent: all. */
  readonly before?: string;
}

/** Times are milliseconds since the epoch. */
export interface Progress {
  /** Positions are of this log. */
  readonly logId: string;
  /** Of the enabling that these deliveries follow. */
  readonly enabledAt: string;
  /** What is up to there was delivered or given up, stands in `skipped`, or waits. */
  readonly cursor: Position;
  readonly waiting: readonly Waiting[];
  /** Requests up to there are done, or wait; absent: none. */
  readonly requested?: Position;
  /** What happened while it was disabled. */
  readonly skipped: readonly Part[];
  /** What is asked for again, of what happened since then. */
  readonly recovering: readonly (Part & { readonly since: string })[];
  /** The same of what was given up. */
  readonly recoveringGivenUp?: string;
  /** Where the endpoint was when it failed; absent: as it is now. */
  readonly url?: string;
  /** Since the last success. */
  readonly failures: number;
  readonly failingSince?: number;
  /** The latest failure. */
  readonly failedAt?: number;
  /** As the receiver asked. */
  readonly pausedUntil?: number;
  /** Attempts that stand in the records, in all. */
  readonly attempts: { readonly delivered: number; readonly failed: number };
}

/** A request older than this is not repeated where the records were lost. */
const REPEATED_MS = 3 * 24 * 3_600_000;

/** Of an endpoint without a record: a new one, or the records were lost. */
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

/** @param now milliseconds since the epoch */
export function isRepeated(requestedAt: string, now: number): boolean {
  return now - Date.parse(requestedAt) < REPEATED_MS;
}

/** Of more, the first two become one: what lies between them may then be delivered twice. */
const MOST_SKIPPED = 20;

function withSkipped(skipped: readonly Part[], part: Part): readonly Part[] {
  if (part.through <= part.after) return skipped;
  const all = [...skipped, part];
  if (all.length <= MOST_SKIPPED) return all;
  const [first, second, ...rest] = all as [Part, Part, ...Part[]];
  return [{ after: first.after, through: second.through }, ...rest];
}

/** Nothing that another address did, or asked for, counts for this one. */
export function startedAfresh(before: Progress, url: string): Progress {
  const { failingSince: _, failedAt: __, pausedUntil: ___, ...rest } = before;
  return { ...rest, url, failures: 0 };
}

/** What waited is given up by then. */
export function enabledAgain(before: Progress, { from, enabled_at: enabledAt, url }: EndpointDocument): Progress {
  const skipped = withSkipped(before.skipped, { after: before.cursor, through: from });
  return { ...startedAfresh(before, url), enabledAt, cursor: from, waiting: [], skipped };
}

/**
 * Of a log whose outward work waited, and was resumed at `from`. Another log may have delivered what waited or was asked
 * for: its owner asks again.
 */
export function resumedAgain(before: Progress, from: Position): Progress {
  const { pausedUntil: _, recoveringGivenUp: __, recovering, ...rest } = before;
  const parts = [...recovering, { after: before.cursor, through: from }];
  const skipped = parts.reduce((all, { after, through }) => withSkipped(all, { after, through }), before.skipped);
  return { ...rest, cursor: from, requested: from, waiting: [], recovering: [], skipped };
}

type Recovered = Progress['recovering'][number];

/** Of more, all that was missed since the earliest time is read once more: some of it may then be delivered twice. */
const MOST_RECOVERING = 50;

function withParts(recovering: readonly Recovered[], skipped: readonly Part[], since: string): readonly Recovered[] {
  // Of a repeated request nothing is left, and it is not read through again.
  const asked = skipped.filter(({ before: end }) => end === undefined || end > since);
  const all = [...recovering, ...asked.map((part) => ({ ...part, since }))];
  if (all.length <= MOST_RECOVERING) return all;
  const earliest = all.reduce((first, one) => (one.since < first ? one.since : first), since);
  return skipped.map(({ after, through }) => ({ after, through, since: earliest }));
}

/** @param since ISO 8601, UTC */
export function withRecovery(before: Progress, since: string): Progress {
  const { skipped, recovering, recoveringGivenUp = since } = before;
  return {
    ...before,
    recoveringGivenUp: recoveringGivenUp < since ? recoveringGivenUp : since,
    recovering: withParts(recovering, skipped, since),
    skipped: skipped.map((part) => ({
      ...part,
      before: part.before !== undefined && part.before < since ? part.before : since,
    })),
  };
}

/** A record of another log counts as none. */
export function storedProgress(record: StoredRecord<Progress> | undefined, logId: string): Progress | undefined {
  return record?.value.logId === logId ? record.value : undefined;
}
