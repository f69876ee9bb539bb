/** Abandoned deliveries, which failed for three days: stored for a month, to be recovered on request. */
import { pages } from '../lib/async/pages.js';
import type { Records, StoredRecord } from '../ports/readStore.js';
import type { Waiting } from './backlog.js';

const RETAINED_MS = 30 * 24 * 3_600_000;
const PAGE = 100;

export const abandonedRecords = (endpointId: string): string => `webhookAbandoned/${endpointId}/`;

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

/**
 * Lists abandoned events in the order of the log, page by page.
 * @param since time of the earliest event to list: ISO 8601, UTC
 * @throws UnavailableError
 */
export async function* listAbandoned(
  records: Records,
  endpointId: string,
  since: string,
): AsyncGenerator<readonly Waiting[], void> {
  const prefix = abandonedRecords(endpointId);
  for await (const found of pages(PAGE, async (last: StoredRecord<Abandoned> | undefined) =>
    records.list<Abandoned>(prefix, PAGE, last?.key),
  ))
    yield found
      .filter(({ value }) => value.at >= since)
      .map(({ value }) => ({ ...value, tries: 0, requested: true as const }));
}

/** @throws UnavailableError */
export async function forgetAbandoned(records: Records, endpointId: string, items: readonly Waiting[]): Promise<void> {
  for (const { position } of items) await records.delete(abandonedRecords(endpointId) + position);
}
