/** Where strings that begin alike end: what begins with a prefix is a range of an index. */

/**
 * The first string that is greater than all that begin with `prefix`, as UTF-8 bytes compare; `undefined`: there is
 * none.
 */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) as number;
    // The surrogates are no characters of UTF-8.
    if (point < 0x10ffff) return points.join('') + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1);
  }
  return undefined;
}
