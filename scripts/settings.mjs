/**
 * `npm run settings` writes the table of settings (`src/service/config.ts`) into docs/settings.md and .env.example, from the
 * compiled sources; a test checks both.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './build.mjs';

/** Set by the compose files themselves: docs/deployment.md and `test/deploy/compose.test.ts`. */
const COMPOSED = [
  'ROLES',
  'HOST',
  'PORT',
  'METRICS_PORT',
  'DATA_DIR',
  'NODE_OPTIONS',
  'EVENTSTORE_URL',
  'MONGODB_URL',
  'KEYS_URL',
  'NATS_URL',
];

const HEADER = ['| Variable | Default | Meaning |', '|---|---|---|'];
const OTEL =
  "| `OTEL_TRACES_EXPORTER`, `OTEL_EXPORTER_OTLP_ENDPOINT` … | no traces | OpenTelemetry's own variables, checked at start where traces are sent; any of these sends traces ([which](deployment.md)) |";

/** The table of docs/settings.md. @param settings `ALL_SETTINGS` of `src/service/config.ts` */
export function settingsTable(settings) {
  return [
    ...HEADER,
    ...settings.map(({ name, shown: { fallback, meaning } }) => `| \`${name}\` | ${fallback} | ${meaning} |`),
    OTEL,
  ];
}

/** A text as comment lines of at most 120 characters. */
function comment(text) {
  const lines = [];
  for (const word of text.replaceAll('`', '').split(' ')) {
    const line = lines.at(-1);
    if (line === undefined || line.length + word.length + 1 > 120) lines.push(`# ${word}`);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

/** The whole of .env.example. */
export function envExample(settings) {
  const intro = `Settings for \`docker compose\`: copy to .env. Nothing has to be set to try it; every setting of docs/settings.md may stand here, but for those that the compose files give their processes themselves: ${COMPOSED.join(', ')}. These are passed over here. A value with a dollar sign, a hash, a quote or a backslash stands in single quotes. \`npm run settings\` writes this file.`;
  const keys =
    'Keys that were made are kept in the volume `keys`: keep copies of HASH_KEY and MASTER_KEY (`docker compose run --rm api printenv HASH_KEY MASTER_KEY` shows those in use).';
  const own = settings.filter(({ name }) => !COMPOSED.includes(name));
  return `${[
    comment(intro),
    comment(keys),
    [...comment('Where the service listens on this machine. Default: 127.0.0.1:3000'), '# LISTEN='],
    ...own.map(({ name, shown: { fallback, meaning } }) => [
      ...comment(
        `${meaning[0].toUpperCase()}${meaning.slice(1)}. Default: ${fallback}`.replaceAll(/\]\([^)]*\)|\[/g, ''),
      ),
      `# ${name}=`,
    ]),
  ]
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

/** The page with this table in place of its own, which has the same header. */
export function withTable(page, table) {
  const lines = page.split('\n');
  const start = lines.indexOf(table[0]);
  const length = lines.slice(start).findIndex((line) => !line.startsWith('|'));
  return [...lines.slice(0, start), ...table, ...lines.slice(start + length)].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { ALL_SETTINGS } = await import(join(root, 'dist/src/service/config.js'));
  const page = join(root, 'docs', 'settings.md');
  writeFileSync(page, withTable(readFileSync(page, 'utf8'), settingsTable(ALL_SETTINGS)));
  writeFileSync(join(root, '.env.example'), envExample(ALL_SETTINGS));
}
