// Compiles src, test and bench to dist. It runs after `npm ci` (prepare), so that every command works right away.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const typescript = require.resolve('typescript/package.json');
rmSync('dist', { recursive: true, force: true });
execFileSync(process.execPath, [join(dirname(typescript), 'bin', 'tsc')], { stdio: 'inherit' });
