/** A caller's own words, as messages repeat them. */

/**
 * Bounded, so that an error never grows with the request: `most` UTF-16 code units, default 64. Never cut between the
 * halves of one character.
 */
export function shortened(text: string, most = 64): string {
  return text.length <= most ? text : `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** What is not printable ASCII becomes `?`. */
export function inAscii(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?');
}
