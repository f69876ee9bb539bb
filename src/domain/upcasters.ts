/**
 * Events are versioned by type: an old one is brought up to date when it is read, never rewritten (design).
 * docs/extending.md, "Changing an event", says how one is added.
 */
import type { AnyDomainEvent } from './fieldClasses.js';

/**
 * Makes the data of one version from that of the version before. Pure: it invents nothing that the event, whenever it
 * is read, could not tell again.
 */
export type Upcaster = (data: Readonly<Record<string, unknown>>) => object;

/**
 * The upcasters of event types in the order of their versions: the first makes version 2 of version 1, the last makes
 * the present one. A type without any is of version 1.
 */
export type Upcasters = Readonly<Partial<Record<AnyDomainEvent['type'], readonly Upcaster[]>>>;

/** Those of this release. No event has changed its shape yet. */
export const UPCASTERS: Upcasters = {};

/** The types that have upcasters: an event of another type stands in the log as it is read. */
export function changedTypes(upcasters: Upcasters = UPCASTERS): ReadonlyMap<string, readonly Upcaster[]> {
  return new Map(Object.entries(upcasters));
}

/** What an event of this type notes of its version when it is appended, in its metadata; nothing while that is 1. */
export function schemaNote(type: string, upcasters: Upcasters = UPCASTERS): { readonly schema?: number } {
  const steps = Object.hasOwn(upcasters, type) ? upcasters[type as keyof Upcasters] : undefined;
  return steps === undefined || steps.length === 0 ? {} : { schema: steps.length + 1 };
}

/**
 * Whether a later release wrote it: this one does not know all its fields. @param schema as noted with it; absent: 1
 */
export function isOfLaterVersion(type: string, schema = 1, upcasters: Upcasters = UPCASTERS): boolean {
  return schema > (schemaNote(type, upcasters).schema ?? 1);
}

/**
 * The data as the present version has it. Data of a later release's version is handed on as it is: a changed event goes
 * on holding what the release before it reads (docs/extending.md).
 * @param schema its version, as noted with it; absent: 1. @param steps the upcasters of its type
 */
export function dataUpToDate(data: object, schema: number | undefined, steps: readonly Upcaster[]): object {
  return steps
    .slice((schema ?? 1) - 1)
    .reduce((before, step) => step(before as Readonly<Record<string, unknown>>), data);
}
