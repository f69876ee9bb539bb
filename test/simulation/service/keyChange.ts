/** A change of MASTER_KEY while the service works, in the steps of docs/keys.md#changing-master_key. */
import { sleep } from '../../../src/lib/world.js';
import { rewrapKeys } from '../../../src/ops/people/index.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { masterKeys } from '../../../src/runtime/personal/index.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import type { Finding } from '../model/finding.js';
import { linkTo } from '../world/link.js';
import { startProcess } from '../world/simulatedProcess.js';
import { perform } from '../world/simulatedWorld.js';
import type { Cluster } from './cluster.js';
import type { Member } from './member.js';

export interface KeyChange {
  /** Lets an operator of some runs change the key; the second call does nothing. */
  start(untilMs: number): void;
  /**
   * Waits for the end of the change. To be called once nothing fails any more.
   * @returns the rows that are not wrapped under the new key
   */
  finish(): Promise<readonly Finding[]>;
}

const PROBABILITY = 0.3;
/** Virtual ms between two polls of processes that are to start again, and two calls of `gift keys rewrap`. */
const POLL_MS = 500;
const MOST_POLL_MS = 60_000;
const WITHIN_MS = 900_000;

export function openKeyChange(cluster: Cluster, members: readonly Member[]): KeyChange {
  const { simulation } = cluster;
  const operator = startProcess(simulation, { name: 'key operator' });
  const chance = simulation.chance.stream('key change');
  const changes = chance.happens(PROBABILITY);
  let change: Promise<void> | undefined;

  /** Starts all processes again with these keys, one after the other. */
  async function deploy(keys: string): Promise<void> {
    cluster.masterKeys = keys;
    for (const member of members) {
      const starts = member.starts();
      member.stop();
      // It may be down for days.
      for (let ms = POLL_MS; member.starts() === starts || !member.started(); ms = Math.min(2 * ms, MOST_POLL_MS))
        await sleep(ms);
    }
  }

  async function rewrap(keys: string): Promise<void> {
    const store = openSimulatedKeys(cluster.keys, linkTo('keys', operator, simulation));
    const master = masterKeys(keys.split(','));
    const { signal } = new AbortController();
    for (;;) {
      const rewrapped = await rewrapKeys(store, master, signal).catch((error: unknown) => {
        if (error instanceof UnavailableError) return undefined;
        throw error;
      });
      if (rewrapped?.rewrapped === 0) return;
      await sleep(POLL_MS);
    }
  }

  async function work(): Promise<void> {
    const former = cluster.masterKeys;
    const next = chance.bytes(32).toString('hex');
    await deploy(`${former},${next}`);
    await deploy(`${next},${former}`);
    await rewrap(`${next},${former}`);
    await deploy(next);
    simulation.marks.sometimes('MASTER_KEY is changed');
  }

  return {
    start(untilMs) {
      if (!changes || change !== undefined) return;
      const inMs = chance.between(0, untilMs - simulation.ms());
      operator.start('change MASTER_KEY', async () => (change = sleep(inMs).then(work)));
    },
    async finish() {
      if (!changes) return [];
      await perform(simulation, operator, 'finish the change of MASTER_KEY', async () => change, WITHIN_MS);
      const master = masterKeys([cluster.masterKeys]);
      return [...cluster.keys.rows.values()]
        .filter(({ secret }) => !master.isCurrent(secret))
        .map(({ id }) => ({ rule: 'keys', text: `the row ${id} is not wrapped under the new MASTER_KEY` }));
    },
  };
}
