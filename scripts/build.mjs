/**
 * Compiles src, test and bench to dist. It runs after `npm ci` (prepare), so that every command works right away, and before tests and benches.
 * What was compiled from a source that is gone is removed; nothing else is, so a running service keeps its files.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder. */
export const root = fileURLToPath(new URL('..', import.meta.url));
/** The compiler's program. */
export const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/** Every file below a folder, relative to it; none when there is no such folder. */
export function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Removes what was compiled from sources that are gone, so that no test of yesterday runs. */
export function removeStale() {
  const dist = join(root, 'dist');
  for (const file of filesBelow(dist)) {
    const source = file.replace(/\.js(\.map)?$/, '.ts');
    if (source === file || !existsSync(join(root, source))) rmSync(join(dist, file));
  }
}

/** The commands of package.json's `bin` are started directly. */
export function makeExecutable() {
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const file of Object.values(bin)) if (existsSync(join(root, file))) chmodSync(join(root, file), 0o755);
}

/** @returns whether everything compiled; the compiler's errors go to the terminal. */
export function build() {
  removeStale();
  const { status } = spawnSync(process.execPath, [tsc], { cwd: root, stdio: 'inherit' });
  makeExecutable();
  return status === 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !build()) process.exitCode = 1;
