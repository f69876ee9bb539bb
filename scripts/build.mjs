/**
 * Compiles src, test and bench to dist, and bundles what is started. It runs after `npm ci` (prepare), so that every
 * command works right away, and before tests and benches. What no source makes any more is removed.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUNDLED, bundle } from './bundle.mjs';
import { filesBelow } from './filesBelow.mjs';

/** The project's folder. */
export const root = fileURLToPath(new URL('..', import.meta.url));
/** The compiler's program. */
export const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/** What the compiler knows of its last run, below `dist`: it compiles anew only what changed since. */
const BUILD_STATE = '.tsbuildinfo';

/** Removes what was compiled from sources that are gone, so that no test of yesterday runs. */
export function removeStale() {
  const dist = join(root, 'dist');
  for (const file of filesBelow(dist)) {
    if (join('dist', file).startsWith(BUNDLED) || file === BUILD_STATE) continue;
    const source = file.replace(/\.js(\.map)?$/, '.ts');
    if (source === file || !existsSync(join(root, source))) rmSync(join(dist, file));
  }
}

/** The commands of package.json's `bin` are started directly. */
function makeExecutable() {
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const file of Object.values(bin)) if (existsSync(join(root, file))) chmodSync(join(root, file), 0o755);
}

/** Bundles what is started. @returns whether it could; what was wrong goes to the terminal. */
export function bundled() {
  try {
    bundle(root);
  } catch (error) {
    console.error(`The service could not be put together: ${error.message}`);
    return false;
  }
  makeExecutable();
  return true;
}

/** @returns whether everything compiled and was bundled; what was wrong goes to the terminal. */
export function build() {
  removeStale();
  const { status } = spawnSync(process.execPath, [tsc], { cwd: root, stdio: 'inherit' });
  return status === 0 && bundled();
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !build()) process.exitCode = 1;
