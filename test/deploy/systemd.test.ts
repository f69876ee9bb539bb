import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

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

test('calls gift with the settings of the unit, also where there is no file of settings', () => {
  const dir = mkdtempSync(join(tmpdir(), 'systemd-'));
  try {
    writeFileSync(join(dir, 'sudo'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 });
    const settings = join(dir, 'gift-commerce.env');
    const script = readFileSync(join(ROOT, 'deploy', 'gift'), 'utf8').replaceAll('/etc/gift-commerce.env', settings);
    const called = (): string[] =>
      String(
        spawnSync('sh', ['-c', script, 'gift', 'log', '--last', '2'], {
          env: { PATH: `${dir}:${process.env['PATH'] ?? ''}` },
        }).stdout,
      )
        .trim()
        .split('\n');
    const service = unit(readFileSync(join(ROOT, 'deploy', 'gift-commerce.service'), 'utf8')).get('Service');
    const environment = (service?.get('Environment') ?? []).filter((one) => !one.startsWith('NODE_ENV='));
    assert.equal(service?.get('EnvironmentFile'), ['-/etc/gift-commerce.env']);
    const gift = ['/opt/gift-commerce/dist/service/gift.js', 'log', '--last', '2'];
    assert.equal(called(), ['-u', 'gift', ...environment, '/usr/bin/node', ...gift]);
    writeFileSync(settings, '');
    assert.equal(called(), ['-u', 'gift', ...environment, '/usr/bin/node', `--env-file=${settings}`, ...gift]);
  } finally {
    rmSync(dir, { recursive: true });
  }
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
