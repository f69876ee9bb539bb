/** At most `most` UTF-16 code units of the text, without splitting a surrogate pair. */
export function shortened(text: string, most = 64): string {
  return text.length <= most ? text : `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** The text with JSON's escapes, without the quotes. */
export function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

export function inAscii(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?');
}
