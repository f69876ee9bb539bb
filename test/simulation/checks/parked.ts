/** Work that process managers have given up, which waits for a person of support, or has its end from one. */
import { CHARGE_STEP, type ParkedEvent, type ParkedName, parkedNameOf } from '../../../src/domain/parked.js';
import type { EventLog } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';

/** The last decision on each piece of parked work. */
interface Decided {
  readonly name: ParkedName;
  readonly type: ParkedEvent['type'];
  readonly entity: string;
  readonly step: string;
}

function decidedIn({ stored }: Pick<EventLog, 'stored'>): Decided[] {
  const last = new Map<string, Decided>();
  for (const { stream, type, data } of stored) {
    const name = parkedNameOf(stream);
    if (name === undefined) continue;
    const { entity, step } = JSON.parse(data) as ParkedEvent['data'];
    last.set(`${name} ${entity}`, { name, type: type as ParkedEvent['type'], entity, step });
  }
  return [...last.values()];
}

/**
 * Ids of the transactions, gifts and refunds whose work nobody does any more: it is parked, or was discarded. What was
 * retried must have ended as all other work.
 */
export function parkedEntities(log: Pick<EventLog, 'stored'>): ReadonlySet<string> {
  return new Set(decidedIn(log).flatMap(({ type, entity }) => (type === 'WorkRetried' ? [] : [entity])));
}

/** The same of what a discard ends: charges are declined, and notifications failed (docs/support.md#parked-work-by-entity). */
export function waitingEntities(log: Pick<EventLog, 'stored'>): ReadonlySet<string> {
  return new Set(
    decidedIn(log).flatMap(({ name, type, entity, step }) => {
      const isEnded = name === 'notification' || (name === 'purchase' && step === CHARGE_STEP);
      return type === 'WorkParked' || (type === 'WorkDiscarded' && !isEnded) ? [entity] : [];
    }),
  );
}

/** Why work is parked at once, whatever else happens. */
const LEGITIMATE = /refuses the refund|does not take this request|given back at|pence left of the charge/;

/** @param allowed whether work may be parked for any cause: nothing that lasts for less than a day is one */
export function checkParked({ stored }: Pick<EventLog, 'stored'>, allowed: boolean): Finding[] {
  if (allowed) return [];
  return stored
    .filter(
      ({ type, data }) => type === 'WorkParked' && !LEGITIMATE.test((JSON.parse(data) as { cause: string }).cause),
    )
    .map(({ stream, data }) => ({ rule: 'parked', text: `${stream}: ${data}` }));
}
