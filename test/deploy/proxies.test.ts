import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { metricsPage } from '../../src/api/metrics.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const textOf = (file: string): string => readFileSync(join(ROOT, 'deploy', file), 'utf8');
const test = suite('examples of proxies');

/** Whether the service answers a path with its metrics. */
async function showsMetrics(path: string): Promise<boolean> {
  const page = metricsPage({ contentType: 'text/plain', text: async () => 'metrics' });
  const context = { path, method: 'GET', state: {}, set: () => undefined, body: undefined as unknown };
  await page(context as unknown as Parameters<typeof page>[0], async () => undefined);
  return context.body === 'metrics';
}

test('keep the metrics from strangers by each path that the service answers with them', async () => {
  const [, pattern = ''] = /location ~ (\S+) \{\s*return 404;/.exec(textOf('nginx.conf')) ?? [];
  const [, list = ''] = /@metrics path (.+)\n\s*respond @metrics 404/.exec(textOf('Caddyfile')) ?? [];
  assert.not.equal(pattern, '');
  for (const path of ['/metrics', '/metrics/', '/metrics//', '//metrics', '/Metrics', '/metrics/x']) {
    if (!(await showsMetrics(path))) continue;
    assert.match(path, new RegExp(pattern), 'nginx');
    assert.ok(list.split(' ').includes(path), `Caddy: ${path}`);
  }
  assert.ok(await showsMetrics('/metrics/'));
});

test.run();
