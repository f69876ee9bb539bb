/** Names that an object of a JSON text has twice: `JSON.parse` drops all values but the last (RFC 7493 2.3). */

export interface RepeatedName {
  /** For example `products`, or `users[3].name`. */
  readonly place: string;
  /** Offsets in the text: of the repeated name, and of the same name before it. */
  readonly at: number;
  readonly before: number;
}

/** An object or list that is open at this place. */
interface Open {
  /** An object's names so far, with their offsets; a list has none. */
  readonly names: Map<string, number> | undefined;
  /** The name or the index that the text has come to. */
  step: string | number;
  /** The next string is a name. */
  nameNext: boolean;
}

/** The most characters of a name that a place shows. */
const SHOWN = 64;

/** The repeated names (`most` at most) in the order of the text, which must be JSON. */
export function repeatedNames(text: string, most = Number.POSITIVE_INFINITY): RepeatedName[] {
  const found: RepeatedName[] = [];
  const open: Open[] = [];
  for (let at = 0; at < text.length; at++) {
    const inside = open.at(-1);
    switch (text[at]) {
      case '{':
        open.push({ names: new Map(), step: '', nameNext: true });
        break;
      case '[':
        open.push({ names: undefined, step: 0, nameNext: false });
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case ',':
        if (inside?.names !== undefined) inside.nameNext = true;
        else if (typeof inside?.step === 'number') inside.step += 1;
        break;
      case '"': {
        const end = endOfString(text, at);
        if (inside?.names !== undefined && inside.nameNext) {
          inside.nameNext = false;
          inside.step = nameIn(text, at, end);
          const before = inside.names.get(inside.step);
          if (before === undefined) inside.names.set(inside.step, at);
          else if (found.push({ place: placeOf(open), at, before }) >= most) return found;
        }
        at = end;
        break;
      }
      default:
    }
  }
  return found;
}

/** The closing quotation mark of the string at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && backslashesBefore(text, end) % 2 === 1) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function backslashesBefore(text: string, end: number): number {
  let count = 0;
  while (text[end - 1 - count] === '\\') count += 1;
  return count;
}

/** `"\u0069d"` and `"id"` are one name. */
function nameIn(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

function placeOf(open: readonly Open[]): string {
  return open
    .map(({ step }, depth) =>
      typeof step === 'number' ? `[${step}]` : `${depth === 0 ? '' : '.'}${step.slice(0, SHOWN)}`,
    )
    .join('');
}
