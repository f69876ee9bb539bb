/**
 * Gifts whose receiver is to be told otherwise than for the first time: again, another one, or because support retries
 * what was parked.
 */
import type { Position } from '../../ports/eventStore.js';
import type { Cause } from '../runner/cause.js';

/** One such gift. */
export interface Retelling {
  /** The position that the feed stood at before the event that opened it. */
  readonly before: Position | undefined;
  /** The time of that event: ISO 8601. */
  readonly at: string;
  readonly transactionId: string;
  /** The event that asked last. */
  readonly cause: Cause;
  /** Rises with each event that asks. */
  readonly generation: number;
}

/** Look at the gift's streams, and tell what is to be told. */
export interface RetellIntent {
  readonly do: 'retell';
  readonly giftId: string;
}

/** All of them. */
export interface Retellings {
  /** One more event asks. */
  ask(giftId: string, asked: Omit<Retelling, 'generation'>): readonly RetellIntent[];
  get(giftId: string): Retelling | undefined;
  /** Nothing is left to tell: of this generation, where one is given; what was asked for since stays. */
  end(giftId: string, generation?: number): void;
  resume(): Iterable<RetellIntent>;
  /** The one that was opened first. */
  oldest(): Retelling | undefined;
  readonly size: number;
}

/** None. */
export function openRetellings(): Retellings {
  // In the order in which they were opened.
  const open = new Map<string, Retelling>();
  return {
    ask(giftId, asked) {
      const earlier = open.get(giftId);
      const { before, at } = earlier ?? asked;
      open.set(giftId, {
        before,
        at,
        transactionId: asked.transactionId,
        cause: asked.cause,
        generation: (earlier?.generation ?? 0) + 1,
      });
      return [{ do: 'retell', giftId }];
    },
    get: (giftId) => open.get(giftId),
    end(giftId, generation) {
      if (generation === undefined || open.get(giftId)?.generation === generation) open.delete(giftId);
    },
    *resume() {
      for (const giftId of open.keys()) yield { do: 'retell', giftId };
    },
    oldest() {
      const [oldest] = open.values();
      return oldest;
    },
    get size() {
      return open.size;
    },
  };
}
