/**
 * Usernames and passwords as they are compared, by RFC 8265: one that looks the same is the same, however a keyboard or
 * another system wrote it. Own code, since no kept package has these profiles. Left out: contextual rules (what has one
 * is refused) and the rule of directions.
 */

/** Characters of a full or half width, and the ideographic space: another one of them is meant. */
const OTHER_WIDTH = /[\u3000\uff01-\uffee]/g;
/** Blanks, and what can't be seen, such as the marks of direction that are copied along. */
const AROUND = /^[\s\p{Cf}]+|[\s\p{Cf}]+$/gu;

/**
 * The one spelling of a username (UsernameCaseMapped, RFC 8265 3.3): the usual width, lower case, composed, without
 * blanks around it; `ＡDA ` is `ada`. It is personal as the name itself. Where it holds what no username may, so that it
 * is none, it is a spelling all the same.
 */
export function normaliseUsername(username: string): string {
  const narrow = username.replace(OTHER_WIDTH, (character) => character.normalize('NFKC'));
  return narrow.replace(AROUND, '').replace(/\s+/gu, ' ').toLowerCase().normalize('NFC');
}

/** Letters, marks, digits and ASCII's visible characters (RFC 8264 4.2.1), in parts with one space between. */
const PARTS = /^[\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}!-~]+(?: [\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}!-~]+)*$/u;
/**
 * Letters and marks that are none of an identifier's (RFC 5892 2.6 and 2.9), and those that can't be seen (RFC 8264
 * 9.13).
 */
const NEVER =
  /[\u302e-\u302f\u0640\u07fa\u3031-\u3035\u303b\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\p{Default_Ignorable_Code_Point}]/u;

/**
 * Whether a normalised username is one (RFC 8265 3.1): a character that stands for others, such as `ﬁ` or `²`, would
 * make two names that look the same.
 */
export function isUsername(normalised: string): boolean {
  return PARTS.test(normalised) && !NEVER.test(normalised) && normalised.normalize('NFKC') === normalised;
}

/**
 * A password as it is hashed (OpaqueString, RFC 8265 4.2): every space is ASCII's, and it is composed; nothing else of
 * it is changed. Secret as the password itself.
 */
export function opaqueString(password: string): string {
  return password.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}
