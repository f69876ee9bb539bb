/** Fields of documents that a verification masks in its report. */
import { FIELD_CLASSES, type FieldClasses } from '../domain/fieldClasses.js';

/** Hidden fields of documents that no event has. */
const OTHERS = ['pin', 'hash', 'held'];

/** All hidden fields; documents use the field names of events. */
export const HIDDEN_FIELDS: ReadonlySet<string> = new Set([
  ...OTHERS,
  ...Object.values(FIELD_CLASSES as Readonly<Record<string, FieldClasses>>).flatMap(({ secret, personal }) =>
    [...secret, ...personal].map((path) => path.replaceAll('[]', '').split('.').at(-1) ?? path),
  ),
]);
