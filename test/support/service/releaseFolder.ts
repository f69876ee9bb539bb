/**
 * A release as it is deployed: the built service with its packages, in a folder of its own, which can be taken away
 * while it runs.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder, from the compiled tests. */
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** A deployed release. */
export interface ReleaseFolder {
  /** What starts it. */
  readonly main: string;
  /** Takes the whole folder away, as a deployment does that puts the next release in its place. */
  remove(): void;
}

/** Copies this project's build. */
export function releaseFolder(): ReleaseFolder {
  const folder = mkdtempSync(join(tmpdir(), 'gift-release-'));
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  cpSync(join(ROOT, 'dist', 'service'), join(folder, 'dist', 'service'), { recursive: true });
  const packages = [realpathSync(join(ROOT, 'node_modules')), join(folder, 'node_modules')];
  // Names of the same files where the disk allows it: there are thousands.
  if (spawnSync('cp', ['-al', ...packages], { stdio: 'ignore' }).status !== 0) {
    rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
    execFileSync('cp', ['-a', ...packages]);
  }
  return {
    main: join(folder, 'dist', 'service', 'main.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
