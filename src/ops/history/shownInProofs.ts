/** What a proof shows of an event, and to whom (docs/evidence.md#bundles). */
import { FIELD_CLASSES, type FieldClasses } from '../../domain/fieldClasses.js';
import { isOfLaterVersion } from '../../domain/upcasters.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { giftsIn, type NamesGifts } from './redactOtherGifts.js';
import { type LeafRules, showEvent, type ShownParts } from '../evidence/index.js';

/**
 * Parts of an event for auditors: neither secret nor personal fields, nor metadata with encrypted fields. Events of an
 * unknown type, or of a later release's version, have no data. A refund of these and other gifts does not tell which
 * gifts: a gift's id is enough to use it.
 * @throws MalformedEvidenceError for an event that no release of this service can have written
 */
export function shownToAuditors(event: RecordedEvent, rules: LeafRules, giftIds: ReadonlySet<string>): ShownParts {
  const kept = keptFields(event);
  const namesOthers = giftsIn(event.data).some((id) => !giftIds.has(id));
  return showEvent(event, rules, {
    field: (name) => kept?.has(name) === false && !(namesOthers && OF_GIFTS.has(name)),
    metadata: event.metadata.personal === undefined,
  });
}

const OF_GIFTS: ReadonlySet<string> = new Set(['gift_ids', 'kept'] satisfies (keyof NamesGifts)[]);

/** Fields that tell who gave and got a gift, which no merchant needs. */
const FOREIGN: ReadonlySet<string> = new Set(['sender_id', 'receiver']);

/**
 * Parts of an event for merchants: those for auditors, without metadata, and without who gave and got the gift.
 * @throws as `shownToAuditors`
 */
export function shownToMerchants(event: RecordedEvent, rules: LeafRules): ShownParts {
  const kept = keptFields(event);
  return showEvent(event, rules, {
    field: (name) => kept?.has(name) === false && !FOREIGN.has(name),
    metadata: false,
  });
}

/** Names of the fields that a proof hides; `undefined` where it hides all. */
function keptFields({ type, data, metadata }: RecordedEvent): ReadonlySet<string> | undefined {
  const classes = Object.hasOwn(FIELD_CLASSES, type)
    ? (FIELD_CLASSES as Readonly<Record<string, FieldClasses>>)[type]
    : undefined;
  if (classes === undefined || isOfLaterVersion(type, metadata.schema)) return undefined;
  return new Set([...classes.secret, ...classes.personal].flatMap((path) => fieldWith(data, path)));
}

/**
 * The top-level field in which the path leads to a value; empty where it leads to none. A field is shown whole or not
 * at all.
 */
function fieldWith(data: object, path: string): string[] {
  const [field = '', ...steps] = path.replaceAll('[]', '.[]').split('.');
  return leadsSomewhere((data as Readonly<Record<string, unknown>>)[field], steps) ? [field] : [];
}

function leadsSomewhere(value: unknown, [step, ...steps]: readonly string[]): boolean {
  if (value === undefined) return false;
  if (step === undefined) return true;
  if (step === '[]') return Array.isArray(value) && value.some((one) => leadsSomewhere(one, steps));
  return typeof value === 'object' && value !== null && leadsSomewhere((value as Record<string, unknown>)[step], steps);
}
