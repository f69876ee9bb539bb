/**
 * Puts what is started together in a few files: to load hundreds of modules one by one took longer than all the rest of
 * starting.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { filesBelow } from './filesBelow.mjs';

/** Where they are put, below the project's folder. */
export const BUNDLED = join('dist', 'service');

/**
 * What is started: programs, threads, and `keys`, which the compose files call. Each is found there by the last part of
 * its name.
 */
const STARTED = [
  'service/main',
  'cli/gift',
  'demo/demo',
  'service/keys',
  'adapters/embedded/checkpointWorker',
  'adapters/embedded/eventStore/eventStoreWorker',
  'adapters/embedded/readStore/readStoreWorker',
  'adapters/embedded/readStore/readStoreLookupWorker',
  'service/projector/projectorThread',
];

/**
 * Packages that go in, since every start of the service loads them. All others stay where they are: those with machine
 * code or files of their own, and those that few starts need, such as the clients of servers and providers.
 */
const PACKAGES = new Set([
  '@koa/router',
  '@mapbox/tilebelt',
  'ajv',
  'ajv-formats',
  'escape-html',
  'ipaddr.js',
  'jose',
  'koa',
  'koa-bodyparser',
  'koa-helmet',
  'libphonenumber-js',
  'lru-cache',
  'minisearch',
  'prom-client',
  'rate-limiter-flexible',
  'supercluster',
]);

/**
 * Bundles the sources of the project in `root`, and removes what an earlier bundle left. @throws Error when something
 * named can't be found; esbuild tells it on the terminal
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
    external: Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !PACKAGES.has(name)),
    // Packages that are CommonJS load Node's own modules by `require`, which ES modules lack.
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
  const made = new Set(Object.keys(metafile.outputs));
  for (const file of filesBelow(join(root, BUNDLED)))
    if (!made.has(join(BUNDLED, file))) rmSync(join(root, BUNDLED, file));
}
