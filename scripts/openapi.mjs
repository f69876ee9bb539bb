/**
 * `npm run openapi` writes docs/api/openapi.json, the description of the release that goes out: what later ones are
 * compared with (docs/api/changes.md). It is that of a sandbox, without what is for staff only.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './build.mjs';

/** The description that a sandbox serves, without the routes of staff. */
export async function describedApi() {
  const { startApp } = await import(join(root, 'dist/src/service/app.js'));
  const { loadConfig } = await import(join(root, 'dist/src/service/config.js'));
  const { createLogger } = await import(join(root, 'dist/src/lib/logging/logger.js'));
  const dir = mkdtempSync(join(tmpdir(), 'openapi-'));
  const env = { DATA_DIR: dir, PORT: '0', SANDBOX: '1', PUBLIC_URL: 'https://gifts.example' };
  const app = await startApp(loadConfig(env), createLogger({ level: 'silent' }));
  try {
    const { paths, ...document } = await (await fetch(`${app.url}/openapi.json`)).json();
    const forApps = Object.entries(paths).filter(([path]) => !/^\/(ops|console)\//.test(path));
    return { ...document, paths: Object.fromEntries(forApps) };
  } finally {
    await app.close();
    rmSync(dir, { recursive: true });
  }
}

/** What the comparison reads: no texts and examples, and only the schemas in use. */
export function comparable({ openapi, paths, webhooks, components }) {
  const schemas = {};
  const kept = (value, areNames = false) => {
    if (Array.isArray(value)) return value.map((one) => kept(one));
    if (typeof value !== 'object' || value === null) return value;
    if (typeof value.$ref === 'string') {
      const name = /^#\/components\/schemas\/(.+)$/.exec(value.$ref)?.[1];
      if (name !== undefined && schemas[name] === undefined) {
        schemas[name] = {};
        schemas[name] = kept(components.schemas[name]);
      }
      return { $ref: value.$ref };
    }
    const entries = Object.entries(value).filter(([key]) => (areNames ? !FAILED.test(key) : !TEXTS.has(key)));
    return Object.fromEntries(entries.map(([key, inner]) => [key, kept(inner, !areNames && NAMES.has(key))]));
  };
  const shown = { openapi, paths: kept(paths, true), webhooks: kept(webhooks, true) };
  const { parameters, headers } = components;
  return { ...shown, components: { parameters: kept(parameters, true), headers: kept(headers, true), schemas } };
}

const TEXTS = new Set(['description', 'summary', 'example', 'examples', 'tags', 'security', 'operationId']);
/** Statuses of errors: their bodies are all alike, and which there are may grow. */
const FAILED = /^[345]\d\d$/;
/** Keys whose values have free names as keys. */
const NAMES = new Set(['properties', 'headers', 'responses', 'content']);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const document = comparable(await describedApi());
  writeFileSync(join(root, 'docs', 'api', 'openapi.json'), `${JSON.stringify(document)}\n`);
}
