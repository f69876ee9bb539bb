/**
 * `npm run dev`: compiles and bundles at every change, and restarts the service, as `npm start` would. `npx gift`
 * beside it has the same sources.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, watch } from 'node:fs';
import { bundled, removeStale, root, tsc } from './build.mjs';

/** One save writes several files: the restart waits for all of them. */
const QUIET_MS = 200;

process.chdir(root);
removeStale();
mkdirSync('dist/src', { recursive: true });

const compiler = spawn(process.execPath, [tsc, '--watch', '--preserveWatchOutput'], { stdio: 'inherit' });
let stopping = false;
let service;

/** Starts the service. A service that ends by itself stays down until the next change. */
function start() {
  const child = spawn(process.execPath, ['--enable-source-maps', 'dist/service/main.js'], { stdio: 'inherit' });
  service = child;
  child.once('exit', (code, signal) => {
    if (service !== child) return;
    service = undefined;
    if (!stopping)
      console.error(`The service ended (${signal ?? `exit code ${code}`}); it starts again at the next change.`);
  });
}

/** Sources that can't be bundled leave the running service alone. */
function restart() {
  if (!bundled()) return;
  const last = service;
  service = undefined;
  if (last === undefined) return start();
  last.once('exit', () => {
    if (!stopping && service === undefined) start();
  });
  last.kill('SIGTERM');
}

// The compiler's first run writes everything: that starts the service for the first time.
let quiet;
const watcher = watch('dist/src', { recursive: true }, (_kind, file) => {
  if (stopping || !file?.endsWith('.js')) return;
  clearTimeout(quiet);
  quiet = setTimeout(restart, QUIET_MS);
});

function stop(code) {
  if (stopping) return;
  stopping = true;
  process.exitCode = code;
  clearTimeout(quiet);
  watcher.close();
  compiler.kill('SIGTERM');
  service?.kill('SIGTERM');
}
compiler.once('exit', (code) => stop(code ?? 0));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop(0));
