/** Finds unpaired surrogates, which strict parsers refuse (I-JSON, RFC 7493 2.1), and names deceiving characters. */
import { unescape } from 'node:querystring';

/**
 * Characters, for a class in a pattern, that make a text look different from its content, or control a terminal. These
 * are control characters except tab and line ends, and embeddings, overrides and isolates of direction (UAX 9).
 * Direction marks are not among them, since Arabic and Hebrew texts use them.
 */
export const DECEIVING = String.raw`\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069`;

/** Message about an unpaired surrogate, which follows the name of a field. */
export const HALF_A_CHARACTER = 'must not have half of a character (an unpaired surrogate)';

/**
 * The path of the first string or name with an unpaired surrogate in parsed JSON: `.purchase.receivers[3].name`, or
 * `''` for the value itself. In a name the surrogate becomes U+FFFD.
 */
export function malformedPath(value: unknown): string | undefined {
  // A list instead of recursion: a body may be nested as deep as it is long.
  const left: { readonly value: unknown; readonly path: string }[] = [{ value, path: '' }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: one, path } = next;
    if (typeof one === 'string' && !one.isWellFormed()) return path;
    if (typeof one !== 'object' || one === null) continue;
    if (Array.isArray(one)) {
      for (let at = one.length - 1; at >= 0; at--)
        if (mayHoldText(one[at])) left.push({ value: one[at], path: `${path}[${at}]` });
      continue;
    }
    const entries = Object.entries(one);
    for (const [name] of entries) if (!name.isWellFormed()) return `${path}.${name.toWellFormed()}`;
    for (const [name, inner] of entries.reverse())
      if (mayHoldText(inner)) left.push({ value: inner, path: `${path}.${name}` });
  }
  return undefined;
}

const mayHoldText = (value: unknown): boolean =>
  typeof value === 'string' ? !value.isWellFormed() : typeof value === 'object' && value !== null;

/** The percent-encoded bytes of a surrogate, which no valid UTF-8 contains. */
const ENCODED_SURROGATE = /%ed%[ab][\da-f]/i;

/** The decoded name of the first parameter with an encoded surrogate. @param text a query or form, without `?` */
export function malformedParameter(text: string): string | undefined {
  if (!ENCODED_SURROGATE.test(text)) return undefined;
  const [name = ''] =
    text
      .split('&')
      .find((pair) => ENCODED_SURROGATE.test(pair))
      ?.split('=') ?? [];
  return unescape(name.replaceAll('+', ' '));
}
