/** The dispute process. Pure. */
import {
  disputeKey,
  evolveReversals,
  fallsShort,
  NO_REVERSALS,
  PROVIDER_REFUND_KEY,
  type ProviderRefundSettled,
  type ReversalEvent,
  type Reversals,
  type ReversalStep,
  reversalSteps,
} from '../../domain/purchase/disputes.js';
import type { WorkParked, WorkRetried } from '../../domain/parked.js';
import type { Cause, ParkAs, Reaction } from '../runner/index.js';

/** Disputes and external refunds of one transaction, as far as the feed shows them. */
export interface ReversalWork {
  readonly reversals: Reversals;
  /** Keys of steps that were parked, or found to be done. */
  readonly over: ReadonlySet<string>;
  /** Retries requested by support, by key: due whatever the rest of this state says. */
  readonly retried: ReadonlyMap<string, Cause>;
  /** A provider refund whose money exceeds the price of the cancelled gifts: to be parked for a person. */
  readonly shortfall?: ProviderRefundSettled['data'];
  /** The last event of each key. */
  readonly last: ReadonlyMap<string, Cause>;
}

export interface ReversalIntent {
  readonly do: 'settle';
  readonly instance: string;
  readonly key: string;
}

export type ReversalTrigger = ReversalEvent | WorkParked | WorkRetried;

const UNKNOWN: ReversalWork = { reversals: NO_REVERSALS, over: new Set(), retried: new Map(), last: new Map() };

export function reactToReversal(
  state: ReversalWork | undefined,
  event: ReversalTrigger,
  instance: string,
  cause: Cause,
): Reaction<ReversalWork, ReversalIntent> {
  const before = state ?? UNKNOWN;
  if (event.type === 'WorkParked')
    return { state: state === undefined ? undefined : endStep(state, parkedKey(event.data)), intents: [] };
  if (event.type === 'WorkRetried') {
    const key = parkedKey(event.data);
    const after = {
      ...before,
      over: without(before.over, key),
      retried: new Map(before.retried).set(key, cause),
      last: new Map(before.last).set(key, cause),
    };
    return { state: after, intents: [{ do: 'settle', instance, key }] };
  }
  const key = keyOf(event);
  const reversals = evolveReversals(before.reversals, event);
  const after: ReversalWork = {
    ...before,
    reversals,
    // A new event makes parked work due again.
    over: without(before.over, key),
    last: new Map(before.last).set(key, cause),
    ...(event.type === 'ProviderRefundSettled' && fallsShort(event.data) ? { shortfall: event.data } : {}),
  };
  const asks = ASKING.has(event.type) && reversalSteps(reversals).some((step) => step.key === key);
  return { state: left(after), intents: asks ? [{ do: 'settle', instance, key }] : [] };
}

const DISPUTE_STEP = 'dispute';
const PROVIDER_REFUND_STEP = 'provider refund';

export const REVERSAL_STEPS = [DISPUTE_STEP, PROVIDER_REFUND_STEP] as const;

/** External refunds are parked under their transaction, among the refunds. */
export function parkReversalAs(transactionId: string, key: string): ParkAs {
  if (key === PROVIDER_REFUND_KEY) return { name: 'refund', entity: transactionId, step: PROVIDER_REFUND_STEP };
  return { name: 'dispute', entity: key.slice(disputeKey('').length), step: DISPUTE_STEP };
}

export const parkedKey = ({ step, entity }: Pick<WorkParked['data'], 'step' | 'entity'>): string =>
  step === DISPUTE_STEP ? disputeKey(entity) : PROVIDER_REFUND_KEY;

export function endStep(work: ReversalWork, key: string): ReversalWork | undefined {
  const { shortfall, ...rest } = work;
  const met = key === PROVIDER_REFUND_KEY || shortfall === undefined ? rest : work;
  const retried = new Map(met.retried);
  retried.delete(key);
  return left({ ...met, retried, over: new Set(met.over).add(key) });
}

/** Types of events that request a step; the other types are answers. */
const ASKING: ReadonlySet<ReversalEvent['type']> = new Set(['RefundedAtProvider', 'DisputeOpened', 'DisputeClosed']);

export function asksFor(event: { readonly type: string; readonly data: object }, key: string): boolean {
  return ASKING.has(event.type as ReversalEvent['type']) && keyOf(event as ReversalEvent) === key;
}

export function resumeReversals(work: ReversalWork, instance: string): readonly ReversalIntent[] {
  return openKeys(work).map((key) => ({ do: 'settle', instance, key }));
}

function openKeys({ reversals, over, retried, shortfall }: ReversalWork): readonly string[] {
  const keys = new Set([
    ...reversalSteps(reversals)
      .map(({ key }) => key)
      .filter((key) => !over.has(key)),
    ...retried.keys(),
  ]);
  return [...(shortfall === undefined ? keys : keys.add(PROVIDER_REFUND_KEY))];
}

function left(work: ReversalWork): ReversalWork | undefined {
  return openKeys(work).length === 0 ? undefined : work;
}

function keyOf(event: ReversalEvent): ReversalStep['key'] {
  switch (event.type) {
    case 'DisputeOpened':
    case 'DisputeClosed':
    case 'DisputeSettled':
      return disputeKey(event.data.dispute_id);
    case 'RefundedAtProvider':
    case 'ProviderRefundSettled':
      return PROVIDER_REFUND_KEY;
    default:
      return event satisfies never;
  }
}

function without(keys: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const others = new Set(keys);
  others.delete(key);
  return others;
}
