/** Phone numbers as the service keeps and hashes them. */
// The full metadata: the small one knows little more than lengths. `/mobile` has none of it for the codes of no
// country, and takes +800 and +979 for mobile.
import { type NumberType, parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** The longest text worth parsing: E.164 has 15 digits, the rest is punctuation. */
const MAX_LENGTH = 40;

/**
 * Numbers of no person: Ofcom's for films and examples, which the library's plan lacks, and Twilio's for tests
 * (`+15005550001`), which the simulated provider follows. So example data can reach no one.
 */
const FOR_EXAMPLES = /^\+(?:447700900\d{3}|1500555000\d)$/;

/**
 * Numbers of other types can't receive an SMS, or not everywhere: landlines, pagers, internet telephony, personal and
 * company numbers. To freephone and premium-rate ones it would cost more than it tells. In North America and a few
 * other plans a number does not show whether it is a mobile one.
 */
const CAN_RECEIVE_SMS: ReadonlySet<NumberType> = new Set<NumberType>(['MOBILE', 'FIXED_LINE_OR_MOBILE']);

/**
 * The number in E.164 (`+447700900123`), read as a British one where it names no country (decisions 3). Blanks around
 * it are left out, and so is what can't be seen, wherever it stands: contact books copy a number between U+202A and
 * U+202C.
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
