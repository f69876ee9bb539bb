/**
 * Processes of the service: how `main` is started, and `main` when it is not to go on: settings or engines that can't
 * be used.
 */
import { spawn } from 'node:child_process';
import { MAIN } from './programs.js';

/** What such a process has of this one's environment: no settings. */
export function cleanEnv(): Record<string, string> {
  const dir = process.env['NODE_V8_COVERAGE'];
  return { PATH: process.env['PATH'] ?? '', ...(dir === undefined ? {} : { NODE_V8_COVERAGE: dir }) };
}

/** Runs `main` until it ends by itself. */
export async function runs(
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly errors: string }> {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...cleanEnv(), LOG_LEVEL: 'silent', ENGINES_WAIT_MS: '0', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  return { code, errors };
}
