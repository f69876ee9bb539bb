/** Phone numbers as the service keeps and hashes them. */
// The full metadata: the small one knows little more than lengths, and `/mobile` takes +800 and +979 for mobile.
import { type NumberType, parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** E.164 has 15 digits, the rest is punctuation. */
const MAX_LENGTH = 40;

/** Numbers of no person: Ofcom's for films, which the library lacks, and Twilio's for tests (`+15005550001`). */
const FOR_EXAMPLES = /^\+(?:447700900\d{3}|1500555000\d)$/;

/** Other types can't receive an SMS everywhere. In North America a number does not show whether it is mobile. */
const CAN_RECEIVE_SMS: ReadonlySet<NumberType> = new Set<NumberType>(['MOBILE', 'FIXED_LINE_OR_MOBILE']);

/**
 * The number in E.164 (`+447700900123`), read as a British one where it names no country
 * (docs/decisions.md#phone-numbers). Blanks around it and invisible characters, which contact books add, are left out.
 * @returns `undefined` when the number is not assigned by its plan, or can't receive an SMS
 */
export function normalisePhoneNumber(text: string): string | undefined {
  const visible = text.replace(/\p{Cf}/gu, '').trim();
  if (visible.length > MAX_LENGTH) return undefined;
  const parsed = parsePhoneNumberFromString(visible, { defaultCountry: 'GB', extract: false });
  if (parsed === undefined || parsed.ext !== undefined) return undefined;
  if (FOR_EXAMPLES.test(parsed.number)) return parsed.number;
  return parsed.isValid() && CAN_RECEIVE_SMS.has(parsed.getType()) ? parsed.number : undefined;
}
