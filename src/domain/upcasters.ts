/**
 * Events are versioned by type. An older event is upcast when it is read, never rewritten
 * (docs/design.md#versions-of-events). docs/extending.md says how to add an upcaster.
 */
import type { AnyDomainEvent } from './fieldClasses.js';

/** Pure function that turns an event's data of one version into data of the next version. */
export type Upcaster = (data: Readonly<Record<string, unknown>>) => object;

/** The first upcaster of a type makes version 2. A type without upcasters is at version 1. */
export type Upcasters = Readonly<Partial<Record<AnyDomainEvent['type'], readonly Upcaster[]>>>;

export const UPCASTERS: Upcasters = {};

export function changedTypes(upcasters: Upcasters = UPCASTERS): ReadonlyMap<string, readonly Upcaster[]> {
  return new Map(Object.entries(upcasters));
}

/** Schema version for an event's metadata; without a field for version 1. */
export function schemaNote(type: string, upcasters: Upcasters = UPCASTERS): { readonly schema?: number } {
  const steps = Object.hasOwn(upcasters, type) ? upcasters[type as keyof Upcasters] : undefined;
  return steps === undefined ? {} : { schema: steps.length + 1 };
}

/**
 * True where a later release wrote the event.
 * @param schema absent: 1
 */
export function isOfLaterVersion(type: string, schema = 1, upcasters: Upcasters = UPCASTERS): boolean {
  return schema > (schemaNote(type, upcasters).schema ?? 1);
}

/**
 * Data of a later version is returned as it is: it still holds the fields that this release reads (docs/extending.md).
 * @param schema absent: 1
 */
export function dataUpToDate(data: object, schema: number | undefined, steps: readonly Upcaster[]): object {
  return steps
    .slice((schema ?? 1) - 1)
    .reduce((before, step) => step(before as Readonly<Record<string, unknown>>), data);
}
