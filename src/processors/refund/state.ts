/** The refund process: cancel the gifts of a refund that was asked for, then give their share back. Pure. */
import type { WorkParked, WorkRetried } from '../../domain/parked.js';
import type { RefundEvent } from '../../domain/refund.js';
import { idOf } from '../../domain/streamName.js';
import type { Position } from '../../ports/eventStore.js';
import type { Cause } from '../runner/cause.js';
import type { Reaction } from '../runner/processManager.js';

export interface RefundWork {
  readonly transactionId: string;
  /** Its last event. */
  readonly last: Cause;
  /** Support's last retry: what was refused before it is tried again. */
  readonly retried?: Retry;
  /** Gifts that it may still cancel: their receivers are not notified until it has decided. */
  readonly undecided?: readonly string[];
}

/** `at`: its place in the log. */
export interface Retry {
  readonly at: Position;
  readonly cause: Cause;
}

/**
 * What is to be done for a refund; `instance` is its id. `refund`: whatever its stream says is next; `release`: wake the
 * notification of a gift, which it has decided on.
 */
export type RefundIntent =
  | { readonly do: 'refund'; readonly instance: string }
  | { readonly do: 'release'; readonly instance: string; readonly giftId: string };

export type RefundTrigger = (RefundEvent | WorkParked | WorkRetried) & {
  readonly position: Position;
  readonly stream: string;
};

type RefundReaction = Reaction<RefundWork, RefundIntent>;

export function reactToRefund(
  state: RefundWork | undefined,
  event: RefundTrigger,
  instance: string,
  cause: Cause,
): RefundReaction {
  const after = next(state, event, instance, cause);
  return { ...after, intents: [...after.intents, ...releases(state, instance)] };
}

function next(state: RefundWork | undefined, event: RefundTrigger, instance: string, cause: Cause): RefundReaction {
  const transactionId = 'transaction_id' in event.data ? event.data.transaction_id : idOf(event.stream);
  const opened: RefundReaction = {
    state: { transactionId, last: cause },
    intents: [{ do: 'refund', instance }],
  };
  switch (event.type) {
    case 'RefundRequested':
      return { ...opened, state: { transactionId, last: cause, undecided: event.data.gift_ids } };
    case 'RefundStarted':
    case 'RefundRefused':
      // The job that asked goes on. Where there is none (nobody asked for it, or it was given up before the provider's
      // word came) it starts here. One that was refused is open until it is parked: a person must see to it.
      return state === undefined ? opened : { state: { transactionId, last: cause, ...retriedOf(state) }, intents: [] };
    case 'RefundFailed':
      // It was over: it is opened for its job to say so, and to be parked.
      return opened;
    case 'GiftsRefunded':
    case 'NothingRefunded':
    case 'WorkParked':
      return { state: undefined, intents: [] };
    case 'WorkRetried':
      return { ...opened, state: { transactionId, last: cause, retried: { at: event.position, cause } } };
    default:
      return event satisfies never;
  }
}

const retriedOf = ({ retried }: RefundWork): Pick<RefundWork, 'retried'> => (retried === undefined ? {} : { retried });

/** It has decided on all gifts, or is parked. */
export function releases(state: RefundWork | undefined, instance: string): readonly RefundIntent[] {
  return (state?.undecided ?? []).map((giftId) => ({ do: 'release', instance, giftId }));
}
