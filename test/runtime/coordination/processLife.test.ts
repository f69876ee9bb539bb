import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hasEnded, lives, processLife } from '../../../src/runtime/coordination/processLife.js';
import { until } from '../../support/assertions/until.js';

const test = suite('the life of a process');
const own = processLife();

if (process.platform === 'linux')
  test('Linux tells the life of this process: boot, container, id and start', () => {
    assert.match(own ?? '', /^[\da-f-]{36}\/pid:\[\d+\]\/\d+\/\d+$/);
    assert.is(own?.split('/')[2], String(process.pid));
  });

if (own === undefined) {
  console.log('skipped: the life of a process: this system does not tell');
} else {
  test('a running and a frozen process have not ended; a killed one has', async () => {
    const child = spawn('sleep', ['60']);
    await once(child, 'spawn');
    const life = processLife(child.pid)!;
    assert.not.ok(hasEnded(life));
    child.kill('SIGSTOP');
    assert.not.ok(hasEnded(life));
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.ok(hasEnded(life));
    assert.not.ok(hasEnded(own));
    assert.is(processLife(child.pid), undefined);
  });

  test('a process that its parent has not waited for has ended', async () => {
    // The shell becomes a program that never waits for its child.
    const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60']);
    const [pid] = (await once(parent.stdout, 'data')) as [Buffer];
    const life = processLife(Number(pid.toString()))!;
    assert.not.ok(hasEnded(life));
    await until(() => hasEnded(life), 'its end');
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  });

  test('distinguishes another process with the same id', () => {
    const [boot, space, id, startedAt] = own.split('/');
    assert.ok(hasEnded([boot, space, id, Number(startedAt) + 1].join('/')));
  });

  test('a process that the system hides is not known to have ended', () => {
    const [boot, space] = own.split('/');
    const fault = (code: string): Error => Object.assign(new Error(code), { code });
    const { kill } = process;
    const { readFileSync } = fs;
    /** The result for a process whose `stat`, and whose answer to a signal, are these. */
    const looked = (stat: string, requested: string | undefined): boolean => {
      process.kill = () => {
        if (requested === undefined) return true;
        throw fault(requested);
      };
      fs.readFileSync = (() => {
        throw fault(stat);
      }) as typeof readFileSync;
      syncBuiltinESMExports();
      try {
        return hasEnded(`${boot}/${space}/4711/1`, own);
      } finally {
        process.kill = kill;
        fs.readFileSync = readFileSync;
        syncBuiltinESMExports();
      }
    };
    for (const [stat, requested, ended] of [
      ['ENOENT', 'ESRCH', true],
      ['ESRCH', 'ESRCH', true],
      ['ENOENT', 'EPERM', false],
      ['ENOENT', undefined, false],
      ['ESRCH', undefined, false],
      ['EPERM', 'EPERM', false],
      ['EACCES', 'ESRCH', false],
    ] as const)
      assert.is(looked(stat, requested), ended, `${stat}, then ${requested ?? 'it is there'}`);
  });

  test('tells whether a process of this machine lives, and nothing of others', () => {
    const [boot, space] = own.split('/');
    assert.is(lives(own), true);
    assert.is(lives(`${boot}/${space}/999999999/1`), false);
    assert.is(lives(`other/${space}/999999999/1`), undefined);
    assert.is(lives(own, ''), undefined, 'this system does not tell who we are');
  });

  test('nothing is known of a process of another machine, boot or container', () => {
    const [boot, space] = own.split('/');
    for (const life of [
      `other/${space}/999999999/1`,
      `${boot}/pid:[1]/999999999/1`,
      `${boot}/${space}/999999999/1/2`,
      '',
      'a/b',
      `${boot}/${space}`,
    ])
      assert.not.ok(hasEnded(life), life);
    assert.not.ok(hasEnded(`${boot}/${space}/999999999/1`, ''), 'this system does not tell who we are');
    assert.ok(hasEnded(`${boot}/${space}/999999999/1`));
  });
}

test.run();
