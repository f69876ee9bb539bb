/**
 * Events are versioned by type. An event of an older version is upcast when it is read, never rewritten
 * (docs/design.md#versions-of-events). docs/extending.md says how an upcaster is added.
 */
import type { AnyDomainEvent } from './fieldClasses.js';

/** Makes the data of one version from that of the version before. Pure. */
export type Upcaster = (data: Readonly<Record<string, unknown>>) => object;

/** By event type, in the order of versions: the first makes version 2. A type without any is of version 1. */
export type Upcasters = Readonly<Partial<Record<AnyDomainEvent['type'], readonly Upcaster[]>>>;

/** Those of this release. */
export const UPCASTERS: Upcasters = {};

/** The types that have upcasters. */
export function changedTypes(upcasters: Upcasters = UPCASTERS): ReadonlyMap<string, readonly Upcaster[]> {
  return new Map(Object.entries(upcasters));
}

/** What the metadata of an event of this type says of its version; nothing while that is 1. */
export function schemaNote(type: string, upcasters: Upcasters = UPCASTERS): { readonly schema?: number } {
  const steps = Object.hasOwn(upcasters, type) ? upcasters[type as keyof Upcasters] : undefined;
  return steps === undefined || steps.length === 0 ? {} : { schema: steps.length + 1 };
}

/** Whether a later release wrote it, with fields that this one does not know. @param schema its version; absent: 1 */
export function isOfLaterVersion(type: string, schema = 1, upcasters: Upcasters = UPCASTERS): boolean {
  return schema > (schemaNote(type, upcasters).schema ?? 1);
}

/**
 * The data in the present version. Data of a later release is passed on as it is: it still holds what this release
 * reads (docs/extending.md).
 * @param schema its version; absent: 1. @param steps the upcasters of its type
 */
export function dataUpToDate(data: object, schema: number | undefined, steps: readonly Upcaster[]): object {
  return steps
    .slice((schema ?? 1) - 1)
    .reduce((before, step) => step(before as Readonly<Record<string, unknown>>), data);
}
