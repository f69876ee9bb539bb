/**
 * Whether a process that has a provider's worker charge, refund or notify somebody has the lease of the process managers
 * at that moment (docs/process-managers.md, "From event to job"). A provider's idempotency keys hide it where two
 * processes work.
 */
import { NOTIFICATION_REQUESTS } from '../../../src/messages/notifications.js';
import { PAYMENT_REQUESTS } from '../../../src/messages/payments.js';
import type { Bus } from '../../../src/ports/bus.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { PROCESS_LEASE } from '../../../src/processors/runner/index.js';
import type { RecordRows } from '../engines/records.js';
import type { Finding } from '../model/finding.js';

export interface LeaseWatch {
  /** The read store of a process, which notes the name that the process takes leases by. */
  storeOf(process: string, store: ReadStore): ReadStore;
  /** The bus of a process, each of whose acts is checked when it is requested. */
  busOf(process: string, bus: Bus): Bus;
  findings(): readonly Finding[];
}

/** What only process managers request. The API looks some things up, too. */
const ACTS: ReadonlySet<string> = new Set(
  [PAYMENT_REQUESTS.charge, PAYMENT_REQUESTS.cancelCharge, PAYMENT_REQUESTS.refund, NOTIFICATION_REQUESTS.send].map(
    ({ subject }) => subject,
  ),
);

const KEY = `lease/${PROCESS_LEASE}`;

interface Value {
  readonly holder: string | null;
}

/** @param rows the records' rows, where the lease is @param now milliseconds since the epoch */
export function watchLease(rows: Pick<RecordRows, 'get'>, now: () => number): LeaseWatch {
  const processes = new Map<string, string>();
  const findings: Finding[] = [];

  /** The process that has taken the lease last, and has not released it. */
  function holder(): string | undefined {
    const row = rows.get(KEY, now());
    const name = row === undefined ? null : (JSON.parse(row.value) as Value).holder;
    return name === null ? undefined : processes.get(name);
  }

  return {
    storeOf: (process, store) => ({
      ...store,
      records: {
        ...store.records,
        async put(key, value, options) {
          const name = key === KEY ? (value as Value).holder : null;
          if (name !== null) processes.set(name, process);
          return store.records.put(key, value, options);
        },
      },
    }),
    busOf: (process, bus) => ({
      ...bus,
      async request(subject, message, options) {
        const leader = holder();
        if (ACTS.has(subject) && leader !== undefined && leader !== process)
          findings.push({ rule: 'lease', text: `${process} requests ${subject}, while ${leader} has the lease` });
        return bus.request(subject, message, options);
      },
    }),
    findings: () => findings,
  };
}
