/**
 * Imported entries (docs/import.md#import-file): `{Kind}Added` has the whole entry, `{Kind}Changed` the changed
 * fields. `{Kind}Retired`: an import pruned it; it may be added again.
 */
import type { DomainEvent } from './decider.js';

type EntryEventType<K extends string> = `${Capitalize<K>}${'Added' | 'Changed' | 'Retired'}`;

type EntryAdded<K extends string, V extends object> = DomainEvent<`${Capitalize<K>}Added`, V>;

type EntryChanged<K extends string, V extends object> = DomainEvent<`${Capitalize<K>}Changed`, Partial<V>>;

export type EntryRetired<K extends string> = DomainEvent<`${Capitalize<K>}Retired`, { readonly reason: string }>;

export type EntryEvent<K extends string, V extends object> = EntryAdded<K, V> | EntryChanged<K, V> | EntryRetired<K>;

/** A retired entry keeps its last values; an erased one has nothing personal left, and never comes back. */
export type Entry<V extends object> =
  { readonly status: 'none' } | { readonly status: 'live' | 'retired' | 'erased'; readonly value: V };

export function entryEventType<K extends string>(kind: K, what: 'Added' | 'Changed' | 'Retired'): EntryEventType<K> {
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)}${what}` as EntryEventType<K>;
}

export const entryEventTypes = <K extends string>(kinds: readonly K[]): EntryEventType<K>[] =>
  kinds.flatMap((kind) => (['Added', 'Changed', 'Retired'] as const).map((what) => entryEventType(kind, what)));

/** Folds an event into the entry; retirement sets `active` to false. */
export function evolveEntry<V extends object>(state: Entry<V>, event: DomainEvent): Entry<V> {
  if (event.type.endsWith('Added')) return { status: 'live', value: event.data as V };
  if (state.status === 'none') return state;
  if (event.type.endsWith('Changed')) return { ...state, value: { ...state.value, ...event.data } };
  if (event.type.endsWith('Retired'))
    return { status: 'retired', value: 'active' in state.value ? { ...state.value, active: false } : state.value };
  return state;
}

function changedFields<V extends object>(present: V, desired: V): Partial<V> {
  const changed: Partial<V> = {};
  for (const field of Object.keys(desired) as (keyof V)[])
    // An older entry may lack a field that was added later with a default.
    if (!sameJson(present[field] ?? null, desired[field] ?? null)) changed[field] = desired[field];
  return changed;
}

export function putEntry<K extends string, V extends object>(kind: K, state: Entry<V>, desired: V): DomainEvent[] {
  if (state.status !== 'live') return [{ type: entryEventType(kind, 'Added'), data: desired }];
  const changed = changedFields(state.value, desired);
  return Object.keys(changed).length === 0 ? [] : [{ type: entryEventType(kind, 'Changed'), data: changed }];
}

export function retireEntry<K extends string, V extends object>(
  kind: K,
  state: Entry<V>,
  reason: string,
): DomainEvent[] {
  return state.status === 'live' ? [{ type: entryEventType(kind, 'Retired'), data: { reason } }] : [];
}

/** Compares JSON values without regard to the order of fields; -0 equals 0. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    return (
      Array.isArray(left) &&
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, index) => sameJson(item, right[index]))
    );
  }
  const fields = Object.keys(left);
  return (
    fields.length === Object.keys(right).length &&
    fields.every(
      (field) =>
        Object.hasOwn(right, field) &&
        sameJson((left as Record<string, unknown>)[field], (right as Record<string, unknown>)[field]),
    )
  );
}
