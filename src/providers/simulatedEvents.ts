/** Provider events that a simulated provider would report later by itself, for a sandbox to record (`ops/sandbox/`). */
import type { ProviderEvent } from '../domain/purchase/providerEvent.js';
import type { Records } from '../ports/readStore.js';

const PREFIX = 'simulatedEvents/';
/** Milliseconds for which events are stored: as long as the simulated providers' ledgers. */
const RETAINED_MS = 48 * 3_600_000;

export type SimulatedEvent =
  | { readonly about: 'payment'; readonly transaction_id: string; readonly providerEvent: ProviderEvent }
  | {
      readonly about: 'notification';
      readonly gift_id: string;
      readonly attempt: number;
      readonly message_id: string;
      readonly cause: string;
    };

/** Stores an event once for each `id`. @param now milliseconds since the epoch @throws UnavailableError */
export async function reportLater(records: Records, id: string, event: SimulatedEvent, now: number): Promise<void> {
  await records.put(PREFIX + id, event, { expected: 0, expiresAt: now + RETAINED_MS });
}

/** The provider events still to be recorded. @throws UnavailableError */
export async function reported(
  records: Pick<Records, 'list'>,
): Promise<readonly { readonly key: string; readonly value: SimulatedEvent }[]> {
  return records.list<SimulatedEvent>(PREFIX);
}
