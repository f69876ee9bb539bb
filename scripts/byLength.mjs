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

const placeOf = (file) => LONGEST.indexOf(file.replace(/\.test\.js$/, ''));

export const isLong = (file) => placeOf(file) !== -1;

/** The longest first, then the others in the order given. @param batches of runs; a long file is alone in its own */
export function byLength(batches) {
  const place = ([{ file }]) => (isLong(file) ? placeOf(file) : LONGEST.length);
  return batches.toSorted((one, other) => place(one) - place(other));
}
