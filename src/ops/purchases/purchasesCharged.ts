import type { GiftsPurchased, PaymentCharged } from '../../domain/purchase/events.js';
import type { EventStore } from '../../ports/eventStore.js';

const CHARGED = { types: ['PaymentCharged' satisfies PaymentCharged['type']] };

/** Purchases of a charge, by one reading of the log; `at` is the time of the purchase. @throws UnavailableError */
export async function* purchasesCharged(
  events: Pick<EventStore, 'read' | 'readAll'>,
  chargeId: string,
): AsyncGenerator<{ readonly data: GiftsPurchased['data']; readonly at: string }> {
  for await (const batch of events.readAll(undefined, CHARGED))
    for (const { stream, data } of batch.events) {
      if ((data as PaymentCharged['data']).charge_id !== chargeId) continue;
      const [purchase] = await events.read(stream, { limit: 1 });
      if (purchase !== undefined) yield { data: purchase.data as GiftsPurchased['data'], at: purchase.at };
    }
}
