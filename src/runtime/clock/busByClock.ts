import type { Bus } from '../../ports/bus.js';
import type { Records } from '../../ports/readStore.js';
import { catchUpWithClock } from './sharedClock.js';

/**
 * A bus whose requests are handled at the sender's time or later. A process that has followed the sandbox's clock may
 * send a request to one that has not. That one would answer by the earlier time, for example "away for another hour".
 */
export function busByClock(bus: Pick<Bus, 'serve'>, records: Pick<Records, 'get'>): Pick<Bus, 'serve'> {
  return {
    serve: async <P>(subject: string, queue: string, handler: (payload: P) => Promise<object>) =>
      bus.serve<P>(subject, queue, async (payload) => {
        await catchUpWithClock(records);
        return handler(payload);
      }),
  };
}
