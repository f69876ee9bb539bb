/** Work that process managers have given up, which waits for a person of support. */
import type { WorkParked } from '../../../src/domain/parked.js';
import type { EventLog } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';

/** Ids of the transactions, gifts and refunds whose work is parked. */
export function parkedEntities({ stored }: Pick<EventLog, 'stored'>): ReadonlySet<string> {
  return new Set(
    stored.flatMap(({ type, data }) =>
      type === 'WorkParked' ? [(JSON.parse(data) as WorkParked['data']).entity] : [],
    ),
  );
}

/** Why work is parked at once, whatever else happens. */
const LEGITIMATE = /refuses the refund/;

/** @param allowed whether work may be parked for any cause: nothing that lasts for less than a day is one */
export function checkParked({ stored }: Pick<EventLog, 'stored'>, allowed: boolean): Finding[] {
  if (allowed) return [];
  return stored
    .filter(
      ({ type, data }) => type === 'WorkParked' && !LEGITIMATE.test((JSON.parse(data) as WorkParked['data']).cause),
    )
    .map(({ stream, data }) => ({ rule: 'parked', text: `${stream}: ${data}` }));
}
