/** What those who run the installation see to: keys, settings, disk, backups, reconciliation, limits. */
import type { Found } from '../findings.js';

/** Bytes: those of the alert. */
const FREE_BYTES = 2e9;

/** @param bytes `undefined`: nothing of the installation is stored in DATA_DIR */
export function checkDisk(bytes: number | undefined): Found[] {
  if (bytes === undefined || bytes >= FREE_BYTES) return [];
  return [{ code: 'disk_short', what: `${(bytes / 1e9).toFixed(1)} GB are left on the disk of DATA_DIR` }];
}

/** @param fault why the keys are not the log's; `undefined`: they are */
export function checkKeys(fault: string | undefined): Found[] {
  return fault === undefined ? [] : [{ code: 'keys_wrong', what: fault }];
}

export interface SettingsState {
  /** Settings that contradict each other, as text. */
  readonly warnings: readonly string[];
  /** Whether links begin with an address that nobody can open. */
  readonly deadLinks: boolean;
}

export function checkSettings({ warnings, deadLinks }: SettingsState): Found[] {
  return [
    ...warnings.map((what): Found => ({ code: 'settings_contradict', what })),
    ...(deadLinks ? [{ code: 'links_dead' as const, what: 'PUBLIC_URL is not set, and HOST is every address' }] : []),
  ];
}

export interface ReachedLimit {
  readonly limit: string;
  readonly callers: number;
  /** ISO 8601, UTC. */
  readonly until: string;
}

export function checkLimits(reached: readonly ReachedLimit[]): Found[] {
  return reached.map(({ limit, callers, until }) => ({
    code: 'limit_reached',
    what: `${callers} ${callers === 1 ? 'caller is' : 'callers are'} at the limit ${limit}, until ${until}`,
  }));
}

/** Work that a person does from time to time, by the access records that it leaves. */
export interface Routine {
  readonly of: 'backup' | 'reconciliation';
  /** Days within which it is done again. */
  readonly days: number;
  /** When the last one that was done whole began, within these days; `undefined`: there was none. */
  readonly last: string | undefined;
  /** Days whose last comparison found differences. */
  readonly differing: readonly { readonly day: string; readonly differences: number }[];
}

const ROUTINES = {
  backup: { code: 'backup_old', text: 'no gift backup was made' },
  reconciliation: { code: 'reconciliation_old', text: 'payments were not reconciled' },
} as const;

export function checkRoutines(routines: readonly Routine[]): Found[] {
  return routines.flatMap(({ of, days, last, differing }): Found[] => [
    ...(last === undefined ? [{ code: ROUTINES[of].code, what: `${ROUTINES[of].text} within ${days} days` }] : []),
    ...differing.map(({ day, differences }) => ({
      code: 'reconciliation_differs' as const,
      what: `the last reconciliation of ${day} found ${differences} ${differences === 1 ? 'difference' : 'differences'}`,
      command: `gift payments reconcile --day ${day}`,
    })),
  ]);
}
