import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ALL_SETTINGS } from '../../src/service/config.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('the systemd unit');

/** Each directive with its values, by section (systemd.syntax(7)). */
function unit(text: string): ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> {
  const sections = new Map<string, Map<string, string[]>>();
  let section = new Map<string, string[]>();
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
    const heading = /^\[(\w+)\]$/.exec(line)?.[1];
    if (heading !== undefined) sections.set(heading, (section = new Map()));
    else {
      const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
      assert.not.equal(name, '', line);
      section.set(name, [...(section.get(name) ?? []), value]);
    }
  }
  return sections;
}

test("starts Node with this project's program, as its own user, and waits for its end", () => {
  const service = unit(readFileSync(join(ROOT, 'deploy', 'gift-commerce.service'), 'utf8')).get('Service');
  const [command = ''] = service?.get('ExecStart') ?? [];
  const [program, ...args] = command.split(' ');
  assert.is(program, '/usr/bin/node');
  const script = args.find((one) => !one.startsWith('-')) ?? '';
  assert.ok(existsSync(join(ROOT, script)), script);
  assert.equal(
    [service?.get('User'), service?.get('KillSignal'), service?.get('Restart')],
    [['gift'], ['SIGTERM'], ['always']],
  );
  assert.ok(Number(service?.get('TimeoutStopSec')?.[0]) > 10);
  assert.ok(service?.get('Environment')?.includes(`DATA_DIR=/var/lib/${service.get('StateDirectory')?.[0]}`));
});

interface Called {
  readonly args: readonly string[];
  readonly dataDir: string;
  readonly metricsPort: string;
  readonly target: string | null;
}

/** What deploy/gift calls, with this file of settings; `sudo` passes on what the real one would. */
function calledBy(
  env: Readonly<Record<string, string>>,
  file: string | undefined,
  words = ['log', '--last', '2'],
): Called {
  const dir = mkdtempSync(join(tmpdir(), 'systemd-'));
  try {
    const sudo = `#!/bin/sh
[ "$1 $2" = "-u gift" ] || exit 1
allowed=,\${3#--preserve-env=},
shift 3
for name in $(env | sed 's/=.*//'); do case $allowed in *,$name,*) ;; *) [ $name = PATH ] || unset $name ;; esac; done
exec "$@"
`;
    const settings = join(dir, 'gift-commerce.env');
    const program = join(dir, 'gift.mjs');
    if (file !== undefined) writeFileSync(settings, file);
    writeFileSync(join(dir, 'sudo'), sudo, { mode: 0o755 });
    writeFileSync(
      program,
      `const { DATA_DIR: dataDir, METRICS_PORT: metricsPort, TARGET: target = null } = process.env;
       console.log(JSON.stringify({ args: process.argv.slice(2), dataDir, metricsPort, target }));`,
    );
    const script = readFileSync(join(ROOT, 'deploy', 'gift'), 'utf8')
      .replaceAll('/etc/gift-commerce.env', settings)
      .replaceAll('/opt/gift-commerce/dist/service/gift.js', program)
      .replaceAll('/usr/bin/node', process.execPath);
    const { stdout, stderr } = spawnSync('sh', ['-c', script, 'gift', ...words], {
      env: { PATH: `${dir}:${process.env['PATH'] ?? ''}`, ...env },
      encoding: 'utf8',
    });
    assert.not.equal(stdout, '', stderr);
    return JSON.parse(stdout) as Called;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test('calls gift with the settings of the unit, and before them those of its file', () => {
  const service = unit(readFileSync(join(ROOT, 'deploy', 'gift-commerce.service'), 'utf8')).get('Service');
  assert.equal(service?.get('EnvironmentFile'), ['-/etc/gift-commerce.env']);
  const own = (service?.get('Environment') ?? []).filter((one) => !one.startsWith('NODE_ENV='));
  const { args, dataDir, metricsPort } = calledBy({}, undefined);
  assert.equal([`DATA_DIR=${dataDir}`, `METRICS_PORT=${metricsPort}`], own);
  assert.equal(args, ['log', '--last', '2']);
  assert.is(calledBy({}, '').dataDir, dataDir);
  // As systemd has it: a file's settings go before those of the unit.
  const moved = calledBy({}, 'DATA_DIR=/srv/gift\nMETRICS_PORT=9100\n');
  assert.equal([moved.dataDir, moved.metricsPort], ['/srv/gift', '9100']);
});

test('calls gift for the folder or engine that its caller names, never for the service instead', () => {
  for (const file of [undefined, 'DATA_DIR=/srv/gift\n'])
    assert.is(calledBy({ DATA_DIR: './copy' }, file, ['hold']).dataDir, './copy');
  // The service of a drill, beside the one that systemd starts.
  assert.is(calledBy({ DATA_DIR: './drill', METRICS_PORT: '9191' }, undefined, ['diagnose']).metricsPort, '9191');
  const env = { TARGET: 'esdb://ada:secret@db:2113' };
  assert.is(calledBy(env, '').target, null);
  for (const words of [['--to', 'env:TARGET'], ['--to=env:TARGET']])
    assert.is(calledBy(env, '', ['copy', ...words]).target, env.TARGET);
});

test('passes on only settings that there are', () => {
  const lists = readFileSync(join(ROOT, 'deploy', 'gift'), 'utf8').matchAll(/^callers=(?:\$callers,)?([\w,]+)$/gm);
  const names = [...lists].flatMap(([, list = '']) => list.split(','));
  const known = new Set(ALL_SETTINGS.map(({ name }) => name));
  assert.ok(names.includes('DATA_DIR') && names.includes('GIFT_CLIENT_SECRET'));
  assert.equal(
    names.filter((name) => !known.has(name) && !name.startsWith('GIFT_')),
    [],
  );
});

const noAnalyzer =
  spawnSync('systemd-analyze', ['--version']).status === 0 ? undefined : 'systemd-analyze is not installed';
if (noAnalyzer !== undefined) console.log(`skipped: leaves little of the machine exposed: ${noAnalyzer}`);
(noAnalyzer === undefined ? test : test.skip)(
  'leaves little of the machine exposed, and names only known settings',
  () => {
    const file = join(ROOT, 'deploy', 'gift-commerce.service');
    // The threshold is in tenths: 1.4 with systemd 252, 8.5 without what the unit takes away.
    const { status, stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
    assert.is(status, 0, String(stdout));
    const { stderr } = spawnSync('systemd-analyze', ['verify', file]);
    assert.not.match(String(stderr), /Unknown|Failed to parse|Invalid/);
  },
);

test.run();
