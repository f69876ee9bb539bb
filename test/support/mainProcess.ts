/** The service's process when it is not to go on: settings or engines that can't be used. */
import { spawn } from 'node:child_process';

const MAIN = new URL('../../src/main.js', import.meta.url).pathname;

/** Runs `main` until it ends by itself. */
export async function runs(env: Readonly<Record<string, string>>): Promise<{ readonly code: number | null; readonly errors: string }> {
  const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env['PATH'] ?? '', LOG_LEVEL: 'silent', ...coverage(), ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  return { code, errors };
}

function coverage(): Record<string, string> {
  const dir = process.env['NODE_V8_COVERAGE'];
  return dir === undefined ? {} : { NODE_V8_COVERAGE: dir };
}
