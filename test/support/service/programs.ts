/** The programs that tests start as processes. */
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
