/** The refund process. Pure. */
import type { WorkParked, WorkRetried } from '../../domain/parked.js';
import type { RefundEvent } from '../../domain/purchase/refund.js';
import { idOf } from '../../domain/streamName.js';
import type { Position } from '../../ports/eventStore.js';
import type { Cause, Reaction } from '../runner/index.js';

export interface RefundWork {
  readonly transactionId: string;
  readonly last: Cause;
  readonly retried?: Retry;
  /** Ids of gifts whose receivers are not notified until the refund has decided on them. */
  readonly undecided?: readonly string[];
}

export interface Retry {
  readonly at: Position;
  readonly cause: Cause;
}

/** `refund`: do the next step by the purchase's stream; `release`: wake the notification of a gift decided on. */
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
      // The job that requested the refund continues. Without one (no request, or parked before the provider's answer) a
      // job starts here. A refused refund is open until it is parked for a person.
      return state === undefined ? opened : { state: { transactionId, last: cause }, intents: [] };
    case 'RefundFailed':
      // The refund had ended: a new job reports the failure and is parked.
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

/** Intents that wake the gifts' notifications once the refund has decided, or is parked. */
export function releases(state: RefundWork | undefined, instance: string): readonly RefundIntent[] {
  return (state?.undecided ?? []).map((giftId) => ({ do: 'release', instance, giftId }));
}
