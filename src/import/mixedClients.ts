/**
 * Clients through which users with roles and users without log in, where the client's entry does not say whether staff
 * may (docs/support.md#ops-roles): a password that was guessed or read in the customers' app then opens `/ops`.
 */
import type { Entry } from '../domain/entry.js';
import type { LogState, Stored } from './logState.js';
import type { Desired, DesiredImport } from './desired.js';

/** Ids of these clients, by the entries as they are after the import. */
export function mixedClients({ users, clients }: DesiredImport, log: LogState): string[] {
  const all = [...liveAfter(log.entries.user, users).values()].filter(({ active }) => active);
  const ids = (staff: boolean): readonly string[] =>
    all.filter(({ roles }) => roles.length > 0 === staff).map(({ id }) => id);
  const [staff, others] = [ids(true), ids(false)];
  const serves = (allowed: ReadonlySet<string> | undefined, some: readonly string[]): boolean =>
    allowed === undefined ? some.length > 0 : some.some((id) => allowed.has(id));
  return [...liveAfter(log.entries.client, clients).values()].flatMap(({ id, active, users: named, staff: said }) => {
    const allowed = named === null ? undefined : new Set(named);
    return active && said === null && serves(allowed, staff) && serves(allowed, others) ? [id] : [];
  });
}

function liveAfter<V extends object>(
  stored: ReadonlyMap<string, Stored<Entry<V>>>,
  desired: readonly Desired<Partial<V>>[] = [],
): ReadonlyMap<string, V> {
  const live = new Map<string, V>();
  for (const [id, { state }] of stored) if (state.status === 'live') live.set(id, state.value);
  for (const { id, value } of desired) live.set(id, value as V);
  return live;
}
