/** Writes answers as JSON: small ones at once, long lists in slices, so that one large answer never holds up the others. */
import { Readable } from 'node:stream';
import { slices } from '../slices.js';

/** Lists longer than this are written in slices. */
const LONG_LIST = 250;
const ITEMS_A_PIECE = 50;

/** The value as JSON text, or as a stream of it where a list in it (at most three levels down) is long. */
export function jsonBody(value: object): string | Readable {
  if (!hasLongList(value, 3)) return JSON.stringify(value);
  return Readable.from(paced(pieces(value)), { objectMode: false, highWaterMark: 262_144 });
}

/** Whether `jsonBody` writes this value as a stream. */
export function hasLongList(value: unknown, depth = 3): boolean {
  if (typeof value !== 'object' || value === null || depth < 0) return false;
  if (Array.isArray(value)) return value.length > LONG_LIST;
  // Every answer goes through here, and most of its fields are texts: they cost no call.
  for (const key in value) {
    const one = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof one === 'object' && hasLongList(one, depth - 1)) return true;
  }
  return false;
}

function* pieces(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += ITEMS_A_PIECE) {
      const piece = JSON.stringify(value.slice(at, at + ITEMS_A_PIECE));
      yield (at === 0 ? '[' : ',') + piece.slice(1, -1);
    }
    yield value.length === 0 ? '[]' : ']';
  } else if (hasLongList(value)) {
    let separator = '{';
    for (const [key, one] of Object.entries(value as object)) {
      if (one === undefined) continue;
      yield `${separator}${JSON.stringify(key)}:`;
      yield* pieces(one);
      separator = ',';
    }
    yield '}';
  } else {
    yield JSON.stringify(value);
  }
}

async function* paced(texts: Iterable<string>): AsyncGenerator<string> {
  const time = slices();
  for (const text of texts) {
    yield text;
    if (time.due()) await time.rest();
  }
}
