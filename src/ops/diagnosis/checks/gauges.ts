/** What only the processes themselves measure, from the text of `/metrics`. */
import type { Found } from '../findings.js';

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Samples of one metric in Prometheus' text format, as this service writes it. */
function samplesOf(text: string, metric: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name !== metric) return [];
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', one = '']) => [key, one]);
    return [{ labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
  });
}

/**
 * Age in seconds of the oldest open work, as the process that leads shows it: only that knows what a limit of our own
 * holds back, with which nothing is wrong. `undefined`: the page is not of that process.
 */
export function oldestOpenSeconds(text: string): number | undefined {
  const ages = samplesOf(text, 'gift_process_oldest_open_seconds').map(({ value }) => value);
  return ages.length === 0 ? undefined : Math.max(...ages);
}

/** States of a breaker that leaves its provider alone; `half_open`: but for one request that tries it. */
const LEFT_ALONE: ReadonlySet<string | undefined> = new Set(['open', 'half_open']);

export function checkGauges(text: string): Found[] {
  const open = samplesOf(text, 'gift_provider_breaker_state').filter(
    ({ labels, value }) => LEFT_ALONE.has(labels['state']) && value === 1,
  );
  const stalled = samplesOf(text, 'gift_webhook_endpoints')
    .filter(({ labels }) => labels['state'] === 'stalled')
    .reduce((sum, { value }) => sum + value, 0);
  const altered = samplesOf(text, 'gift_log_altered').some(({ value }) => value === 1);
  return [
    ...(altered
      ? [{ code: 'log_altered' as const, what: 'the log is not what was signed, or a witness says so' }]
      : []),
    ...[...new Set(open.map(({ labels }) => labels['provider'] ?? 'a provider'))].map((provider): Found => ({
      code: 'provider_left_alone',
      what: `${provider} is in trouble and left alone`,
    })),
    ...(stalled === 0
      ? []
      : [{ code: 'webhooks_stalled' as const, what: `deliveries to ${stalled} endpoints stand still` }]),
  ];
}
