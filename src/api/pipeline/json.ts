/** JSON of answers: small answers are written at once, long lists in slices, so that no answer blocks the others. */
import { Readable } from 'node:stream';
import { slices } from '../../lib/async/slices.js';

/** Items above which a list is long; items of nested lists count, too. */
const LONG_LIST = 250;
const ITEMS_A_PIECE = 50;
const DEPTH = 3;

/** JSON text of a value; a stream where the value has a long list. */
export function jsonBody(value: object): string | Readable {
  if (!hasLongList(value)) return JSON.stringify(value);
  return Readable.from(paced(pieces(value)), { objectMode: false, highWaterMark: 262_144 });
}

export function hasLongList(value: unknown): boolean {
  return itemsOf(value, DEPTH) > LONG_LIST;
}

/** Number of items in a value's lists; counting stops at a long list. */
function itemsOf(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null || depth < 0) return 0;
  if (Array.isArray(value)) {
    if (value.length > LONG_LIST) return value.length;
    // Texts are cheap: a short list of ids makes no outer list long.
    if (typeof value[0] !== 'object') return 0;
    let items = value.length;
    for (const one of value as unknown[]) if ((items += itemsOf(one, depth - 1)) > LONG_LIST) return items;
    return items;
  }
  let items = 0;
  // `for in` for speed: every answer passes here.
  for (const key in value) {
    const one = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof one === 'object' && (items = Math.max(items, itemsOf(one, depth - 1))) > LONG_LIST) return items;
  }
  return items;
}

function* pieces(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    let separator = '[';
    for (let at = 0; at < value.length; at += ITEMS_A_PIECE) {
      const some: unknown[] = value.slice(at, at + ITEMS_A_PIECE);
      if (!hasLongList(some)) {
        yield separator + JSON.stringify(some).slice(1, -1);
        separator = ',';
        continue;
      }
      for (const one of some) {
        yield separator;
        yield* pieces(one ?? null);
        separator = ',';
      }
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
