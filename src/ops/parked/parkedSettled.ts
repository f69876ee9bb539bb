/** Whether parked work has been done since, as the streams tell: its own events don't tell of a retry that went well. */
import type { ParkedName } from '../../domain/parked.js';
import type { EventStore } from '../../ports/eventStore.js';
import { MANAGERS } from '../../processors/managers.js';
import type { ParkedEntity } from '../../processors/runner/processManager.js';

/**
 * Whether it is over, well or not: the charge is settled and its gifts are issued; the receiver was notified or can't
 * be; the money was given back, or there was nothing to give back; the gifts answer a dispute, or an external refund.
 * @throws UnavailableError
 */
export async function isSettled(
  events: EventStore,
  { name, work }: { readonly name: ParkedName; readonly work: ParkedEntity },
): Promise<boolean> {
  const manager = MANAGERS.find(({ steps }) => steps.includes(work.step));
  if (manager === undefined) throw new Error(`parked by ${name} under an unknown step, ${work.step}`);
  return manager.isSettled(events, work);
}
