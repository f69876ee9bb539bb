/** A copy of the tree, in which sources are changed to see whether anything notices. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transformSync } from 'esbuild';
import { root } from './build.mjs';

/** Copies the tree, as git lists it, with what is compiled of it. It is removed with the process. @returns its folder */
export function copyOfTree() {
  const copy = mkdtempSync(join(tmpdir(), 'gift-copy-'));
  process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of stdout.split('\0').filter((one) => one !== '')) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Compiles one source of a copy, without a check of its types. @param text its changed text */
export function compileInto(copy, file, text) {
  const { code } = transformSync(text, { loader: 'ts', target: 'es2023' });
  writeFileSync(join(copy, 'dist', file.replace(/\.ts$/, '.js')), code);
}
