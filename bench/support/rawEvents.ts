/** Events as the service appends them at a redemption, for the bare client of EventStoreDB. */
import { randomUUID } from 'node:crypto';
import { jsonEvent } from '@eventstore/db-client';

/** `$`: the service does not follow these streams, which would slow down both. */
export const benchStream = (id: string): string => `$bench-${id}`;

export function benchEvent(id: string = randomUUID()): ReturnType<typeof jsonEvent> {
  const data = {
    redemption_id: id,
    location_id: 's1',
    location_merchant_id: 'm1',
    merchant_id: 'm1',
    brand_id: 'b1',
    product_id: 'p1',
    value: 275,
  };
  const metadata = {
    at: new Date().toISOString(),
    commandId: id,
    correlationId: id,
    requestId: id,
    by: { user: 'till1', roles: ['redeem', 'unredeem'] },
  };
  return jsonEvent({ id, type: 'BenchRedeemed', data, metadata });
}
