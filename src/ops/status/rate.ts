import { timeoutSignal } from '../../lib/world.js';
import type { EventStore, Position } from '../../ports/eventStore.js';

const COUNT_EVENTS = 20_000;
const COUNT_MS = 300;

/**
 * Events a second between two positions. Only the first events are counted; positions grow evenly enough to estimate
 * the rest.
 */
export async function rate(
  events: EventStore,
  types: readonly string[],
  { from, to, ms }: { readonly from: Position | undefined; readonly to: Position | undefined; readonly ms: number },
): Promise<number> {
  if (to === undefined || from === to || (from !== undefined && from > to) || ms <= 0) return 0;
  const late = timeoutSignal(COUNT_MS);
  let counted = 0;
  let at = Number(from ?? 0);
  for await (const batch of events.readAll(from, { types }, { signal: late })) {
    counted += batch.events.filter((event) => event.position <= to).length;
    at = Math.min(Number(batch.position), Number(to));
    if (batch.position >= to || counted >= COUNT_EVENTS) break;
  }
  const share = (at - Number(from ?? 0)) / (Number(to) - Number(from ?? 0));
  return Math.round((share > 0 ? counted / share : counted) / (ms / 1_000));
}
