/** Searches bytes for many texts at once, in many encodings of each. */
import { inJson } from '../quotedText.js';

interface Match {
  /** Index of the text in the list of searched texts. */
  readonly text: number;
  /** Offset of the first matching byte. */
  readonly at: number;
}

export interface ByteSearch {
  /** Length of the longest form, in bytes. */
  readonly longest: number;
  /** The first match of each text. */
  in(bytes: Uint8Array): readonly Match[];
}

/** Least characters of a base64 form, without those that depend on neighbouring bytes; shorter ones match by chance. */
const MIN_BASE64 = 8;
const SHORTEST = 3;

/**
 * Makes a search for many forms of each spelling. Characters are as typed and composed (NFC), in lower and upper case;
 * ASCII letters match in any mixture of cases, except in base64. Encodings are UTF-8 and UTF-16LE, plain, escaped in
 * JSON once and twice, and in URLs, and base64 and base64url. A phone number is also found by its digits.
 * @param texts the spellings of each text, each of at least 3 characters
 */
export function byteSearch(texts: readonly (readonly string[])[]): ByteSearch {
  /** 1 for each two bytes with which a form starts; `forms` has the forms by their first three bytes, in lower case. */
  const starts = new Uint8Array(65_536);
  const forms = new Map<number, (Form & { readonly text: number })[]>();
  let longest = 0;
  for (const [text, spellings] of texts.entries())
    for (const form of formsOf(spellings)) {
      const { bytes } = form;
      const [first = 0, second = 0] = bytes;
      for (const one of bothCases(first)) for (const other of bothCases(second)) starts[(one << 8) | other] = 1;
      const key = keyAt(bytes, 0);
      forms.set(key, [...(forms.get(key) ?? []), { text, ...form }]);
      longest = Math.max(longest, bytes.length);
    }

  return {
    longest,
    in(bytes) {
      const found = new Map<number, number>();
      const end = bytes.length - SHORTEST;
      for (let at = 0; at <= end; at++) {
        if (starts[((bytes[at] as number) << 8) | (bytes[at + 1] as number)] === 0) continue;
        for (const form of forms.get(keyAt(bytes, at)) ?? [])
          if (!found.has(form.text) && isAt(bytes, at, form)) found.set(form.text, at);
      }
      return Array.from(found, ([text, at]) => ({ text, at }));
    },
  };
}

/** One encoded form of a text. `exact`: matched as it is; otherwise it is in lower case and matches both cases. */
interface Form {
  readonly bytes: Buffer;
  readonly exact: boolean;
}

/** The lower-case byte of each byte of ASCII; other bytes map to themselves. */
const SMALL = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte));

const bothCases = (byte: number): number[] => {
  const small = SMALL[byte] as number;
  return small >= 0x61 && small <= 0x7a ? [small, small - 32] : [byte];
};

const keyAt = (bytes: Uint8Array, at: number): number =>
  ((SMALL[bytes[at] as number] as number) << 16) |
  ((SMALL[bytes[at + 1] as number] as number) << 8) |
  (SMALL[bytes[at + 2] as number] as number);

function isAt(bytes: Uint8Array, at: number, { bytes: form, exact }: Form): boolean {
  if (exact) return form.equals(bytes.subarray(at, at + form.length));
  return at + form.length <= bytes.length && form.every((byte, index) => byte === SMALL[bytes[at + index] as number]);
}

function formsOf(spellings: readonly string[]): readonly Form[] {
  const forms = new Map<string, Form>();
  const add = (bytes: Buffer, exact = false): void => {
    const form = exact ? bytes : Buffer.from(bytes.map((byte) => SMALL[byte] as number));
    forms.set(`${exact}${form.toString('latin1')}`, { bytes: form, exact });
  };
  for (const text of new Set(spellings.flatMap(casesOf))) {
    const json = inJson(text);
    for (const form of [text, json, inJson(json), asciiJson(text), encodeURIComponent(text.toWellFormed())]) {
      add(Buffer.from(form, 'utf8'));
      add(Buffer.from(form, 'utf16le'));
    }
    for (const form of base64Of(Buffer.from(text, 'utf8'))) add(Buffer.from(form, 'latin1'), true);
  }
  return [...forms.values()].filter(({ bytes: { length } }) => length >= SHORTEST);
}

/** The spelling in both cases, since beyond ASCII bytes do not map to the other case; of a phone number its digits. */
function casesOf(value: string): string[] {
  const digits = /^\+[\d\s()./-]+$/.test(value) ? [value.replaceAll(/\D/g, '')] : [];
  const composed = value.normalize('NFC');
  return [value, composed, composed.toLowerCase(), composed.toUpperCase(), ...digits];
}

const asciiJson = (text: string): string =>
  inJson(text).replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Base64 forms for each offset modulo 3 in the encoded bytes, without characters that depend on neighbouring bytes. */
function base64Of(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url');
    const from = Math.ceil((before * 8) / 6);
    const core = encoded.slice(from, Math.floor(((before + bytes.length) * 8) / 6));
    return core.length < MIN_BASE64 ? [] : [core, core.replaceAll('-', '+').replaceAll('_', '/')];
  });
}
