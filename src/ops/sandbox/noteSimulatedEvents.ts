/**
 * Records events that a simulated provider reports by itself, as those of a real provider are recorded
 * (docs/api/sandbox.md#cards). Safe to repeat at any point, and in several processes at once.
 */
import type { CommandContext } from '../../commands/transact.js';
import { noteUndelivered } from '../../commands/noteDelivery.js';
import { recordProviderEvent, PROVIDER_USER } from '../../commands/recordProviderEvent.js';
import { readPurchase } from '../../commands/readStreams.js';
import { pause } from '../../lib/async/pause.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { reported, type SimulatedEvent } from '../../providers/simulatedEvents.js';
import type { FollowerRun } from '../../runtime/supervision/followers.js';

const POLL_MS = 300;
/** Milliseconds to wait for the record of a message that the provider has just taken. */
const SENT_WITHIN_MS = 5_000;

interface SimulatedEventDeps {
  readonly events: EventStore;
  readonly records: Pick<Records, 'list' | 'delete'>;
  /** Present time: ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
}

export function noteSimulatedEvents(
  deps: SimulatedEventDeps,
): (run: Pick<FollowerRun, 'signal' | 'well'>) => Promise<void> {
  return async ({ signal, well }) => {
    for (; !signal.aborted; await pause(POLL_MS, signal)) {
      for (const { key, value } of await reported(deps.records))
        if (await note(deps, value, key)) await deps.records.delete(key);
      well();
    }
  };
}

/** Records a provider event. @returns false where it must be tried again, since the purchase is pending */
async function note({ events, now }: SimulatedEventDeps, providerEvent: SimulatedEvent, key: string): Promise<boolean> {
  const context: CommandContext = {
    commandId: key,
    correlationId: key,
    by: { user: PROVIDER_USER },
    simulated: true,
    now: now(),
  };
  if (providerEvent.about === 'notification') {
    const { gift_id, attempt, message_id, cause } = providerEvent;
    const failed = { attempt, provider: 'simulated', message_id, cause };
    await noteUndelivered(events, gift_id, failed, context, SENT_WITHIN_MS);
    return true;
  }
  if ((await readPurchase(events, providerEvent.transaction_id)).status === 'pending') return false;
  await recordProviderEvent(events, providerEvent.transaction_id, providerEvent.providerEvent, context);
  return true;
}
