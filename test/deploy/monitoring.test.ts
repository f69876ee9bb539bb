import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { textOfAll } from '../../src/metrics/ofAll.js';
import { namesOf, valuesOf } from '../support/service/exposed.js';
import { startService } from '../support/service/service.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('monitoring');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const rules = (
  parse(textOf('deploy/prometheus-alerts.yml'), { strict: true, uniqueKeys: true }) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(textOf('deploy/grafana-dashboard.json')) as {
  title: string;
  uid: string;
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
};

/** PromQL's own words that are used here (https://prometheus.io/docs/prometheus/latest/querying/). */
const WORDS = new Set([
  'sum',
  'min',
  'max',
  'count',
  'rate',
  'increase',
  'histogram_quantile',
  'predict_linear',
  'vector',
  'absent',
  'time',
  'or',
  'and',
  'unless',
  'offset',
  'by',
  'label_values',
]);
/** Labels that Prometheus adds to every target. */
const PROMETHEUS_OWN = new Set(['up']);
/** Of the processes behind one port, which their supervising process shows. */
const TEXT_OF_PROCESSES = await textOfAll([], [{ number: 1, serves: true, deaths: 0 }]);
const OF_PROCESSES = namesOf(TEXT_OF_PROCESSES);

/**
 * The metrics that a query names: identifiers that are neither words of the language nor labels. @throws Error for
 * brackets that do not match
 */
function metricsOf(query: string): string[] {
  const open: string[] = [];
  const pairs: Readonly<Record<string, string>> = { ')': '(', '}': '{', ']': '[' };
  const outside = query.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  for (const sign of outside) {
    if ('({['.includes(sign)) open.push(sign);
    else if (sign in pairs && open.pop() !== pairs[sign]) throw new Error(`brackets of ${query}`);
  }
  if (open.length > 0) throw new Error(`brackets of ${query}`);
  // Labels stand in braces, behind `by` and `on`, and behind the comma of label_values; durations in brackets.
  const bare = outside
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]|(?:by|on) \([^)]*\)/g, ' ')
    .replaceAll(/label_values\((\w+), \w+\)/g, '$1')
    .replaceAll(/(?<=offset )\d+[smhd]/g, ' ');
  return [...bare.matchAll(/(?<![\w.])[a-z_][a-z0-9_]*/gi)]
    .map(([word]) => word)
    .filter((word) => !WORDS.has(word) && !/^e\d/.test(word));
}

test('names only metrics that the service has in alerts and dashboard', async () => {
  const service = await startService({ split: false });
  let names: Set<string>;
  try {
    names = new Set([...namesOf((await service.ask('GET', '/metrics')).text), ...OF_PROCESSES]);
  } finally {
    await service.close();
  }
  assert.ok(names.size > 30);
  const queries = [
    ...rules.map((rule) => rule.expr),
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...dashboard.templating.list.flatMap(({ definition }) => definition ?? []),
  ];
  assert.ok(queries.length > 40);
  const used = new Set<string>();
  for (const query of queries) {
    const metrics = metricsOf(query);
    assert.ok(metrics.length > 0, query);
    for (const metric of metrics) {
      assert.ok(names.has(metric) || PROMETHEUS_OWN.has(metric), `${metric} in ${query}`);
      used.add(metric.replace(/_(bucket|sum|count)$/, ''));
    }
  }
  // The least that a dashboard must show: requests, appends, conflicts, lag, process managers, parked work, bus and
  // providers, the event loop.
  for (const name of [
    'gift_http_requests_total',
    'gift_http_request_duration_seconds',
    'gift_append_duration_seconds',
    'gift_append_conflicts_total',
    'gift_projection_lag_events',
    'gift_projection_lag_seconds',
    'gift_process_in_flight',
    'gift_parked_work',
    'gift_bus_requests_total',
    'gift_provider_calls_total',
    'gift_provider_breaker_state',
    'nodejs_eventloop_lag_p99_seconds',
  ])
    assert.ok(used.has(name), name);
  const forgotten = [...names]
    .map((name) => name.replace(/_(bucket|sum|count)$/, ''))
    .filter((name) => !used.has(name));
  // Metrics for looking into single cases.
  assert.equal([...new Set(forgotten)].toSorted(), [
    'nodejs_eventloop_lag_mean_seconds',
    'nodejs_eventloop_lag_p50_seconds',
  ]);
});

