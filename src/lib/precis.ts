/**
 * Comparison of usernames and passwords by RFC 8265. Own code: no maintained package has these profiles. Left out:
 * contextual rules (such characters are refused), and directions.
 */
import { trimmed } from './invisible.js';

/** Full-width and half-width characters, and the ideographic space. */
const OTHER_WIDTH = /[\u3000\uff01-\uffee]/g;

/**
 * The username in the profile UsernameCaseMapped (RFC 8265 3.3): usual width, lower case, composed, no outer blanks;
 * `ＡDA ` is `ada`. Personal. Accepts any text.
 */
export function normaliseUsername(username: string): string {
  const narrow = username.replace(OTHER_WIDTH, (character) => character.normalize('NFKC'));
  return trimmed(narrow).replace(/\s+/gu, ' ').toLowerCase().normalize('NFC');
}

/** Letters, marks, digits and ASCII's visible characters (RFC 8264 4.2.1), separated by single spaces. */
const PARTS = /^[\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}!-~]+(?: [\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}!-~]+)*$/u;
/** Letters and marks outside identifiers (RFC 5892 2.6 and 2.9), and invisible characters (RFC 8264 9.13). */
const NEVER =
  /[\u302e-\u302f\u0640\u07fa\u3031-\u3035\u303b\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\p{Default_Ignorable_Code_Point}]/u;

/** Whether a username is valid (RFC 8265 3.1), which also excludes compatibility characters, such as `ﬁ`. */
export function isUsername(normalised: string): boolean {
  return PARTS.test(normalised) && !NEVER.test(normalised) && normalised.normalize('NFKC') === normalised;
}

/** The password in the profile OpaqueString (RFC 8265 4.2): ASCII spaces, composed. Secret. */
export function opaqueString(password: string): string {
  return password.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}
