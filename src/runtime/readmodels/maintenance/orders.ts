/**
 * Orders of maintenance. A front stores an order as a record, and watches that record. A process with the role
 * `projector` carries the order out (`maintainer.ts`). The record outlives both, and shows the last order of its kind.
 */
import { isDeepStrictEqual } from 'node:util';
import { pause } from '../../../lib/async/pause.js';
import { systemTime } from '../../../lib/clock.js';
import { randomUUID, systemMs, ticks } from '../../../lib/world.js';
import type { Position } from '../../../ports/eventStore.js';
import type { Records, StoredRecord } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { leaseState } from '../../coordination/index.js';
import type { BuildId } from '../buildNumbers.js';
import { MAINTENANCE, raiseEdition } from '../edition.js';
import type { Difference } from './differences.js';
import type { Progress } from './progress.js';

export const ORDERS = 'task/';
/** An order whose record was not renewed for this long has no process that carries it out. */
const DEAD_MS = 10_000;
const KEEP_MS = 7 * 86_400_000;
/** Milliseconds between two polls of an order by its requester: at first, and once that waited for `SOON_MS`. */
const POLL_MS = { first: 50, later: 1_000 };
const SOON_MS = 5_000;

/** The next step after a refusal. Each caller that shows the error adds how to request that step. */
type Remedy = 'abort' | 'audit' | 'rebuild' | 'rollback' | 'status' | 'verify';

export interface Refusal {
  readonly remedy?: Remedy | undefined;
  /** Whether other work is in progress, so that a later attempt may succeed. */
  readonly busy?: boolean | undefined;
}

/** Refusal of a maintenance request: nothing was changed, and the message says why. */
export class MaintenanceRefusedError extends Error {
  override readonly name: string = 'MaintenanceRefusedError';
  readonly refusal: Refusal;
  constructor(message: string, refusal: Refusal = {}) {
    super(message);
    this.refusal = refusal;
  }
}

/** Report of a verification; version and build are those of the verified build. */
export interface Verification extends BuildId {
  readonly documents: number;
  readonly differences: number;
  /** Number of documents that could not be compared, since the projector is behind. */
  readonly unsettled: number;
  readonly behind: boolean;
  /** The log was folded up to this position. */
  readonly position: Position | null;
  /** The first differences; the stored pages (`verification.ts`) have more. */
  readonly found: readonly Difference[];
}

export interface RepairOutcome {
  readonly id: string;
  /**
   * `repaired`: replaced by the log's document; `same`: equal to it, and found by lists; `removed`: the log lacks it;
   * `quarantined`: the fold fails.
   */
  readonly outcome: 'repaired' | 'same' | 'removed' | 'quarantined';
  readonly cause?: string;
}

/** A rebuild that an order requested, or found in progress. */
export interface StartedRebuild {
  readonly name: string;
  /** Number of the new build; `from`: of the build in use. */
  readonly target: number;
  readonly from: number | null;
  readonly resumed: boolean;
}

/** What each kind of order requests. */
interface Requests {
  /** `sample`: number of documents to verify, picked at random; absent: all. */
  verification: { readonly sample?: number };
  /** `found`: the documents are those of the last verification, whose findings are then forgotten. */
  repair: { readonly ids: readonly string[]; readonly found?: true; readonly uncheckedLog?: boolean };
  /** `uncheckedLog`: the log is not compared with its signed heads first. */
  rebuild: { readonly names: readonly string[]; readonly uncheckedLog?: boolean };
}

/** What each kind of order leaves. A rebuild's order is done once its builds are requested. */
export interface Results {
  verification: Verification;
  repair: { readonly documents: readonly RepairOutcome[] };
  rebuild: readonly StartedRebuild[];
}

export type OrderKind = keyof Requests;

type OrderStep =
  | { readonly step: 'check'; readonly events: number }
  | { readonly step: 'fold'; readonly progress: Progress }
  | { readonly step: 'compare'; readonly documents: number }
  /** Waits for the leading process, which replaces documents. */
  | { readonly step: 'place' };

/** A request of maintenance, by a person. */
export interface Requested {
  readonly by: string;
  readonly reason?: string;
  /** Time of the request, ISO 8601, UTC, milliseconds. */
  readonly at: string;
  /** Name of the requesting process, as the holder of leases, if that process carries the order out itself. */
  readonly process?: string;
}

export interface Order<K extends OrderKind = OrderKind> extends Omit<Requested, 'reason'> {
  readonly id: string;
  readonly kind: K;
  readonly projection: string;
  readonly request: Requests[K];
  /** `interrupted`: it was withdrawn, or no process carries it out. */
  readonly state: 'running' | 'done' | 'failed' | 'interrupted';
  readonly reason: string | null;
  /** Time of the last renewal, ISO 8601, UTC, milliseconds. */
  readonly told_at: string;
  /** Share of the work that is done, 0 to 1; null: unknown. */
  readonly progress: number | null;
  readonly step: OrderStep | null;
  readonly result: Results[K] | null;
  /** Text that anyone may see. `cause`: the error's message, for the operator. */
  readonly failure: string | null;
  readonly cause?: string;
  /** Present if the order was refused. */
  readonly refusal?: Refusal;
  /** An engine did not answer, so that the same order may succeed later. */
  readonly unavailable?: true;
}

