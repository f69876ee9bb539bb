import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { counts } from '../../src/metrics/counts.js';
import { histogram } from '../../src/metrics/histogram.js';
import { countRequests } from '../../src/metrics/requests.js';
import { exposed } from '../support/service/exposed.js';

const test = suite('exposition');

test('writes counters, gauges and histograms in the text format, read when asked', async () => {
  const { show, text } = exposed();
  const sizes = histogram([1, 2.5]);
  let level = 1;
  const colours = counts(1);
  show.counter({ name: 'colours_total', help: 'Colours', labels: ['colour'] }, colours.samples);
  show.gauge({ name: 'level', help: 'A "level"\nin two lines' }, async () => [[[], level]]);
  show.histogram({ name: 'sizes', help: 'Sizes', labels: ['kind'] }, () => [[['a'], sizes]]);
  for (const size of [0.5, 1, 1.001, 2.5, 99]) sizes.observe(size);
  colours.add('red');
  colours.add('red');
  level = 2;
  assert.is(
    await text(),
    `# HELP colours_total Colours
# TYPE colours_total counter
colours_total{colour="red"} 2

# HELP level A "level"\\nin two lines
# TYPE level gauge
level 2

# HELP sizes Sizes
# TYPE sizes histogram
sizes_bucket{kind="a",le="1"} 2
sizes_bucket{kind="a",le="2.5"} 4
sizes_bucket{kind="a",le="+Inf"} 5
sizes_sum{kind="a"} 104.001
sizes_count{kind="a"} 5
`,
  );
});

test('refuses a name that is taken', () => {
  const { show } = exposed();
  show.gauge({ name: 'level', help: 'x' }, () => []);
  assert.throws(() => show.gauge({ name: 'level', help: 'y' }, () => []), /level has already been registered/);
});

test("counts requests by pattern and status, and makes no labels of callers' methods and paths", async () => {
  const { show, values } = exposed();
  const answered = countRequests(show);
  answered('GET', '/api/v2/gifts/:giftId', 200, 4);
  answered('GET', '/api/v2/gifts/:giftId', 200, 600);
  answered('GET', '/api/v2/gifts/:giftId', 404, 0.2);
  answered('POST', '/api/v2/gifts/:giftId', 405, 1);
  for (const method of ['PROPFIND', 'BREW', 'M-SEARCH']) answered(method, undefined, 404, 1);
  const found = await values();
  assert.equal(
    [...found].filter(([name]) => name.startsWith('gift_http_requests_total')),
    [
      ['gift_http_requests_total{method="POST",route="/ops/people/:personId/erasure",status="202"}', 0],
      ['gift_http_requests_total{method="GET",route="/api/v2/gifts/:giftId",status="200"}', 2],
      ['gift_http_requests_total{method="GET",route="/api/v2/gifts/:giftId",status="404"}', 1],
      ['gift_http_requests_total{method="POST",route="/api/v2/gifts/:giftId",status="405"}', 1],
      ['gift_http_requests_total{method="other",route="unknown",status="404"}', 3],
    ],
  );
  const bucket = (le: string): number | undefined =>
    found.get(`gift_http_request_duration_seconds_bucket{method="GET",route="/api/v2/gifts/:giftId",le="${le}"}`);
  assert.equal(['0.001', '0.0025', '0.005', '0.5', '1', '+Inf'].map(bucket), [1, 1, 2, 2, 3, 3]);
  assert.ok(
    Math.abs(
      found.get('gift_http_request_duration_seconds_sum{method="GET",route="/api/v2/gifts/:giftId"}')! - 0.6042,
    ) < 1e-9,
  );
});

test.run();
