/** The redemptions that reversals name only by id. */
import { LRUCache } from 'lru-cache';
import type { GiftRedeemed, GiftUnredeemed } from '../../domain/gift/events.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';

/** Most reversals come soon after their redemption. */
const REMEMBERED = 10_000;
const PARALLEL_READS = 32;

interface RedeemedFacts {
  /**
   * The redemption of each event (`GiftRedeemed`, `GiftUnredeemed`). Batches are in log order.
   * @throws Error where a gift's stream does not have the reversed redemption
   */
  of(events: readonly RecordedEvent[]): Promise<GiftRedeemed['data'][]>;
}

/** Remembers a bounded number of redemptions, and reads the gift's stream for others. */
export function redeemedFacts(events: EventStore): RedeemedFacts {
  const recent = new LRUCache<string, GiftRedeemed['data']>({ max: REMEMBERED });

  async function find({ stream, data }: RecordedEvent): Promise<GiftRedeemed['data']> {
    const { redemption_id: id } = data as GiftUnredeemed['data'];
    const redeemed = (await events.read(stream)).find(
      (event) => event.type === 'GiftRedeemed' && (event.data as GiftRedeemed['data']).redemption_id === id,
    );
    if (redeemed === undefined) throw new Error(`${stream} reverses the redemption ${id}, which it does not have`);
    return redeemed.data as GiftRedeemed['data'];
  }

  return {
    async of(batch) {
      const facts: (GiftRedeemed['data'] | undefined)[] = batch.map((event) => {
        if (event.type !== 'GiftRedeemed') return recent.get((event.data as GiftUnredeemed['data']).redemption_id);
        const redemption = event.data as GiftRedeemed['data'];
        recent.set(redemption.redemption_id, redemption);
        return redemption;
      });
      const missing = facts.flatMap((fact, index) => (fact === undefined ? [index] : []));
      await inParallel(missing, PARALLEL_READS, async (index) => {
        facts[index] = await find(batch[index] as RecordedEvent);
      });
      return facts as GiftRedeemed['data'][];
    },
  };
}
