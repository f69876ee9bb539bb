/** The name of a stream is its kind and an id, `gift-0a1b…`; no kind holds a dash, an id may. */

/** What stands before the first dash. */
export function kindOf(stream: string): string {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
}

/** What stands after the first dash. */
export const idOf = (stream: string): string => stream.slice(stream.indexOf('-') + 1);

/** Kinds of streams whose name ends in a keyed hash, of 22 characters (`keyedHash.ts`). */
const HASHED: ReadonlySet<string> = new Set(['username', 'phone', 'voucherCode']);
const HASH_LENGTH = 22;

/** A stream's name as it is shown, with `mask` in place of a keyed hash, which is secret. */
export const shownStream = (stream: string, mask: string): string =>
  HASHED.has(kindOf(stream)) ? stream.slice(0, -HASH_LENGTH) + mask : stream;
