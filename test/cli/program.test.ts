import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { program } from '../../src/cli/program.js';
import { gift, sink } from '../support/cli.js';

const test = suite('cli/program');

function pathsOf(command: Command, path: readonly string[]): (readonly string[])[] {
  return [path, ...command.commands.flatMap((inner) => pathsOf(inner, [...path, inner.name()]))];
}

test('every command and group says how it is used, with an example of its own', async () => {
  const paths = pathsOf(program({ stdin: Readable.from([]), stdout: sink().stream, stderr: sink().stream, env: {}, signal: new AbortController().signal }), []);
  assert.ok(paths.length > 30, `${paths.length}`);
  for (const path of paths) {
    const { code, out, err } = await gift({}, [...path, '--help']);
    assert.equal([code, err], [0, ''], path.join(' '));
    assert.match(out, new RegExp(`\\nExamples?:\\n[^]*^  \\$ (?:\\S+=\\S+ )?gift ${path.join(' ')}`, 'm'), path.join(' '));
  }
});

test.run();
