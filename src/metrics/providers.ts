import type { BreakerState, ProviderCallWatch } from '../providers/circuitBreaker.js';
import { counts } from './counts.js';
import type { Exposition, Sample } from './exposition.js';
import { histograms } from './histogram.js';

const STATES: readonly BreakerState[] = ['closed', 'half_open', 'open'];

export function countProviderCalls(show: Exposition): ProviderCallWatch {
  const calls = counts(2);
  const durations = histograms();
  const breakers = new Map<string, () => BreakerState>();
  show.counter(
    {
      name: 'gift_provider_calls_total',
      help: 'Calls of real providers by outcome: answered, error, retry_later, not_called',
      labels: ['provider', 'outcome'],
    },
    calls.samples,
  );
  show.histogram(
    {
      name: 'gift_provider_call_duration_seconds',
      help: 'Time that calls of real providers took',
      labels: ['provider'],
    },
    durations.samples,
  );
  show.gauge(
    {
      name: 'gift_provider_breaker_state',
      help: "State of a provider's breaker: 1 for the one that it is in",
      labels: ['provider', 'state'],
    },
    function* (): Iterable<Sample> {
      for (const [provider, now] of breakers)
        for (const state of STATES) yield [[provider, state], now() === state ? 1 : 0];
    },
  );
  return {
    opened(provider, state) {
      breakers.set(provider, state);
      durations.of(provider);
    },
    called(provider, outcome, milliseconds) {
      calls.add(provider, outcome);
      if (outcome !== 'not_called') durations.of(provider).observe(milliseconds / 1000);
    },
  };
}
