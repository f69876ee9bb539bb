/**
 * The refund process: cancel the gifts of a refund that was asked for, then give their share back. Pure: events come
 * in, what to do comes out.
 */
import type { WorkParked, WorkRetried } from '../../domain/parked.js';
import type { RefundEvent } from '../../domain/refund.js';
import type { Position } from '../../ports/eventStore.js';
import type { Cause } from '../runner/cause.js';

/** A refund with something left to do. */
export interface RefundWork {
  readonly transactionId: string;
  /** Its last event. */
  readonly last: Cause;
  /** Support's last retry: what was refused before it is tried again. */
  readonly retried?: Retry;
}

/** Support has handed it back: the event that says so, and where that stands in the log. */
export interface Retry {
  readonly at: Position;
  readonly cause: Cause;
}

/** What is to be done for a refund: whatever its stream says is next. */
export type RefundIntent = { readonly do: 'refund'; readonly refundId: string };

/** A refund after one more event; `work` undefined: there is nothing left to do. */
export interface RefundReaction {
  readonly work: RefundWork | undefined;
  readonly intents: readonly RefundIntent[];
}

const NOTHING: RefundReaction = { work: undefined, intents: [] };

/** The events that move a refund, with their place in the log. */
export type RefundTrigger = (RefundEvent | WorkParked | WorkRetried) & { readonly position: Position };

/** The reaction. */
export function reactToRefund(
  work: RefundWork | undefined,
  event: RefundTrigger,
  refundId: string,
  transactionId: string,
  cause: Cause,
): RefundReaction {
  switch (event.type) {
    case 'RefundRequested':
      return opened(refundId, transactionId, cause);
    case 'RefundStarted':
      // Who asked for it goes on; one that nobody asked for begins here.
      return work === undefined
        ? opened(refundId, transactionId, cause)
        : { work: { ...work, last: cause }, intents: [] };
    case 'RefundRefused':
      // It is open until it is parked: a person must see to it. Who asked parks it; where it had been given up before
      // the provider's word came, it begins here.
      return work === undefined
        ? opened(refundId, transactionId, cause)
        : { work: { ...work, last: cause }, intents: [] };
    case 'RefundFailed':
      // It was over: it is opened for its turn to say so, and to be parked.
      return opened(refundId, transactionId, cause);
    case 'GiftsRefunded':
    case 'NothingRefunded':
    case 'WorkParked':
      return NOTHING;
    case 'WorkRetried':
      return {
        work: { transactionId, last: cause, retried: { at: event.position, cause } },
        intents: [{ do: 'refund', refundId }],
      };
    default:
      return (event satisfies never, NOTHING);
  }
}

function opened(refundId: string, transactionId: string, last: Cause): RefundReaction {
  return { work: { transactionId, last }, intents: [{ do: 'refund', refundId }] };
}
