/** Stream names are `{kind}-{id}`, such as `gift-0a1b…`. A kind has no dash; an id may have dashes. */

export function kindOf(stream: string): string {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
}

export const idOf = (stream: string): string => stream.slice(stream.indexOf('-') + 1);

/** Kinds of streams whose names end in a keyed hash of 22 characters (`keyedHash.ts`). */
const HASHED: ReadonlySet<string> = new Set(['username', 'phone', 'voucherCode']);
const HASH_LENGTH = 22;

/** Name of a stream in which `mask` replaces the keyed hash, which is secret. */
export const shownStream = (stream: string, mask: string): string =>
  HASHED.has(kindOf(stream)) ? stream.slice(0, -HASH_LENGTH) + mask : stream;
