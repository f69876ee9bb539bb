/** The redemption that an event reverses: the event has its id alone. */
import type { GiftRedeemed, GiftUnredeemed } from '../../domain/gift/events.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';

/** Redemptions remembered at least, and at most twice as many: most reversals come soon. */
const REMEMBERED = 10_000;
/** Streams read in parallel. */
const READS = 32;

export interface RedeemedFacts {
  /**
   * The redemptions of these events (`GiftRedeemed`, `GiftUnredeemed`, in log order).
   * @throws UnavailableError; Error where a reversed redemption is not in its gift's stream
   */
  of(events: readonly RecordedEvent[]): Promise<GiftRedeemed['data'][]>;
}

/** Remembers a bounded number of redemptions, and reads the gift's stream for others. */
export function redeemedFacts(events: EventStore): RedeemedFacts {
  let recent = new Map<string, GiftRedeemed['data']>();
  let earlier = new Map<string, GiftRedeemed['data']>();

  function remember(redemption: GiftRedeemed['data']): void {
    recent.set(redemption.redemption_id, redemption);
    if (recent.size < REMEMBERED) return;
    earlier = recent;
    recent = new Map();
  }

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
        if (event.type !== 'GiftRedeemed') {
          const { redemption_id: id } = event.data as GiftUnredeemed['data'];
          return recent.get(id) ?? earlier.get(id);
        }
        remember(event.data as GiftRedeemed['data']);
        return event.data as GiftRedeemed['data'];
      });
      const missing = facts.flatMap((fact, index) => (fact === undefined ? [index] : []));
      await inParallel(missing, READS, async (index) => {
        facts[index] = await find(batch[index] as RecordedEvent);
      });
      return facts as GiftRedeemed['data'][];
    },
  };
}
