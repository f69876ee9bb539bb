/** Engines, and the parts of the service that answer whether they are ready. */
import { ENGINE_AWAY } from '../../../runtime/supervision/followers.js';
import type { Found, FindingCode } from '../findings.js';

/** Health of a part, as `/readyz` shows it. */
export interface PartHealth {
  readonly ready: boolean;
  readonly detail: string;
}

/** Engines by the names that readiness has for them, with the setting that names their server. */
const ENGINES: Readonly<Record<string, { readonly code: FindingCode; readonly setting: string }>> = {
  'event store': { code: 'event_store_unavailable', setting: 'EVENTSTORE_URL' },
  'read store': { code: 'read_store_unavailable', setting: 'MONGODB_URL' },
  'key store': { code: 'key_store_unavailable', setting: 'KEYS_URL' },
  bus: { code: 'bus_unavailable', setting: 'NATS_URL' },
};

/** Names of parts that other checks look at more closely: read models, process managers, webhooks, followers. */
const ELSEWHERE = /^(projection |process managers$|webhooks$|outward work$)/;

/**
 * Engines that do not answer, and other parts that are not ready.
 * @param servers names of engines that are servers: these are started again, and the service goes on by itself
 */
export function checkParts(
  parts: Readonly<Record<string, PartHealth>>,
  servers: ReadonlySet<string>,
  failing: ReadonlySet<string>,
): Found[] {
  const isEngineAway = Object.entries(parts).some(([name, { ready }]) => !ready && name in ENGINES);
  return Object.entries(parts).flatMap(([name, { ready, detail }]): Found[] => {
    if (ready) return [];
    // It goes on by itself once the engine is back, which is named: a restart mends nothing.
    if (isEngineAway && detail.endsWith(ENGINE_AWAY)) return [];
    const engine = ENGINES[name];
    const what = `${name}: ${detail}`;
    if (engine !== undefined)
      return [
        {
          code: engine.code,
          what,
          ...(servers.has(name)
            ? { command: `start the server of ${engine.setting}; the service goes on by itself` }
            : {}),
        },
      ];
    return ELSEWHERE.test(name) || failing.has(name) ? [] : [{ code: 'part_not_ready', what }];
  });
}

export function checkSeal(sealed: boolean): Found[] {
  return sealed ? [{ code: 'log_sealed', what: 'the log is sealed' }] : [];
}
