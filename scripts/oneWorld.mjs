/**
 * The linter's rule that time and chance come from `src/lib/world.ts`, so that a simulation can replace them. It is a
 * plugin of oxlint. `.oxlintrc.json` turns it on for `src`, and names the files that need the real ones.
 */

/** Globals that no file uses. */
const GLOBALS = new Set([
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
  'queueMicrotask',
  'performance',
]);

/** Properties of globals that no file uses. */
const PROPERTIES = {
  Date: ['now'],
  Math: ['random'],
  AbortSignal: ['timeout'],
  process: ['hrtime', 'uptime'],
  crypto: ['randomUUID', 'getRandomValues', 'subtle'],
  globalThis: [...GLOBALS, 'crypto'],
  global: [...GLOBALS, 'crypto'],
};

/** Exports of modules that no file imports. Such a module is not imported as a whole, since that hides them. */
const MODULES = {
  timers: undefined,
  'timers/promises': undefined,
  crypto: ['randomUUID', 'randomBytes', 'randomInt', 'randomFill', 'randomFillSync', 'getRandomValues', 'webcrypto'],
  perf_hooks: ['performance', 'monitorEventLoopDelay'],
  // Their chance is that of `Math.random`: `src/lib/backoff.ts` replaces them.
  cockatiel: ['halfJitterGenerator', 'fullJitterGenerator', 'decorrelatedJitterGenerator'],
};

const nodeModule = (source) => source.replace(/^node:/, '');
const nameOf = (node) => node.name ?? node.value;

/** What of the real world a reference to a global names, or nothing. */
function ofGlobal(node) {
  const { name, parent } = node;
  if (GLOBALS.has(name)) return name;
  if (name === 'Date' && parent.callee === node && (parent.type === 'CallExpression' || parent.arguments.length === 0))
    return parent.type === 'CallExpression' ? 'Date()' : 'new Date()';
  if (!Object.hasOwn(PROPERTIES, name)) return undefined;
  const names = PROPERTIES[name];
  if (parent.type === 'MemberExpression' && parent.object === node && names.includes(nameOf(parent.property)))
    return `${name}.${nameOf(parent.property)}`;
  // `const { now } = Date`
  if (parent.type === 'VariableDeclarator' && parent.init === node && parent.id.type === 'ObjectPattern') {
    const taken = parent.id.properties.find(({ key }) => key !== undefined && names.includes(nameOf(key)));
    if (taken !== undefined) return `${name}.${nameOf(taken.key)}`;
  }
  return undefined;
}

/** What of the real world an import brings. */
function ofImport({ source, specifiers }) {
  const module = nodeModule(source.value);
  if (!Object.hasOwn(MODULES, module)) return [];
  const names = MODULES[module];
  if (names === undefined) return [source.value];
  return specifiers.flatMap((specifier) => {
    if (specifier.type !== 'ImportSpecifier') return [`${source.value} as a whole`];
    const name = nameOf(specifier.imported);
    return names.includes(name) && specifier.importKind !== 'type' ? [`${name} of ${source.value}`] : [];
  });
}

const timeAndChance = {
  create(context) {
    const report = (node, what) =>
      context.report({ node, message: `${what}: time and chance come from src/lib/world.ts` });
    return {
      ImportDeclaration(node) {
        if (node.importKind !== 'type') for (const what of ofImport(node)) report(node, what);
      },
      ImportExpression(node) {
        if (typeof node.source.value === 'string' && Object.hasOwn(MODULES, nodeModule(node.source.value)))
          report(node, `${node.source.value} as a whole`);
      },
      Program() {
        const { through, variables } = context.sourceCode.scopeManager.globalScope;
        // Those that no environment declares, and those of the language.
        const references = [...through, ...variables.flatMap((variable) => variable.references)];
        for (const { identifier } of references) {
          const what = ofGlobal(identifier);
          if (what !== undefined) report(identifier, what);
        }
      },
    };
  },
};

export default { meta: { name: 'world' }, rules: { 'time-and-chance': timeAndChance } };
