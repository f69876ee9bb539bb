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
  cli: ['service', 'ops', 'entities', 'import', 'commands', 'providers', 'adapters', ...BUSINESS],
  demo: ['service', 'import', 'adapters', 'domain', ...PORTS],
};

/** The linter's rules that hold the table, one for each folder. */
export function layerRules() {
  const folders = Object.keys(LAYERS);
  return folders.map((folder) => {
    const others = folders.filter((other) => other !== folder && !LAYERS[folder].includes(other));
    const regex = `^(\\.\\./)+(${others.join('|')})/`;
    const message = `src/${folder} may import: ${LAYERS[folder].join(', ') || 'nothing'} (scripts/layers.mjs).`;
    return {
      files: [`src/${folder}/**`],
      rules: { 'no-restricted-imports': ['error', { patterns: [{ regex, message }] }] },
    };
  });
}
