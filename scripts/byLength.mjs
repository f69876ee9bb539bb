/** The order of test files: long ones start early. */

/** Files that take ten seconds or more on a quiet machine, the longest first. */
const LONGEST = [
  'faults/processes',
  'adapters/eventstoredb/traps',
  'adapters/eventstoredb/eventStore',
  'adapters/mongodb/silence',
  'cli/projectionsLost',
  'api/fuzz',
  'faults/outages',
  'adapters/nats/bus',
  'runtime/readmodels/maintenance/rebuildLive',
  'service/engines',
  'cli/projections/projections',
  'docs/runbookReadModels',
  'processors/killPoints',
  'adapters/mongodb/trouble',
  'docs/runbook',
  'service/app',
  'api/rebuilding',
  'docs/runbookEngines',
  'docs/runbookProviders',
  'processors/realProviders',
  'processors/fromNothing',
  'cli/history',
  'processors/bulk',
  'adapters/eventstoredb/seal',
  'api/privacy',
  'processors/authentication',
];

/** The longest runs first, the others in the order given. */
export function byLength(runs) {
  const place = ({ file }) => {
    const at = LONGEST.indexOf(file.replace(/\.test\.js$/, ''));
    return at === -1 ? LONGEST.length : at;
  };
  return runs.toSorted((one, other) => place(one) - place(other));
}
