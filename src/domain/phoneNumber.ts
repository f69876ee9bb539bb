// The full metadata is needed: the small set knows little more than lengths, and `/mobile` mistakes +800 and +979 for
// mobile numbers.
import { type NumberType, type PhoneNumber, parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { INVISIBLE } from '../lib/invisible.js';

/** Maximum length in characters of a text that is read: E.164 has 15 digits, and the rest is punctuation. */
const MAX_LENGTH = 40;

/** Invisible characters, which contact books add. */
const UNSEEN = new RegExp(`[${INVISIBLE}]`, 'gu');

/** Prefix with which links and contact cards write numbers (RFC 3966). */
const TEL = /^tel:/i;

/** The shortest numbers in the world have 7 digits, including those of the country code. */
const E164 = /^\+\d{7,15}$/;

/** Numbers for examples: Ofcom's for drama, which the library lacks, and Twilio's for tests (`+15005550001`). */
const FOR_EXAMPLES = /^\+(?:447700900\d{3}|1500555000\d)$/;

/** Types of numbers that can receive SMS everywhere. North American numbers do not show whether they are mobile. */
const CAN_RECEIVE_SMS: ReadonlySet<NumberType> = new Set<NumberType>(['MOBILE', 'FIXED_LINE_OR_MOBILE']);

/**
 * The number in E.164 (`+447700900123`); a number without a country is British (docs/api/purchases.md#phone-numbers).
 * This is for new numbers: a number that is only looked up is read by `readPhoneNumber`.
 * @returns `undefined` for an unassigned number, or one that can't receive SMS
 */
export function normalisePhoneNumber(text: string): string | undefined {
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  if (FOR_EXAMPLES.test(parsed.number)) return parsed.number;
  // An invalid number has no type.
  return CAN_RECEIVE_SMS.has(parsed.getType()) ? parsed.number : undefined;
}

/** As `normalisePhoneNumber`, but also for numbers that are no longer valid, since the log may hold them. */
export function readPhoneNumber(text: string): string | undefined {
  return parse(text)?.number;
}

function parse(text: string): PhoneNumber | undefined {
  const visible = text.replace(UNSEEN, '').trim().replace(TEL, '');
  if (visible.length > MAX_LENGTH) return undefined;
  const parsed = parsePhoneNumberFromString(visible, { defaultCountry: 'GB', extract: false });
  return parsed !== undefined && parsed.ext === undefined && E164.test(parsed.number) ? parsed : undefined;
}
