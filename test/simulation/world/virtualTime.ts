/** Unit tests in virtual time: what waits for seconds takes milliseconds, and a busy machine changes nothing. */
import { noFaults } from './faults.js';
import { openSimulation, perform } from './simulatedWorld.js';
import { startProcess } from './simulatedProcess.js';

/** By default: ten minutes. */
const HANGING_MS = 600_000;

type Add = (name: string, work: () => Promise<void>) => void;

/**
 * Adds tests whose work is done in one simulated process, whose clocks go on only while all of its work waits.
 * @param withinMs virtual milliseconds after which a test counts as hanging
 */
export function inVirtualTime(add: Add, withinMs = HANGING_MS): Add {
  return (name, work) =>
    add(name, async () => {
      const simulation = openSimulation({ seed: 1, faults: noFaults() });
      const process = startProcess(simulation, { name: 'tested' });
      await perform(simulation, process, 'test', work, withinMs);
    });
}
