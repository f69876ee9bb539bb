/** The time after the last fault, in which the service finishes its work. */
import { PROJECTIONS } from '../../../src/projections/index.js';
import { checkpointName } from '../../../src/runtime/readmodels/index.js';
import { checkGifts } from '../checks/gifts.js';
import { checkMoney } from '../checks/money.js';
import { LATE_CALL } from '../world/link.js';
import type { Cluster } from './cluster.js';
import type { Member } from './member.js';

/** Virtual ms in which all must be done. */
export const RECOVERY_MS = 180_000;
/** Until then, requests still come that were sent while things failed. */
const LEAST_MS = 20_000;
/** The same where engines get calls that their callers have abandoned. */
const LEAST_WITH_LATE_MS = 45_000;
/** Virtual ms for which nothing must have happened but what happens at rest, too. */
const QUIET_MS = 5_000;
const AT_REST = 'TreeHeadSigned';

/**
 * Lets the service work without faults for three virtual minutes; for less once there is nothing more to do, so that
 * most runs are short. What is not done by then the checks find.
 */
export async function recover(cluster: Cluster, members: readonly Member[]): Promise<void> {
  const { simulation } = cluster;
  simulation.faults.stop();
  simulation.outages.end();
  for (const member of members) member.process().thaw();
  const late = [...simulation.faults.counts().keys()].some((name) => name.endsWith(LATE_CALL));
  await settle(cluster, members, { leastMs: late ? LEAST_WITH_LATE_MS : LEAST_MS, mostMs: RECOVERY_MS });
}

/** Lets the service work for some time, which ends early once there is nothing more to do. */
export async function settle(
  cluster: Cluster,
  members: readonly Member[],
  { leastMs, mostMs }: { readonly leastMs: number; readonly mostMs: number },
): Promise<void> {
  const { simulation, log } = cluster;
  const began = simulation.ms();
  await simulation.run(began + Math.max(0, leastMs - QUIET_MS));
  for (let before = -1; simulation.ms() < began + mostMs;) {
    const events = log.stored.filter(({ type }) => type !== AT_REST).length;
    if (before === events && isDone(cluster, members)) return;
    before = events;
    await simulation.run(Math.min(simulation.ms() + QUIET_MS, began + mostMs));
  }
}

function isDone({ log, ledger, readStore: { documents } }: Cluster, members: readonly Member[]): boolean {
  const isFolded = (name: string): boolean => {
    const version = documents.active(name);
    return version !== undefined && documents.checkpoint(checkpointName({ name, version })) === log.end();
  };
  return (
    members.every((member) => member.started()) &&
    PROJECTIONS.every(({ name }) => isFolded(name)) &&
    checkMoney(log, ledger).length === 0 &&
    checkGifts(log).length === 0
  );
}