/** The series that an alert takes the increase of, as patterns: one for each alternative of a label's value. */
function increasing(expr: string): RegExp[] {
  return [...expr.matchAll(/increase\((\w+)(?:\{([^}]*)\})?\[/g)].flatMap(([, name = '', labels = '']) =>
    [...labels.matchAll(/(\w+)=(~?)"([^"]*)"/g)]
      .map(([, label = '', isPattern, value = '']) =>
        (isPattern === '~' ? value.split('|') : [value.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')]).map(
          (one) => `(?=.*[{,]${label}="(?:${one})")`,
        ),
      )
      .reduce((all, some) => all.flatMap((one) => some.map((other) => one + other)), [''])
      .map((found) => new RegExp(`^${name}(?![a-z_])${found}`)),
  );
}

test('shows from the start each count whose first increase an alert must notice', async () => {
  const service = await startService({ split: false });
  let series: readonly string[];
  try {
    const text = (await service.ask('GET', '/metrics')).text;
    series = [...valuesOf(text).keys(), ...valuesOf(TEXT_OF_PROCESSES).keys()];
  } finally {
    await service.close();
  }
  const counts = rules.flatMap(({ alert, expr }) => increasing(expr).map((pattern) => ({ alert, pattern })));
  assert.ok(counts.length > 12);
  assert.equal(
    counts.filter(({ pattern }) => !series.some((one) => pattern.test(one))).map(({ alert }) => alert),
    [],
  );
});

test('takes neither one event for two nor some minutes for a day', () => {
  for (const { alert, expr } of rules) {
    // Prometheus extrapolates an increase to the ends of its window: that of one event may be 1.02.
    for (const [, threshold] of expr.matchAll(/increase\([^)]*\)+ > ([\d.]+)/g))
      assert.ok(threshold === '0' || Number(threshold) > 10 || !Number.isInteger(Number(threshold)), alert);
    // A prediction from the first samples of a disk is made of whatever is written just then.
    if (expr.includes('predict_linear'))
      assert.match(expr, /predict_linear\((\w+)\[6h\], 86400\) < 0 and \1 offset 3h/);
  }
});

test('tells of a provider that is left alone, also while one request tries it', () => {
  const { expr } = rules.find(({ alert }) => alert === 'GiftProviderDown')!;
  const [, states] = /state=~"([^"]+)"/.exec(expr) ?? [];
  for (const [state, isAlone] of Object.entries({ open: true, half_open: true, closed: false }))
    assert.is(new RegExp(`^(?:${states})$`).test(state), isAlone, state);
});

test('notices a metric that does not exist', () => {
  assert.equal(metricsOf('sum by (le) (rate(gift_a_bucket{x="gift_b"}[5m])) / gift_c > 1e9 or vector(0)'), [
    'gift_a_bucket',
    'gift_c',
  ]);
  assert.equal(metricsOf('label_values(gift_build_info, instance)'), ['gift_build_info']);
  assert.throws(() => metricsOf('sum(rate(x[5m])'), /brackets/);
});

test('gives each alert its own name, a severity, a summary and a chapter of the runbook', () => {
  assert.ok(rules.length >= 10);
  assert.is(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  const chapters = existsSync(join(ROOT, 'docs/runbook.md'))
    ? [...textOf('docs/runbook.md').matchAll(/^## (.+)$/gm)].map(([, title]) =>
        title!.toLowerCase().replaceAll(' ', '-'),
      )
    : undefined;
  for (const { alert, labels, annotations, for: wait } of rules) {
    assert.match(alert, /^Gift[A-Z]\w+$/);
    assert.ok(['critical', 'warning'].includes(labels.severity), alert);
    assert.ok(annotations.summary.length > 10, alert);
    assert.match(wait ?? '1m', /^\d+[smh]$/);
    const [, chapter] = /^docs\/runbook\.md#([a-z-]+)$/.exec(annotations.runbook) ?? [];
    assert.ok(chapter !== undefined, alert);
    if (chapters !== undefined) assert.ok(chapters.includes(chapter), `${alert}: no chapter ${chapter}`);
  }
  const scrapes = ['deploy/prometheus.yml', 'deploy/prometheus.compose.yml'].map(
    (file) => parse(textOf(file)) as { rule_files: string[]; scrape_configs: { job_name: string }[] },
  );
  for (const { rule_files } of scrapes) assert.ok(rule_files.every((file) => existsSync(join(ROOT, 'deploy', file))));
  const jobs = new Set(scrapes.map(({ scrape_configs }) => scrape_configs[0]!.job_name));
  assert.is(jobs.size, 1);
  const own = `job="${[...jobs][0]}"`;
  // Metrics that other programs have under the same names are taken from this one alone.
  const shared = rules.filter(({ expr }) => !metricsOf(expr).every((metric) => metric.startsWith('gift_')));
  assert.equal(
    shared.map(({ alert }) => alert),
    ['GiftProcessDown', 'GiftEventLoopHeld'],
  );
  for (const { alert, expr } of shared) assert.ok(expr.includes(own), alert);
});

test('does not call slow what takes its time by its nature', () => {
  const { expr } = rules.find(({ alert }) => alert === 'GiftRequestsSlow')!;
  const [, slow] = /route!~"([^"]+)"/.exec(expr) ?? [];
  // Prometheus matches whole values.
  const pattern = new RegExp(`^(?:${slow})$`);
  // A purchase waits for its charge, a long poll of the feed for an event.
  for (const route of ['/api/v2/transactions', '/api/v2/events', '/ops/totals', '/ops/projections/:name/verification'])
    assert.match(route, pattern);
  for (const route of ['/api/v2/gifts/:giftId', '/api/v2/transactions/:transactionId'])
    assert.not.match(route, pattern);
});

test('gives panels of the dashboard ids and places of their own', () => {
  const { panels } = dashboard;
  assert.is(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Set<string>();
  for (const {
    title,
    type,
    targets,
    gridPos: { h, w, x, y },
  } of panels) {
    assert.ok(title !== '' && (type === 'row' || (targets?.length ?? 0) > 0), title);
    assert.ok(x + w <= 24, title);
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        assert.not(taken.has(`${column},${line}`), title);
        taken.add(`${column},${line}`);
      }
    }
  }
});

test.run();
