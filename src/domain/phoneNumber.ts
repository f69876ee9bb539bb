// The full metadata: the small set knows little more than lengths, and `/mobile` takes +800 and +979 for mobile.
import { type NumberType, type PhoneNumber, parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { INVISIBLE } from '../lib/invisible.js';

/** E.164 has 15 digits; the rest is punctuation. */
const MAX_LENGTH = 40;

/** Contact books add invisible characters. */
const UNSEEN = new RegExp(`[${INVISIBLE}]`, 'gu');

/** Links and contact cards write numbers so (RFC 3966). */
const TEL = /^tel:/i;

/** The shortest numbers of the world have 7 digits with their country's. */
const E164 = /^\+\d{7,15}$/;

/** Numbers for examples: Ofcom's for drama, which the library lacks, and Twilio's for tests (`+15005550001`). */
const FOR_EXAMPLES = /^\+(?:447700900\d{3}|1500555000\d)$/;

/** Other types can't receive SMS everywhere. North American numbers do not show whether they are mobile. */
const CAN_RECEIVE_SMS: ReadonlySet<NumberType> = new Set<NumberType>(['MOBILE', 'FIXED_LINE_OR_MOBILE']);

/**
 * E.164 (`+447700900123`); a number without a country is British (docs/decisions.md#phone-numbers). For what is new:
 * a number that is only looked up is read by `readPhoneNumber`.
 * @returns `undefined` for an unassigned number, or one that can't receive SMS
 */
export function normalisePhoneNumber(text: string): string | undefined {
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  if (FOR_EXAMPLES.test(parsed.number)) return parsed.number;
  return parsed.isValid() && CAN_RECEIVE_SMS.has(parsed.getType()) ? parsed.number : undefined;
}

/** As `normalisePhoneNumber`, also numbers that are not valid: the log may hold them from when they were. */
export function readPhoneNumber(text: string): string | undefined {
  return parse(text)?.number;
}

function parse(text: string): PhoneNumber | undefined {
  const visible = text.replace(UNSEEN, '').trim().replace(TEL, '');
  if (visible.length > MAX_LENGTH) return undefined;
  const parsed = parsePhoneNumberFromString(visible, { defaultCountry: 'GB', extract: false });
  return parsed !== undefined && parsed.ext === undefined && E164.test(parsed.number) ? parsed : undefined;
}
