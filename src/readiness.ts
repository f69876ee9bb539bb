/** Whether this process can do its work now: its engines answer, its projections have caught up. */
import type { PartHealth, Readiness } from './api/health.js';
import type { Config } from './config.js';
import type { Engines } from './engines.js';
import { keptBuild } from './projections/builds.js';
import { checkpointName } from './projections/projection.js';
import { PROJECTIONS } from './readModels.js';

/** A projection counts as caught up when it reaches the log's end, as it was when asked, within this time, milliseconds. */
const CATCH_UP_MS = 500;
const DEADLINE_MS = 2_000;

/** Asks every part. */
export function readinessOf({ events, store, bus }: Engines, config: Pick<Config, 'payments' | 'notifications'>): Readiness {
  const simulated = (['payments', 'notifications'] as const).filter((provider) => config[provider] === 'simulated');
  const asked = async (part: string, ask: () => Promise<PartHealth>): Promise<[string, PartHealth]> => {
    const late = new Promise<PartHealth>((resolve) => {
      setTimeout(() => resolve({ ready: false, detail: 'does not answer' }), DEADLINE_MS).unref();
    });
    return [part, await Promise.race([ask().catch(() => ({ ready: false, detail: 'cannot be reached' })), late])];
  };
  const engine = (part: { readonly engine: string; ping(): Promise<void> }) => async (): Promise<PartHealth> => {
    await part.ping();
    return { ready: true, detail: part.engine };
  };
  return async () => {
    const parts = await Promise.all([
      asked('event store', engine(events)),
      asked('read store', engine(store)),
      asked('bus', engine(bus)),
      ...PROJECTIONS.map((projection) =>
        asked(`projection ${projection.name}`, async () => {
          const active = await store.active(projection.name);
          if (active === undefined) return { ready: false, detail: 'is being built for the first time' };
          const [kept, end] = await Promise.all([keptBuild(store, projection, active), events.end()]);
          const reached = end === undefined || (await store.reached(checkpointName(kept), end, CATCH_UP_MS));
          return { ready: reached, detail: reached ? 'caught up' : 'is behind' };
        }),
      ),
    ]);
    return { parts: Object.fromEntries(parts), simulated };
  };
}
