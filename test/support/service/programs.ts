/** The programs that tests start as processes. */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * As it is shipped; where coverage is measured, as it was compiled file by file, which is how the tests themselves load
 * it: coverage adds both up.
 */
const program = (shipped: string, compiled: string): string =>
  fileURLToPath(
    new URL(
      process.env['NODE_V8_COVERAGE'] === undefined ? `../../../service/${shipped}.js` : `../../../src/${compiled}.js`,
      import.meta.url,
    ),
  );

/** The service. */
export const MAIN = program('main', 'service/main');
/** The command line. */
export const GIFT = program('gift', 'cli/gift');
/** The demo. */
export const DEMO = program('demo', 'demo/demo');

/** Runs `gift …` where no file may grow beyond so many blocks: a full disk to the process that writes it. */
export function giftOnFullDisk(
  blocks: number,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): SpawnSyncReturns<string> {
  return spawnSync('sh', ['-c', `ulimit -f ${blocks}; exec "$0" "$@"`, process.execPath, GIFT, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    encoding: 'utf8',
  });
}
