/**
 * Plain JSON: a text that `JSON.parse` and `JSON.stringify` leave unchanged, so that it may be hashed without parsing.
 * Nearly all stored texts are plain, and this check takes a fraction of the time of parsing and writing them again. It
 * may miss a plain text, never the reverse: a text that it does not accept is to be parsed.
 */

/** A member of an object, by offsets in the object's text. */
interface PlainMember {
  readonly name: string;
  /** Offset of the first quotation mark of the name. */
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

/**
 * Characters that no plain text has. Escapes have several forms; control characters and unpaired surrogates are written
 * as escapes.
 */
const NEVER_PLAIN = /[^ -[\]-\ud7ff\ue000-\uffff]/;
/** Most digits of a number in a plain text. Greater numbers, fractions and exponents have several forms. */
const MAX_DIGITS = 15;
const MAX_DEPTH = 16;

const [QUOTE, COMMA, MINUS, ZERO, NINE, COLON] = [0x22, 0x2c, 0x2d, 0x30, 0x39, 0x3a];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The members of these names, in the text's order; `undefined`: the text is not an object, or not known to be plain.
 */
export function plainMembers(text: string, names: ReadonlySet<string>): readonly PlainMember[] | undefined {
  const found: PlainMember[] = [];
  return isPlain(text, (name, start, valueStart, end) => {
    if (names.has(name)) found.push({ name, start, valueStart, end });
  })
    ? found
    : undefined;
}

type OnMember = (name: string, start: number, valueStart: number, end: number) => void;

/**
 * Whether the text is an object that is known to be plain.
 * @param onMember is called with each member of the object, up to the first part that is not plain
 */
export function isPlain(text: string, onMember?: OnMember): boolean {
  return (
    text.charCodeAt(0) === OBJECT && !NEVER_PLAIN.test(text) && objectEnd(text, 0, 0, [], onMember) === text.length
  );
}

/**
 * The offset after the value that starts at `start`; -1: the value is not plain.
 * @param names offsets of the names, start and end, in the objects around the value
 */
function valueEnd(text: string, start: number, depth: number, names: number[]): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return text.indexOf('"', start + 1) + 1 || -1;
  if (first === MINUS || isDigit(first)) return numberEnd(text, start);
  if (first === OBJECT && depth < MAX_DEPTH) return objectEnd(text, start, depth, names);
  if (first === LIST && depth < MAX_DEPTH) return listEnd(text, start, depth, names);
  for (const word of ['true', 'false', 'null']) if (text.startsWith(word, start)) return start + word.length;
  return -1;
}

function objectEnd(text: string, start: number, depth: number, names: number[], onMember?: OnMember): number {
  let at = start + 1;
  if (text.charCodeAt(at) === OBJECT_END) return at + 1;
  const outer = names.length;
  for (;;) {
    const nameEnd = text.charCodeAt(at) === QUOTE ? text.indexOf('"', at + 1) : -1;
    // JavaScript puts members with numbers as names first, and of two members of one name the last one counts.
    if (nameEnd === -1 || isDigit(text.charCodeAt(at + 1)) || isRepeated(text, at, nameEnd, names, outer)) return -1;
    names.push(at, nameEnd);
    const end = text.charCodeAt(nameEnd + 1) === COLON ? valueEnd(text, nameEnd + 2, depth + 1, names) : -1;
    if (end === -1) return -1;
    onMember?.(text.slice(at + 1, nameEnd), at, nameEnd + 2, end);
    const next = text.charCodeAt(end);
    if (next === OBJECT_END) {
      names.length = outer;
      return end + 1;
    }
    if (next !== COMMA) return -1;
    at = end + 1;
  }
}

/** Whether an earlier member of the object has this name. Compares within the text, so that no string is allocated. */
function isRepeated(text: string, start: number, end: number, names: readonly number[], outer: number): boolean {
  for (let n = outer; n < names.length; n += 2) {
    const other = names[n] as number;
    if ((names[n + 1] as number) - other !== end - start) continue;
    let same = 1;
    while (start + same < end && text.charCodeAt(start + same) === text.charCodeAt(other + same)) same += 1;
    if (start + same === end) return true;
  }
  return false;
}

function listEnd(text: string, start: number, depth: number, names: number[]): number {
  let at = start + 1;
  if (text.charCodeAt(at) === LIST_END) return at + 1;
  for (;;) {
    const end = valueEnd(text, at, depth + 1, names);
    if (end === -1) return -1;
    const next = text.charCodeAt(end);
    if (next === LIST_END) return end + 1;
    if (next !== COMMA) return -1;
    at = end + 1;
  }
}

function numberEnd(text: string, start: number): number {
  const digits = text.charCodeAt(start) === MINUS ? start + 1 : start;
  let at = digits;
  while (isDigit(text.charCodeAt(at))) at += 1;
  if (at === digits || at - digits > MAX_DIGITS) return -1;
  // Zero has one form, and no sign.
  return text.charCodeAt(digits) === ZERO && at - start > 1 ? -1 : at;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
