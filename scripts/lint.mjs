/**
 * `npm run lint`: the doors (`doors.mjs`), and the linter with its configuration (`.oxlintrc.json`) and the rules of
 * the layers (`layers.mjs`).
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { root } from './build.mjs';
import { doorFaults } from './doors.mjs';
import { LAYERS, layerRules } from './layers.mjs';

/** Beside the configuration that it completes, since paths in both are relative to it. */
const MADE = join(root, '.oxlintrc.made.json');

const folders = readdirSync(join(root, 'src'));
for (const name of folders.filter((one) => LAYERS[one] === undefined)) {
  console.error(`src/${name} is no layer: name it, and what it may import, in scripts/layers.mjs`);
  process.exitCode = 1;
}
for (const fault of doorFaults()) {
  console.error(fault);
  process.exitCode = 1;
}
const base = JSON.parse(readFileSync(join(root, '.oxlintrc.json'), 'utf8'));
writeFileSync(MADE, JSON.stringify({ ...base, overrides: [...base.overrides, ...layerRules()] }));
const oxlint = join(dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin', 'oxlint');
const options = ['--config', MADE, '--type-aware', '--deny-warnings', 'src', 'test', 'bench', 'console'];
try {
  const { status } = spawnSync(process.execPath, [oxlint, ...options], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
} finally {
  rmSync(MADE, { force: true });
}
