/**
 * Bundles programs and threads into a few files: loading hundreds of modules one by one takes longer than the rest of a
 * start.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { filesBelow } from './filesBelow.mjs';

/** The bundles' folder, below the project's. */
export const BUNDLED = join('dist', 'service');

/** As in `STARTED`. */
export const THREADS = [
  'adapters/embedded/backgroundWorker',
  'adapters/embedded/eventStore/eventStoreWorker',
  'adapters/embedded/keyStore/keyStoreWorker',
  'adapters/embedded/readStore/readStoreWorker',
  'adapters/embedded/readStore/readStoreLookupWorker',
  'ops/evidence/tree/leafWorker',
  'service/projector/projectorThread',
];

/** Programs, threads, and `keys`, which the compose files call, by the last part of their names. */
const STARTED = ['service/main', 'cli/gift', 'demo/demo', 'service/keys', ...THREADS];

/**
 * Bundled packages: those that every start of the service loads. Others stay outside: those with machine code or files
 * of their own, and those that few starts need, such as clients of servers and providers.
 */
const PACKAGES = new Set([
  '@koa/router',
  '@mapbox/tilebelt',
  'ajv',
  'ajv-formats',
  'cli-progress',
  'cockatiel',
  'commander',
  'escape-html',
  'ipaddr.js',
  'jose',
  'koa',
  'koa-helmet',
  'libphonenumber-js',
  'lru-cache',
  'minisearch',
  'pino',
  'prom-client',
  'rate-limiter-flexible',
  'raw-body',
  'supercluster',
]);

/** The console's folder, beside the programs that serve it. */
const CONSOLE = join(BUNDLED, 'console');

/** Asian character sets of iconv-lite, which raw-body loads and needs none of. */
const UNUSED_TABLES = './tables/*.json';

/**
 * Bundles the sources of the project in `root`, and removes earlier bundles. @throws Error when a name can't be
 * resolved; esbuild reports it on the terminal
 */
export function bundle(root) {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: STARTED.map((name) => `src/${name}.ts`),
    entryNames: '[name]',
    outdir: BUNDLED,
    bundle: true,
    splitting: true,
    external: [
      ...Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !PACKAGES.has(name)),
      UNUSED_TABLES,
    ],
    // accepts asks for an earlier version than koa: its table of all media types would be loaded twice.
    alias: { 'mime-types': join(root, 'node_modules', 'mime-types') },
    // CommonJS packages load Node's modules by `require`, which ES modules lack.
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    logLevel: 'warning',
  });
  const made = new Set([...Object.keys(metafile.outputs), ...bundleConsole(root)]);
  for (const file of filesBelow(join(root, BUNDLED)))
    if (!made.has(join(BUNDLED, file))) rmSync(join(root, BUNDLED, file));
}

/** Bundles the console (`console/`) for browsers. @returns the files that it made */
function bundleConsole(root) {
  const { metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: ['console/console.tsx', 'console/index.html', 'console/icon.svg'],
    outdir: CONSOLE,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    // Pico's icons are in its style sheet.
    loader: { '.html': 'copy', '.svg': 'copy' },
    metafile: true,
    logLevel: 'warning',
  });
  return Object.keys(metafile.outputs);
}
