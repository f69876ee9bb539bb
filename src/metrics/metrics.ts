/** The metrics of one process, in Prometheus' text format. No label is personal or secret, and each has few values. */
import { Registry } from 'prom-client';
import type { DeliveryStatus } from '../deliveries/index.js';
import type { Engines } from '../ports/engines.js';
import type { KeyStore } from '../ports/keyStore.js';
import type { ProcessStatus } from '../processors/runner/index.js';
import type { Projection } from '../runtime/readmodels/index.js';
import type { ProviderCallWatch } from '../providers/circuitBreaker.js';
import { measuredBus } from './bus.js';
import { measuredEventStore } from './eventStore.js';
import { exposition, type Exposition } from './exposition.js';
import { type FollowersShown, showFollowers } from './followers.js';
import { type ProcessOptions, showProcess } from './nodeProcess.js';
import { countLimited, type LimitTally } from './limits.js';
import { type MetricValues, PROCESS_LABEL } from './ofAll.js';
import { showProcesses } from './processes.js';
import { countProviderCalls } from './providers.js';
import { countRequests, countStaffRefused, type RequestTally, type StaffTally } from './requests.js';
import { showState } from './state.js';
import { showWebhooks } from './webhooks.js';

export interface Metrics {
  readonly requests: RequestTally;
  readonly limited: LimitTally;
  readonly staffRefused: StaffTally;
  readonly providers: ProviderCallWatch;
  measure(engines: Engines): Engines;
  /**
   * Shows the metrics of engines, projections and followers. Call it once.
   * @param processes `undefined` where this process runs no process managers
   * @param webhooks `undefined` where this process delivers no webhooks
   */
  watch(
    engines: Engines,
    keyStore: Pick<KeyStore, 'engine' | 'ping'>,
    projections: readonly Projection[],
    processes: () => ProcessStatus | undefined,
    webhooks: () => DeliveryStatus | undefined,
    followers: FollowersShown,
  ): void;
  text(): Promise<string>;
  values(): Promise<MetricValues>;
  readonly contentType: string;
  close(): Promise<void>;
}

interface MetricsOptions extends ProcessOptions {
  readonly connections: () => ConnectionsShown | undefined;
  readonly shedRequests: () => number;
  /** Number of this process among those that one page shows; `undefined`: it has a page of its own. */
  readonly processNumber?: number | undefined;
}

export function openMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  if (options.processNumber !== undefined) registry.setDefaultLabels({ [PROCESS_LABEL]: options.processNumber });
  const show = exposition(registry);
  showConnections(show, options.connections);
  show.counter(
    {
      name: 'gift_shed_requests_total',
      help: 'Requests answered 503 because they came faster than the process could begin them',
    },
    () => [[[], options.shedRequests()]],
  );
  const requests = countRequests(show);
  const limited = countLimited(show);
  const staffRefused = countStaffRefused(show);
  const providers = countProviderCalls(show);
  const shown = showProcess(show, options);
  return {
    requests,
    limited,
    staffRefused,
    providers,
    measure: (engines) => ({
      ...engines,
      events: measuredEventStore(engines.events, show),
      bus: measuredBus(engines.bus, show),
    }),
    watch(engines, keyStore, projections, processes, webhooks, followers) {
      showFollowers(show, followers);
      showProcesses(show, processes);
      showWebhooks(show, webhooks);
      showState(show, { engines, keyStore, projections, processes });
    },
    text: async () => registry.metrics(),
    values: async () => registry.getMetricsAsJSON(),
    contentType: registry.contentType,
    async close() {
      shown.close();
    },
  };
}

/** Connections of one listener (docs/limits.md#connections). */
interface ConnectionsShown {
  readonly open: number;
  /** Number of refused connections, by reason. */
  readonly refused: Readonly<Record<string, number>>;
}

/** @param read `undefined` where the process has no listener for requests */
function showConnections(show: Exposition, read: () => ConnectionsShown | undefined): void {
  show.gauge({ name: 'gift_connections', help: 'Connections that are open at PORT' }, () => {
    const shown = read();
    return shown === undefined ? [] : [[[], shown.open]];
  });
  show.counter(
    {
      name: 'gift_refused_connections_total',
      help: 'Connections refused at PORT: too many in all, too many of one address, or so many that none was answered',
      labels: ['reason'],
    },
    () => Object.entries(read()?.refused ?? {}).map(([reason, count]) => [[reason], count]),
  );
}
