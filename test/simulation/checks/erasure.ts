/** After an erasure nothing that is stored names the person, as `gift people verify-erasure` looks for it. */
import { verifyErasure } from '../../../src/ops/people/index.js';
import { masterKeys } from '../../../src/runtime/personal/index.js';
import { findMasterKeys } from '../../../src/service/keys.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import { openSimulatedReadStore } from '../engines/readStore.js';
import type { Finding } from '../model/finding.js';
import type { Cluster } from '../service/cluster.js';
import { IMMEDIATE } from '../world/link.js';
import { startProcess } from '../world/simulatedProcess.js';
import { perform } from '../world/simulatedWorld.js';

/** @param values clear values of persons who are erased */
export async function checkErasure(
  { simulation, log, readStore, keys, config }: Cluster,
  values: readonly string[],
): Promise<Finding[]> {
  if (values.length === 0) return [];
  const settings = config('projector');
  const findings: Finding[] = [];
  const found = (text: string): void => void findings.push({ rule: 'erasure', text });
  const search = verifyErasure(values, {
    signal: new AbortController().signal,
    onFinding: async ({ value, in: where, location }) => found(`${values[value]} is in the ${where}: ${location}`),
    onUnreadable: async (location) => found(`${location} can not be read`),
  });
  await perform(simulation, startProcess(simulation, { name: 'searcher' }), 'verify erasures', async () => {
    await search.stores({
      events: openSimulatedEvents(log, IMMEDIATE),
      store: openSimulatedReadStore(readStore, IMMEDIATE),
      keys: openSimulatedKeys(keys, IMMEDIATE),
      master: masterKeys(findMasterKeys(settings) ?? []),
    });
    await search.files(settings.dataDir);
  });
  return findings;
}
