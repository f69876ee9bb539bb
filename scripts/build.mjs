/**
 * Compiles src, test and bench to dist, and bundles the programs. Runs after `npm ci` (prepare), so that every command
 * works at once, and before tests and benches.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUNDLED, THREADS, bundle } from './bundle.mjs';
import { filesBelow } from './filesBelow.mjs';

/** The project's folder. */
export const root = fileURLToPath(new URL('..', import.meta.url));
export const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/** The compiler's record of its last run, below `dist`: it compiles only what changed. */
const BUILD_STATE = '.tsbuildinfo';

/** Removes compiled files without a source, so that no old test runs. */
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

/** Bundles the programs. @returns whether it succeeded; faults go to the terminal. */
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

/** The threads of compiled modules run the bundles: a service that a test starts loads in four fifths of the time. */
function threadsRunBundles() {
  for (const name of THREADS) {
    const thread = join(root, 'dist', 'src', `${name}.js`);
    const program = join(root, BUNDLED, `${basename(name)}.js`);
    writeFileSync(thread, `import '${relative(dirname(thread), program)}';\n`);
  }
}

/**
 * `apart`: threads of compiled modules run these, as coverage by source needs. @returns whether everything compiled and
 * was bundled; faults go to the terminal.
 */
export function build({ apart = false } = {}) {
  removeStale();
  // The compiler does not know that its files were replaced.
  if (apart) rmSync(join(root, 'dist', BUILD_STATE), { force: true });
  const { status } = spawnSync(process.execPath, [tsc], { cwd: root, stdio: 'inherit' });
  if (status !== 0 || !bundled()) return false;
  if (!apart) threadsRunBundles();
  return true;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !build()) process.exitCode = 1;
