/** Signed heads, their witnesses, and clocks. */
import type { headStatus } from '../../evidence/index.js';
import type { Found } from '../findings.js';

/** Least age in ms of an event without a head that counts, and so many times the least time between two heads. */
const UNCOVERED_MS = 600_000;
const PERIODS = 10;

/** @param everyMs least time between two heads @param now milliseconds since the epoch */
export function checkHead(
  { last, uncoveredSince, uncosigned }: Awaited<ReturnType<typeof headStatus>>,
  everyMs: number,
  now: number,
): Found[] {
  const limit = Math.max(UNCOVERED_MS, PERIODS * everyMs);
  const isOld = uncoveredSince !== undefined && now - Date.parse(uncoveredSince) > limit;
  const head = last === undefined ? 'nothing was signed yet' : `the last head is of ${new Date(last.at).toISOString()}`;
  return [
    ...(isOld ? [{ code: 'head_old' as const, what: `${head}; events since ${uncoveredSince} have none` }] : []),
    ...uncosigned.map((name): Found => ({
      code: 'witness_missing',
      what: `${name} has not cosigned the published head`,
    })),
  ];
}

/** The clock of a process that holds a lease, as its last renewal shows it. */
export interface ProcessClock {
  readonly process: string;
  /** Milliseconds by which this clock is ahead of that of the process, less at most the time since its renewal. */
  readonly aheadMs: number;
}

/** More than the time between two renewals, and what clocks of one installation may differ by. */
const APART_MS = 10_000;

/** @param alive processes that renew their leases: of others the last renewal tells nothing */
export function checkClocks(clocks: readonly ProcessClock[], alive: ReadonlySet<string>): Found[] {
  const apart = new Map(
    clocks
      .filter(({ process, aheadMs }) => alive.has(process) && Math.abs(aheadMs) > APART_MS)
      .map(({ process, aheadMs }) => [process, aheadMs]),
  );
  return [...apart].map(([process, aheadMs]) => ({
    code: 'clocks_apart',
    what: `the clock of ${process} is ${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} the one here`,
  }));
}
