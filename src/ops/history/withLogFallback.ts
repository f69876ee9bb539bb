/**
 * Look-ups for histories in read models; where these are behind or unavailable, in the log. Only for the command line:
 * the fallback reads the whole log.
 */
import { type GiftRedeemed, giftStream } from '../../domain/gift/events.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import { idOf } from '../../domain/streamName.js';
import { nextTurn } from '../../lib/world.js';
import type { EventFilter, EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { ReadModels } from '../../projections/index.js';
import type { KnownGifts } from './giftHistory.js';

/** Milliseconds to wait for a read model: enough alongside a running service. */
const REACH_MS = 500;
const PURCHASES = { types: ['GiftsPurchased'], streams: [transactionStream('')] } as const;
const REDEMPTIONS = { types: ['GiftRedeemed'], streams: [giftStream('')] } as const;

export function withLogFallback(
  events: EventStore,
  { gifts, redemptions }: Pick<ReadModels, 'gifts' | 'redemptions'>,
  signal?: AbortSignal,
): KnownGifts {
  return {
    gifts: {
      get: async (giftId) =>
        modelOrLog<{ readonly transaction_id: string }>(events, gifts, giftId, PURCHASES, signal, ({ data }) => {
          const { seed, receivers, transaction_id } = data as GiftsPurchased['data'];
          return deriveGiftIds(seed, receivers.length).some(({ gift_id }) => gift_id === giftId)
            ? { transaction_id }
            : undefined;
        }),
    },
    redemptions: {
      get: async (id) =>
        modelOrLog<{ readonly gift_id: string }>(events, redemptions, id, REDEMPTIONS, signal, ({ stream, data }) =>
          (data as GiftRedeemed['data']).redemption_id === id ? { gift_id: idOf(stream) } : undefined,
        ),
    },
  };
}

async function modelOrLog<T>(
  events: EventStore,
  model: Pick<ReadModel<T & object>, 'get' | 'reached'>,
  id: string,
  filter: EventFilter,
  signal: AbortSignal | undefined,
  match: (event: RecordedEvent) => T | undefined,
): Promise<T | undefined> {
  try {
    const known = await model.get(id);
    if (known !== undefined) return known;
    const end = await events.end();
    if (end === undefined || (await model.reached(end, REACH_MS))) return await model.get(id);
  } catch (error) {
    // The log is read instead; where it is unavailable, too, reading it throws.
    if (!(error instanceof UnavailableError)) throw error;
  }
  for await (const batch of events.readAll(undefined, filter, { signal })) {
    for (const event of batch.events) {
      const found = match(event);
      if (found !== undefined) return found;
    }
    await nextTurn();
  }
  signal?.throwIfAborted();
  return undefined;
}
