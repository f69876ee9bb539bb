/**
 * The layers of `src`, from the bottom to the top: each folder, and the folders that its files may import. The linter
 * holds them (`scripts/lint.mjs`), with rules made of this table. docs/design.md#layers says what each folder is for.
 */
const PORTS = ['ports', 'lib'];
const RUNTIME = ['runtime', 'tracing', ...PORTS];
const BUSINESS = ['projections', 'messages', 'domain', ...RUNTIME];

export const LAYERS = {
  lib: [],
  ports: ['lib'],
  tracing: PORTS,
  adapters: PORTS,
  runtime: ['tracing', ...PORTS],
  domain: ['lib'],
  messages: ['domain', 'lib'],
  providers: ['messages', 'domain', ...RUNTIME],
  projections: ['domain', ...RUNTIME],
  commands: BUSINESS,
  entities: ['commands', ...BUSINESS],
  // Process managers decide from streams: a read model may be behind.
  processors: BUSINESS.filter((folder) => folder !== 'projections').concat('commands'),
  import: ['commands', ...BUSINESS],
  ops: ['processors', 'entities', 'commands', 'providers', ...BUSINESS],
  deliveries: ['commands', ...BUSINESS],
  metrics: ['deliveries', 'ops', 'processors', 'providers', ...BUSINESS],
  api: ['metrics', 'ops', 'entities', 'import', 'commands', 'providers', ...BUSINESS],
  service: ['api', 'metrics', 'deliveries', 'ops', 'processors', 'providers', 'adapters', ...BUSINESS],
  cli: ['service', 'deliveries', 'ops', 'entities', 'import', 'commands', 'providers', 'adapters', ...BUSINESS],
  demo: ['service', 'import', 'adapters', 'domain', ...PORTS],
};

/** The same for the folders of `src/api`, among each other. */
export const API = {
  pipeline: [],
  auth: ['pipeline'],
  limits: ['auth', 'pipeline'],
  listener: ['auth', 'pipeline'],
  representation: ['pipeline'],
  pages: ['pipeline'],
  openapi: ['pages', 'pipeline'],
  console: ['pages', 'representation', 'auth', 'pipeline'],
  sandbox: ['representation', 'pipeline'],
  catalogue: ['representation', 'pipeline'],
  gifts: ['catalogue', 'representation', 'pipeline'],
  account: ['gifts', 'representation', 'pipeline'],
  events: ['representation', 'pipeline'],
  requests: ['representation', 'pipeline'],
  webhookEndpoints: ['events', 'openapi', 'representation', 'limits', 'pipeline'],
  webhooks: ['representation', 'auth', 'pipeline'],
  ops: ['gifts', 'webhookEndpoints', 'representation', 'limits', 'pipeline'],
  evidence: ['ops', 'gifts', 'representation', 'pipeline'],
};

/** What forbids a folder all others of its table. `up`: the way to them, as a regular expression. */
function forbidden(table, folder, up, path) {
  const others = Object.keys(table).filter((other) => other !== folder && !table[folder].includes(other));
  const message = `${path} may import: ${table[folder].join(', ') || 'nothing'} (scripts/layers.mjs).`;
  return { regex: `^${up}(${others.join('|')})/`, message };
}

const rule = (path, patterns) => ({
  files: [`${path}/**`],
  rules: { 'no-restricted-imports': ['error', { patterns }] },
});

/** The linter's rules that hold the tables. Of two rules for a file the later one counts. */
export function layerRules() {
  const ofLayer = (folder) => forbidden(LAYERS, folder, '(\\.\\./)+', `src/${folder}`);
  return [
    ...Object.keys(LAYERS).map((folder) => rule(`src/${folder}`, [ofLayer(folder)])),
    ...Object.keys(API).map((folder) =>
      rule(`src/api/${folder}`, [ofLayer('api'), forbidden(API, folder, '\\.\\./', `src/api/${folder}`)]),
    ),
  ];
}