/** The work on one order. */
export interface Work {
  readonly signal: AbortSignal;
  /** `share`: of the work that is done, 0 to 1; null: as before. */
  report(share: number | null, step: OrderStep): void;
}

/** An order in progress that was stored by this release. */
export function isOpen(value: Order): boolean {
  // Records of another release may lack the request.
  return value.state === 'running' && (value as Partial<Order>).request !== undefined;
}

const keyOf = (kind: OrderKind, projection: string): string => `${ORDERS}${kind}/${projection}`;

/** Name of the lease under which one process carries an order out. */
export const orderLease = ({ kind, projection }: Pick<Order, 'kind' | 'projection'>): string =>
  `order/${kind}/${projection}`;

function shown<K extends OrderKind>(order: Order<K>): Order<K> {
  return order.state === 'running' && systemMs() - Date.parse(order.told_at) >= DEAD_MS
    ? { ...order, state: 'interrupted' }
    : order;
}

export async function lastOrder<K extends OrderKind>(
  records: Records,
  kind: K,
  projection: string,
): Promise<Order<K> | undefined> {
  const record = await records.get<Order<K>>(keyOf(kind, projection));
  return record && shown(record.value);
}

/**
 * Stores an order. A person who repeats a request whose process has ended gets the order in progress.
 * @throws MaintenanceRefusedError while another order of its kind is in progress; UnavailableError
 */
export async function placeOrder<K extends OrderKind>(
  records: Records,
  kind: K,
  projection: string,
  request: Requests[K],
  { reason, ...requested }: Requested,
): Promise<Order<K>> {
  const key = keyOf(kind, projection);
  const stored = await records.get<Order<K>>(key);
  const before = stored && shown(stored.value);
  if (before?.state === 'running') {
    if (isDeepStrictEqual(before.request, request) && (await isLeft(records, before, requested.by))) return before;
    throw new MaintenanceRefusedError(
      `a ${kind} of ${projection} is under way since ${before.at}, asked for by ${before.by}`,
      { busy: true },
    );
  }
  const order: Order<K> = {
    id: randomUUID(),
    kind,
    projection,
    request,
    state: 'running',
    ...requested,
    reason: reason ?? null,
    told_at: systemTime(),
    progress: null,
    step: null,
    result: null,
    failure: null,
  };
  if ((await putOrder(records, order, stored?.version ?? 0)) === undefined)
    throw new MaintenanceRefusedError(`a ${kind} of ${projection} was begun in this moment by somebody else`, {
      busy: true,
    });
  await raiseEdition({ records }, MAINTENANCE);
  return order;
}

/** Whether the process that requested the order, and would have carried it out itself, has left it to others. */
async function isLeft(records: Records, order: Order, by: string): Promise<boolean> {
  if (order.process === undefined || order.by !== by) return false;
  const lease = await leaseState(records, orderLease(order));
  return lease?.holder !== order.process || lease.lives === false;
}

/** @returns the new version; `undefined`: the record has another version than `expected` */
export async function putOrder(records: Records, order: Order, expected: number): Promise<number | undefined> {
  return records.put(keyOf(order.kind, order.projection), order, { expected, expiresAt: systemMs() + KEEP_MS });
}

/** The order of this id, as long as no other has replaced it. */
export async function orderNow<K extends OrderKind>(
  records: Records,
  { id, kind, projection }: Pick<Order<K>, 'id' | 'kind' | 'projection'>,
): Promise<StoredRecord<Order<K>> | undefined> {
  const record = await records.get<Order<K>>(keyOf(kind, projection));
  return record?.value.id === id ? record : undefined;
}

/** The order as it is now; `interrupted` where another has replaced it, as only one that had ended can be replaced. */
export async function currentOrder<K extends OrderKind>(records: Records, order: Order<K>): Promise<Order<K>> {
  return (await orderNow(records, order))?.value ?? { ...order, state: 'interrupted' };
}

/** The error that a failed order is shown as, which is a refusal for its requester. */
export function failureOf({ failure, cause, refusal, unavailable }: Order): Error {
  if (refusal !== undefined) return new MaintenanceRefusedError(failure ?? '', refusal);
  return unavailable === true ? new UnavailableError(cause ?? '') : new Error(cause ?? failure ?? '');
}

/** Withdraws an order. Documents that its repair has handed to the leading process may still be replaced. */
export async function withdrawOrder(records: Records, order: Order): Promise<void> {
  for (;;) {
    const record = await orderNow(records, order);
    if (record?.value.state !== 'running') return;
    if ((await putOrder(records, { ...record.value, state: 'interrupted' }, record.version)) !== undefined) return;
  }
}

/**
 * Waits for an order's end, also while the store does not answer. @returns the order as it is then, or once `signal` is
 * aborted
 */
export async function orderAfter<K extends OrderKind>(
  records: Records,
  order: Order<K>,
  signal: AbortSignal,
): Promise<Order<K>> {
  let now = order;
  for (const startedAt = ticks(); !signal.aborted;) {
    try {
      now = await currentOrder(records, order);
      if (now.state !== 'running') return now;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
    }
    await pause(ticks() - startedAt < SOON_MS ? POLL_MS.first : POLL_MS.later, signal);
  }
  return now;
}
