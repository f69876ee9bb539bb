/** Abandoned deliveries, which failed for three days: stored for a month, to be recovered on request. */
import type { Records } from '../ports/readStore.js';
import type { Waiting } from './backlog.js';

const RETAINED_MS = 30 * 24 * 3_600_000;
const PAGE = 100;

export const abandonedRecords = (endpointId: string): string => `webhookGivenUp/${endpointId}/`;

type Abandoned = Pick<Waiting, 'position' | 'key' | 'at' | 'type'>;

/** Stores an abandoned event. @param now milliseconds since the epoch @throws UnavailableError */
export async function giveUp(
  records: Records,
  endpointId: string,
  { position, key, at, type }: Abandoned,
  now: number,
): Promise<void> {
  const value: Abandoned = { position, key, at, ...(type === undefined ? {} : { type }) };
  await records.put(abandonedRecords(endpointId) + position, value, { expiresAt: now + RETAINED_MS });
}

export interface AbandonedPage {
  readonly items: readonly Waiting[];
  /** Key after which the next page starts; absent: this is the last page. */
  readonly next?: string;
}

/**
 * Lists abandoned events in the order of the log.
 * @param since time of the earliest event to list: ISO 8601, UTC
 * @throws UnavailableError
 */
export async function listAbandoned(
  records: Records,
  endpointId: string,
  since: string,
  after?: string,
): Promise<AbandonedPage> {
  const found = await records.list<Abandoned>(abandonedRecords(endpointId), PAGE, after);
  const last = found.length === PAGE ? found.at(-1)?.key : undefined;
  return {
    items: found
      .filter(({ value }) => value.at >= since)
      .map(({ value }) => ({ ...value, tries: 0, requested: true as const })),
    ...(last === undefined ? {} : { next: last }),
  };
}

/** @throws UnavailableError */
export async function forgetAbandoned(records: Records, endpointId: string, items: readonly Waiting[]): Promise<void> {
  for (const { position } of items) await records.delete(abandonedRecords(endpointId) + position);
}
