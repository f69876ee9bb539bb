/** In which order test files run. */

/** Those that take ten seconds or more on a quiet machine, the longest first. */
const LONGEST = [
  'faults/processes',
  'adapters/eventstoredb/traps',
  'adapters/eventstoredb/eventStore',
  'adapters/mongodb/silence',
  'cli/projectionsLost',
  'api/fuzz',
  'faults/outages',
  'adapters/nats',
  'projections/rebuildLive',
  'engines',
  'cli/projections',
  'docs/runbookReadModels',
  'processors/killPoints',
  'adapters/mongodb/trouble',
  'docs/runbook',
  'app',
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

/** The runs in the order in which they are to begin: nothing long is left for the end, when others have nothing to do any more. The rest is in the order given. */
export function longestFirst(runs) {
  const place = ({ file }) => {
    const at = LONGEST.indexOf(file.replace(/\.test\.js$/, ''));
    return at === -1 ? LONGEST.length : at;
  };
  return runs.toSorted((one, other) => place(one) - place(other));
}
