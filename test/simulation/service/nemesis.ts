/** What happens to whole processes and engines by chance: crashes, stops, freezes, clocks that jump, outages. */
import { LEASE_MS } from '../../../src/runtime/coordination/lease.js';
import type { Cluster } from './cluster.js';
import { type Member, SKEW_MS } from './member.js';

/** Virtual ms between two draws of each thing that may happen. */
const EVERY_MS = 1_000;
const FREEZE = { least: 100, most: 90_000 };
/** Virtual ms in which all processes are replaced by those of another release. */
const DEPLOY_MS = 20_000;
/** The longest ones outlast ten attempts of a process manager. */
const OUTAGE = { least: 100, most: 90_000 };
/** The engines that processes reach over the network. */
const ENGINES = ['events', 'documents', 'keys', 'bus', 'provider'];

/** Lets things happen until the virtual time `untilMs`. */
export function startNemesis(cluster: Cluster, members: readonly Member[], untilMs: number): void {
  const { simulation } = cluster;
  const { faults, neutral } = simulation;
  const chance = simulation.chance.stream('nemesis');
  const note = (text: string): void =>
    void simulation.schedule({ owner: neutral, inMs: 0, kind: 'fault', text, run: () => undefined });

  function strike(member: Member): void {
    const process = member.process();
    if (!process.alive) return;
    const { name } = process;
    if (faults.happens('a process crashes')) {
      note(`${name} crashes`);
      return process.crash();
    }
    if (faults.happens('a process is stopped')) {
      note(`${name} is stopped`);
      member.stop();
    }
    if (faults.happens('a process freezes')) {
      note(`${name} freezes`);
      const ms = chance.spread(FREEZE.least, FREEZE.most);
      simulation.marks.sometimes('a process freezes for longer than a lease', ms > LEASE_MS);
      process.freeze(ms);
    }
    if (faults.happens('a clock jumps')) {
      note(`${name}'s clock jumps`);
      process.setSkew(chance.between(-SKEW_MS, SKEW_MS));
    }
    for (const engine of ENGINES)
      if (faults.happens(`a process is cut off from ${engine}`)) {
        note(`${name} is cut off from ${engine}`);
        simulation.outages.begin(engine, simulation.ms() + chance.spread(OUTAGE.least, OUTAGE.most), name);
      }
    return undefined;
  }

  /** Stops one process after the other, which then start with the next release. */
  function deploy(): void {
    cluster.release += 1;
    note(`release ${cluster.release} is deployed`);
    for (const member of members) {
      const inMs = chance.between(0, DEPLOY_MS);
      simulation.schedule({ owner: neutral, inMs, kind: 'deploy', text: member.name, run: member.stop });
    }
  }

  function turn(): void {
    if (simulation.ms() >= untilMs) return;
    if (faults.happens('a release is deployed')) deploy();
    for (const engine of ENGINES)
      if (faults.happens(`${engine} is away`)) {
        note(`${engine} is away`);
        simulation.outages.begin(engine, simulation.ms() + chance.spread(OUTAGE.least, OUTAGE.most));
      }
    members.forEach(strike);
    simulation.schedule({ owner: neutral, inMs: EVERY_MS, kind: 'nemesis', text: '', run: turn });
  }

  turn();
}
