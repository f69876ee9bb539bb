/**
 * Usernames and passwords as they are compared, by RFC 8265: what looks the same is the same. Own code, since no
 * maintained package has these profiles. Left out: contextual rules (such characters are refused), and directions.
 */

/** Characters of full or half width, and the ideographic space. */
const OTHER_WIDTH = /[\u3000\uff01-\uffee]/g;
/** Blanks and invisible characters, such as marks of direction. */
const AROUND = /^[\s\p{Cf}]+|[\s\p{Cf}]+$/gu;

/**
 * The one spelling of a username (UsernameCaseMapped, RFC 8265 3.3): usual width, lower case, composed, without blanks
 * around it; `ＡDA ` is `ada`. Personal. Also of a text that is no username.
 */
export function normaliseUsername(username: string): string {
  const narrow = username.replace(OTHER_WIDTH, (character) => character.normalize('NFKC'));
  return narrow.replace(AROUND, '').replace(/\s+/gu, ' ').toLowerCase().normalize('NFC');
}

/** Letters, marks, digits and ASCII's visible characters (RFC 8264 4.2.1), in parts with one space between. */
const PARTS = /^[\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}!-~]+(?: [\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}!-~]+)*$/u;
/** Letters and marks outside of identifiers (RFC 5892 2.6 and 2.9), and invisible ones (RFC 8264 9.13). */
const NEVER =
  /[\u302e-\u302f\u0640\u07fa\u3031-\u3035\u303b\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\p{Default_Ignorable_Code_Point}]/u;

/** Whether a normalised username is one (RFC 8265 3.1): without characters that stand for others, such as `ﬁ`. */
export function isUsername(normalised: string): boolean {
  return PARTS.test(normalised) && !NEVER.test(normalised) && normalised.normalize('NFKC') === normalised;
}

/** A password as it is hashed (OpaqueString, RFC 8265 4.2): with ASCII spaces, composed. Secret. */
export function opaqueString(password: string): string {
  return password.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}
