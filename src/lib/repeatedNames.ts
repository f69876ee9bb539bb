/** Names that a JSON object has twice: `JSON.parse` silently drops all values but the last (RFC 7493 2.3). */

interface RepeatedName {
  /** Path of the member, for example `users[3].name`. */
  readonly path: string;
  /** Offset of the repeated name in the text; `before` is that of its previous occurrence. */
  readonly at: number;
  readonly before: number;
}

interface Open {
  /** An object's names so far, with their offsets; `undefined`: a list. */
  readonly names: Map<string, number> | undefined;
  /** Name or index of the current member. */
  step: string | number;
  expectsName: boolean;
}

/** Characters of a name that a path shows at most. */
const SHOWN = 64;

/** The first `most` repeated names, in the order of the text, which must be JSON. */
export function repeatedNames(text: string, most = Number.POSITIVE_INFINITY): RepeatedName[] {
  const found: RepeatedName[] = [];
  const open: Open[] = [];
  for (let at = 0; at < text.length; at++) {
    const inside = open.at(-1);
    switch (text[at]) {
      case '{':
        open.push({ names: new Map(), step: '', expectsName: true });
        break;
      case '[':
        open.push({ names: undefined, step: 0, expectsName: false });
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case ',':
        if (inside?.names !== undefined) inside.expectsName = true;
        else if (typeof inside?.step === 'number') inside.step += 1;
        break;
      case '"': {
        const end = endOfString(text, at);
        if (inside?.names !== undefined && inside.expectsName) {
          inside.expectsName = false;
          inside.step = nameIn(text, at, end);
          const before = inside.names.get(inside.step);
          if (before === undefined) inside.names.set(inside.step, at);
          else if (found.push({ path: pathOf(open), at, before }) >= most) return found;
        }
        at = end;
        break;
      }
      default:
    }
  }
  return found;
}

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

/** A name without escapes: `"\u0069d"` and `"id"` are the same name. */
function nameIn(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

function pathOf(open: readonly Open[]): string {
  return open
    .map(({ step }, depth) =>
      typeof step === 'number' ? `[${step}]` : `${depth === 0 ? '' : '.'}${step.slice(0, SHOWN)}`,
    )
    .join('');
}
