/**
 * The late-money process: answer disputes, and refunds made at the provider, with the gifts. Pure: events come in, what
 * to do comes out.
 */
import {
  disputeKey,
  evolveReversals,
  fallsShort,
  type Reversals,
  type ReversalEvent,
  type ReversalStep,
  reversalSteps,
  NO_REVERSALS,
  PROVIDER_REFUND_KEY,
  type ProviderRefundSettled,
} from '../../domain/disputes.js';
import type { ParkedName, WorkParked, WorkRetried } from '../../domain/parked.js';
import type { Cause } from '../runner/cause.js';

/**
 * A transaction with late money that something is left to do about. It is known from the feed's beginning on: what was
 * done before is not in it.
 */
export interface LateMoneyWork {
  readonly money: Reversals;
  /** What was given up, or found to be done, by key. */
  readonly over: ReadonlySet<string>;
  /**
   * What support has handed back, by key, with the event that says so: to be looked at, whatever is known of it here.
   */
  readonly retried: ReadonlyMap<string, Cause>;
  /** Gifts did not make up for what was given back at the provider: to be parked, for a person to see to. */
  readonly shortfall?: ProviderRefundSettled['data'];
  /** The last event of each step, by key: disputes and refunds of one purchase have nothing to do with each other. */
  readonly last: ReadonlyMap<string, Cause>;
}

/** What is to be done: the step with this key. */
export interface LateMoneyIntent {
  readonly do: 'late money';
  readonly transactionId: string;
  readonly key: string;
}

/** The events that move it. */
export type LateMoneyTrigger = ReversalEvent | WorkParked | WorkRetried;

/** It after one more event; `work` undefined: there is nothing left to do. */
export interface LateMoneyReaction {
  readonly work: LateMoneyWork | undefined;
  readonly intents: readonly LateMoneyIntent[];
}

/** The reaction. */
export function reactToLateMoney(
  work: LateMoneyWork | undefined,
  event: LateMoneyTrigger,
  transactionId: string,
  cause: Cause,
): LateMoneyReaction {
  const before = work ?? {
    money: NO_REVERSALS,
    over: new Set<string>(),
    retried: new Map<string, Cause>(),
    last: new Map<string, Cause>(),
  };
  if (event.type === 'WorkParked') {
    return { work: work === undefined ? undefined : overLateMoney(work, parkedKey(event.data)), intents: [] };
  }
  if (event.type === 'WorkRetried') {
    const key = parkedKey(event.data);
    const over = new Set(before.over);
    over.delete(key);
    const last = new Map(before.last).set(key, cause);
    return {
      work: { ...before, over, retried: new Map(before.retried).set(key, cause), last },
      intents: [{ do: 'late money', transactionId, key }],
    };
  }
  const key = keyOf(event);
  const money = evolveReversals(before.money, event);
  const over = new Set(before.over);
  // What comes up anew is tried anew.
  over.delete(key);
  const short = event.type === 'ProviderRefundSettled' && fallsShort(event.data) ? { shortfall: event.data } : {};
  const after: LateMoneyWork = { ...before, money, over, last: new Map(before.last).set(key, cause), ...short };
  const asks = OPENING.has(event.type) && reversalSteps(money).some((step) => step.key === key);
  return { work: left(after), intents: asks ? [{ do: 'late money', transactionId, key }] : [] };
}

const DISPUTE_STEP = 'dispute';
const PROVIDER_REFUND_STEP = 'provider refund';

/** The steps that its parked work names. */
export const LATE_MONEY_STEPS: ReadonlySet<string> = new Set([DISPUTE_STEP, PROVIDER_REFUND_STEP]);

/**
 * Where a step is parked when it can't be done: a dispute under its id, refunds made at the provider under the
 * transaction's, among the refunds.
 */
export function parkLateMoneyAs(
  transactionId: string,
  key: string,
): { readonly name: ParkedName; readonly entity: string; readonly step: string } {
  if (key === PROVIDER_REFUND_KEY) return { name: 'refund', entity: transactionId, step: PROVIDER_REFUND_STEP };
  return { name: 'dispute', entity: key.slice(disputeKey('').length), step: DISPUTE_STEP };
}

const parkedKey = ({ step, entity }: Pick<WorkParked['data'], 'step' | 'entity'>): string =>
  step === DISPUTE_STEP ? disputeKey(entity) : PROVIDER_REFUND_KEY;

/** It after a step was given up, or was found to be done in the stream. */
export function overLateMoney(work: LateMoneyWork, key: string): LateMoneyWork | undefined {
  const { shortfall, ...rest } = work;
  const met = key === PROVIDER_REFUND_KEY || shortfall === undefined ? rest : work;
  const retried = new Map(met.retried);
  retried.delete(key);
  return left({ ...met, retried, over: new Set(met.over).add(key) });
}

/** Events that ask for something; the others are answers, by who does it. */
const OPENING: ReadonlySet<ReversalEvent['type']> = new Set(['RefundedAtProvider', 'DisputeOpened', 'DisputeClosed']);

/** Whether an event asks for the step with this key. */
export function asksFor(event: { readonly type: string; readonly data: object }, key: string): boolean {
  return OPENING.has(event.type as ReversalEvent['type']) && keyOf(event as ReversalEvent) === key;
}

/** What is left to do, by who takes it up anew. */
export function resumeLateMoney(work: LateMoneyWork, transactionId: string): readonly LateMoneyIntent[] {
  return openKeys(work).map((key) => ({ do: 'late money', transactionId, key }));
}

function openKeys({ money, over, retried, shortfall }: LateMoneyWork): readonly string[] {
  const keys = new Set([
    ...reversalSteps(money)
      .map(({ key }) => key)
      .filter((key) => !over.has(key)),
    ...retried.keys(),
  ]);
  return [...(shortfall === undefined ? keys : keys.add(PROVIDER_REFUND_KEY))];
}

function left(work: LateMoneyWork): LateMoneyWork | undefined {
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
