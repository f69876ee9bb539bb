/** Parked work in groups of one cause, so that a fault that parked a hundred pieces is one line. */
import { createHash } from 'node:crypto';
import type { ParkedName } from '../../domain/parked.js';
import type { ParkedEntry } from './parkedView.js';

export interface ParkedGroup {
  /** The same for the same process manager, step and cause: 12 hexadecimal digits. */
  readonly id: string;
  readonly process: ParkedName;
  readonly step: string;
  /** Cause of the example. */
  readonly cause: string;
  readonly count: number;
  /** Times of the first and the last parking: ISO 8601, UTC, milliseconds. */
  readonly first_at: string;
  readonly last_at: string;
  /** Id of the parked work that was parked last. */
  readonly example: string;
}

/** Ids, numbers and times, by which the causes of one fault differ from piece to piece. */
const VARYING = /[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{16,}\b|\b[a-z]{2,4}_\w{8,}\b|\d+/gi;

const ID_DIGITS = 12;

/** Id of the group that a piece of parked work belongs to. */
export function parkedGroupId({ document: { name, step, cause } }: ParkedEntry): string {
  const same = cause.replaceAll(VARYING, '#');
  return createHash('sha256').update(['group', name, step, same].join('\0')).digest('hex').slice(0, ID_DIGITS);
}

/** The groups of these pieces, the largest first. */
export function parkedGroups(entries: readonly ParkedEntry[]): ParkedGroup[] {
  const groups = new Map<string, ParkedEntry[]>();
  for (const entry of entries) {
    const id = parkedGroupId(entry);
    groups.set(id, [...(groups.get(id) ?? []), entry]);
  }
  return [...groups]
    .map(([id, members]) => groupOf(id, members))
    .toSorted((one, other) => other.count - one.count || (one.first_at < other.first_at ? -1 : 1));
}

function groupOf(id: string, members: readonly ParkedEntry[]): ParkedGroup {
  const inTime = members.toSorted((one, other) => (one.document.parked_at < other.document.parked_at ? -1 : 1));
  const [first, last] = [inTime[0] as ParkedEntry, inTime.at(-1) as ParkedEntry];
  const { name, step, cause, parked_at } = last.document;
  return {
    id,
    process: name,
    step,
    cause,
    count: members.length,
    first_at: first.document.parked_at,
    last_at: parked_at,
    example: last.id,
  };
}
