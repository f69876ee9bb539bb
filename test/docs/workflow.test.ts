/** The workflow of continuous integration runs what it says, on what is pinned; and SECURITY.md is found. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('docs: workflow');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, string>>;
}

interface Job {
  readonly container?: string;
  readonly services?: Readonly<Record<string, { readonly image: string; readonly ports: readonly string[] }>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  readonly 'timeout-minutes': number;
}

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const WORKFLOW = textOf('.github/workflows/ci.yml');
const workflow = parse(WORKFLOW, { strict: true, uniqueKeys: true }) as {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
};
const stepsOf = (job: Job | undefined): string[] => (job?.steps ?? []).flatMap(({ run }) => run ?? []);

test('one job does what .ci/run does, the other runs the tests on real engines', () => {
  const { all, engines } = workflow.jobs;
  assert.equal(stepsOf(all), ['.ci/run']);
  assert.ok(existsSync(join(ROOT, '.ci/run')));
  assert.ok(stepsOf(engines).includes('npm test -- --every-engine'));
  assert.equal(workflow.permissions, { contents: 'read' });
});

test('.ci/run checks formatting, types and lint after the install, and runs the tests last', () => {
  const said = [...textOf('.ci/run').matchAll(/^ *(?:npm ci|steps=|npm test|exit).*$/gm)].map(([line]) =>
    line.trim().replace(/ --no-audit --no-fund/, ''),
  );
  assert.equal(
    said.map((line) => line.replace(/ (\|\||2>&1).*/, '')),
    [
      'npm ci',
      'npm ci --prefix test/nodes',
      'steps=(format:check typecheck lint)',
      'npm ci --prefix test/clients',
      'npm test -- --every-engine',
      'exit "$failed"',
    ],
  );
});

test('every action is pinned to a commit, and says of which version', () => {
  const uses = WORKFLOW.split('\n').filter((line) => line.includes('uses:'));
  assert.ok(uses.length > 1);
  for (const line of uses) assert.match(line, /uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});

test("one runs on the lowest Node that the service supports, the other on the image's", () => {
  const { engines } = JSON.parse(textOf('package.json')) as { engines: { node: string } };
  const [, major = '', minor = ''] = /^\^(\d+)\.(\d+)/.exec(engines.node) ?? [];
  const lowest = /^node:(\d+)\.(\d+)\.\d+-/.exec(workflow.jobs['all']?.container ?? '') ?? [];
  assert.is(lowest[1], major);
  assert.ok(Number(lowest[2]) >= Number(minor), lowest[0]);
  const [image] = /^FROM node:(\d+\.\d+\.\d+)-/m.exec(textOf('Dockerfile'))?.slice(1) ?? [];
  const versions = workflow.jobs['engines']?.steps.flatMap((step) => step.with?.['node-version'] ?? []);
  assert.equal(versions, [image]);
});

test('the engines are those that the service runs with, where the tests look for them', () => {
  const deployed = parse(textOf('docker-compose.yml')) as { services: Readonly<Record<string, { image: string }>> };
  const { services = {}, env = {} } = workflow.jobs['engines'] ?? {};
  assert.equal(Object.keys(services).toSorted(), ['eventstore', 'mongodb', 'nats']);
  for (const [name, { image }] of Object.entries(services)) assert.is(image, deployed.services[name]?.image, name);
  const published = Object.values(services).map(({ ports }) =>
    ports.map((port) => port.split(':').slice(0, 2).join(':')),
  );
  const looked = Object.values(env).map((url) => /:\/\/([\d.]+:\d+)/.exec(url)?.[1] ?? '');
  assert.equal(published.flat().toSorted(), looked.toSorted());
  for (const setting of Object.keys(env)) assert.ok(textOf('docs/testing.md').includes(`\`${setting}\``), setting);
});

test('the README leads to SECURITY.md, which says how to report', () => {
  assert.ok(textOf('README.md').includes('](SECURITY.md)'));
  assert.match(textOf('SECURITY.md'), /^## Reporting$/m);
});

test.run();
