/** The marks and faults that seeds must reach. */
import type { Counts } from './seedReport.js';

/**
 * Number of short runs (`--minutes 0.15`) of which one must meet the mark, with room to spare. A mark that none meets
 * shows that the simulation has lost a fault or work.
 */
export const KNOWN_MARKS: Counts = {};

/** Marks that so many seeds should have met, and have not. */
export function missingMarks(met: Counts, seeds: number): string[] {
  return Object.entries(KNOWN_MARKS)
    .filter(([name, within]) => seeds >= within && (met[name] ?? 0) === 0)
    .map(([name]) => name);
}
