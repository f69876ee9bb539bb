/** Phone numbers as the service keeps and hashes them. */
import { parsePhoneNumberFromString } from 'libphonenumber-js';

/** The longest text worth parsing: E.164 has 15 digits, the rest is punctuation. */
const MAX_LENGTH = 40;

/** Ofcom keeps these for films and examples: nobody ever has one, so example data can't reach anybody. The library's plan lacks them. */
const FOR_EXAMPLES = /^\+447700900\d{3}$/;

/** The number in E.164 (`+447700900123`), read as a British one where it names no country (decisions 3); `undefined` when it isn't valid. */
export function normalisePhoneNumber(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const parsed = parsePhoneNumberFromString(text, { defaultCountry: 'GB', extract: false });
  if (parsed === undefined || parsed.ext !== undefined) return undefined;
  return parsed.isValid() || FOR_EXAMPLES.test(parsed.number) ? parsed.number : undefined;
}
