/**
 * `npm run bench` lists the benches, with the first sentence of each one's comment; `npm run bench -- NAME` runs those
 * named.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { build, root } from './build.mjs';

process.chdir(root);
const benches = readdirSync('bench')
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -3))
  .sort();
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'));

/** The first sentence of a bench's comment. */
function summary(name) {
  const [comment = ''] = /\/\*\*[^]*?\*\//.exec(readFileSync(`bench/${name}.ts`, 'utf8')) ?? [];
  return comment
    .replace(/^\/\*\*|\*\/$|^\s*\* ?/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/\. .*$/, '.');
}

const unknown = names.filter((name) => !benches.includes(name));
if (names.length === 0 || unknown.length > 0) {
  if (unknown.length > 0) console.error(`No such bench: ${unknown.join(', ')}.`);
  console.log(
    `Benches (npm run bench -- NAME):\n${benches.map((name) => `  ${name.padEnd(14)} ${summary(name)}`).join('\n')}`,
  );
  process.exitCode = unknown.length > 0 ? 2 : 0;
} else if (!build()) {
  process.exitCode = 1;
} else {
  for (const name of names) {
    const { status } = spawnSync(process.execPath, ['--enable-source-maps', `dist/bench/${name}.js`, ...options], {
      stdio: 'inherit',
    });
    if (status !== 0) process.exitCode = 1;
  }
}
