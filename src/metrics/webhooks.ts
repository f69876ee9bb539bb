import { type DeliveryStatus, ENDPOINT_STATES } from '../deliveries/index.js';
import { clockMs } from '../lib/clock.js';
import type { Exposition, Sample } from './exposition.js';

/** @param read `undefined` where this process delivers no webhooks */
export function showWebhooks(show: Exposition, read: () => DeliveryStatus | undefined): void {
  show.counter(
    {
      name: 'gift_webhook_deliveries_total',
      help: 'Attempts to deliver an event to a webhook endpoint, by outcome; given_up: the last of three days; unreached: nothing was, while no endpoint answered',
      labels: ['outcome'],
    },
    () => Array.from(read()?.outcomes ?? [], ([outcome, count]): Sample => [[outcome], count]),
  );
  show.counter(
    {
      name: 'gift_webhook_endpoints_disabled_total',
      help: 'Webhook endpoints disabled since nothing could be delivered for five days (failures), the receiver said so (gone), or the client or merchant was disabled (inactive)',
      labels: ['cause'],
    },
    () => Array.from(read()?.disabled ?? [], ([cause, count]): Sample => [[cause], count]),
  );
  const endpoints = (): DeliveryStatus['endpoints'] | undefined => {
    const status = read();
    return status?.leading === true ? status.endpoints : undefined;
  };
  show.gauge(
    {
      name: 'gift_webhook_endpoints',
      help: 'Enabled webhook endpoints; failing: several attempts in a row failed, or the receiver asked to be left alone; stalled: something is due, and nothing is done; shown by the process that delivers',
      labels: ['state'],
    },
    () => {
      const some = endpoints();
      if (some === undefined) return [];
      return ENDPOINT_STATES.map((state): Sample => [[state], some.filter((one) => one.state === state).length]);
    },
  );
  show.gauge(
    {
      name: 'gift_webhook_oldest_undelivered_seconds',
      help: 'Age of the oldest event that was not delivered yet: untried, of endpoints that work; failed, of all; shown by the process that delivers',
      labels: ['state'],
    },
    () => {
      const some = endpoints();
      if (some === undefined) return [];
      const working = some.filter(({ state }) => state === 'working');
      return [
        [['untried'], oldest(working.map((one) => one.oldest.untried))],
        [['failed'], oldest(some.map((one) => one.oldest.failed))],
      ];
    },
  );
}

const oldest = (times: readonly (string | undefined)[]): number =>
  times.reduce((most, at) => (at === undefined ? most : Math.max(most, ageOf(at))), 0);

const ageOf = (at: string): number => Math.max(0, (clockMs() - Date.parse(at)) / 1_000);
