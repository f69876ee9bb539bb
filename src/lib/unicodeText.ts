/**
 * Whether strings from outside are Unicode text. One with half of a character stops every strict parser that meets it
 * later (I-JSON, RFC 7493 2.1).
 */
import { unescape } from 'node:querystring';

/** What is said of a string with an unpaired surrogate, after the name of its field. */
export const HALF_A_CHARACTER = 'must not have half of a character (an unpaired surrogate)';

/**
 * The place of the first string with an unpaired surrogate, in a value as `JSON.parse` makes it: of names as well as of
 * values. For example `.purchase.receivers[3].name`; empty for the value itself. It is text: of a name the half becomes
 * U+FFFD. `undefined`: all strings are text.
 */
export function malformedPlace(value: unknown): string | undefined {
  // A list of what is still to be looked at, not a call for each level: a body may be nested as deep as it is long.
  const left: { readonly value: unknown; readonly place: string }[] = [{ value, place: '' }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: one, place } = next;
    if (typeof one === 'string' && !one.isWellFormed()) return place;
    if (typeof one !== 'object' || one === null) continue;
    if (Array.isArray(one)) {
      for (let at = one.length - 1; at >= 0; at--)
        if (mayHoldText(one[at])) left.push({ value: one[at], place: `${place}[${at}]` });
      continue;
    }
    const entries = Object.entries(one);
    for (const [name] of entries) if (!name.isWellFormed()) return `${place}.${name.toWellFormed()}`;
    for (const [name, inner] of entries.reverse())
      if (mayHoldText(inner)) left.push({ value: inner, place: `${place}.${name}` });
  }
  return undefined;
}

const mayHoldText = (value: unknown): boolean =>
  typeof value === 'string' ? !value.isWellFormed() : typeof value === 'object' && value !== null;

/** What would be the bytes of a surrogate: UTF-8 has none, so that none of its sequences looks so. */
const ENCODED_SURROGATE = /%ed%[ab][\da-f]/i;

/**
 * The first parameter of a query, or of a form, whose name or value has a percent-encoded surrogate; its name as text.
 * `undefined`: none has.
 * @param text as it came, without `?`
 */
export function malformedParameter(text: string): string | undefined {
  if (!ENCODED_SURROGATE.test(text)) return undefined;
  const [name = ''] =
    text
      .split('&')
      .find((pair) => ENCODED_SURROGATE.test(pair))
      ?.split('=') ?? [];
  return unescape(name.replaceAll('+', ' '));
}
