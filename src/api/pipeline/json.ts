/** JSON answers: small ones at once, long lists in slices, so that no answer holds up the others. */
import { Readable } from 'node:stream';
import { slices } from '../../lib/async/slices.js';

/** Lists longer than this are written in slices; items of lists inside count, too. */
const LONG_LIST = 250;
const ITEMS_A_PIECE = 50;
/** How deep lists are looked for. */
const DEPTH = 3;

/** The value as JSON text, or as a stream where a list in it (at most three levels deep) is long. */
export function jsonBody(value: object): string | Readable {
  if (!hasLongList(value)) return JSON.stringify(value);
  return Readable.from(paced(pieces(value)), { objectMode: false, highWaterMark: 262_144 });
}

/** Whether `jsonBody` writes this value as a stream. */
export function hasLongList(value: unknown): boolean {
  return itemsOf(value, DEPTH) > LONG_LIST;
}

/** The items of a value's longest list, with those inside; counting stops once it is long. */
function itemsOf(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null || depth < 0) return 0;
  if (Array.isArray(value)) {
    if (value.length > LONG_LIST) return value.length;
    // Texts cost little: a short list of ids makes no list around it longer.
    if (typeof value[0] !== 'object') return 0;
    let items = value.length;
    for (const one of value as unknown[]) if ((items += itemsOf(one, depth - 1)) > LONG_LIST) return items;
    return items;
  }
  let items = 0;
  // Every answer passes here: its many texts must not cost a call.
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
