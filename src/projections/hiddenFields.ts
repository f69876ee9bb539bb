/** Fields of documents that a verification masks in its report. */
import { FIELD_CLASSES, type FieldClasses } from '../domain/fieldClasses.js';

/** Those that no event names. */
const OTHERS = ['pin', 'hash'];

/** The last names of all secret and personal fields of events: documents keep these names. */
export const HIDDEN_FIELDS: ReadonlySet<string> = new Set([
  ...OTHERS,
  ...Object.values(FIELD_CLASSES as Readonly<Record<string, FieldClasses>>).flatMap(({ secret, personal }) =>
    [...secret, ...personal].map((path) => path.replaceAll('[]', '').split('.').at(-1) ?? path),
  ),
]);
