/** Looks for many texts at once in bytes, however they were encoded. */
import { inJson } from '../quotedText.js';

export interface Match {
  /** Index of the text. */
  readonly text: number;
  /** Of the first byte. */
  readonly at: number;
}

export interface ByteSearch {
  /** Bytes of the longest form. */
  readonly longest: number;
  /** The first match of each text. */
  in(bytes: Uint8Array): readonly Match[];
}

/** Characters of base64 that are the same wherever a text stands in what was encoded; fewer are found by chance. */
const MIN_BASE64 = 8;
const SHORTEST = 3;

/**
 * Forms of each text: UTF-8 and UTF-16LE, as typed and composed (NFC); escaped in JSON, once and twice, and in URLs;
 * base64 and base64url; of a phone number also its digits alone.
 * @param texts of at least 3 characters
 */
export function byteSearch(texts: readonly string[]): ByteSearch {
  /** Whether a form starts with these two bytes, and the forms by their first three. */
  const starts = new Uint8Array(65_536);
  const forms = new Map<number, { readonly text: number; readonly bytes: Buffer }[]>();
  let longest = 0;
  for (const [text, value] of texts.entries())
    for (const bytes of formsOf(value)) {
      const key = keyAt(bytes, 0);
      starts[key >> 8] = 1;
      forms.set(key, [...(forms.get(key) ?? []), { text, bytes }]);
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
          if (!found.has(form.text) && form.bytes.equals(bytes.subarray(at, at + form.bytes.length)))
            found.set(form.text, at);
      }
      return Array.from(found, ([text, at]) => ({ text, at }));
    },
  };
}

const keyAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);

function formsOf(value: string): readonly Buffer[] {
  const digits = /^\+[\d\s()./-]+$/.test(value) ? value.replaceAll(/\D/g, '') : value;
  const forms = new Map<string, Buffer>();
  const add = (bytes: Buffer): void => void forms.set(bytes.toString('latin1'), bytes);
  for (const text of new Set([value, value.normalize('NFC'), digits])) {
    const json = inJson(text);
    for (const form of [text, json, inJson(json), asciiJson(text), encodeURIComponent(text.toWellFormed())]) {
      add(Buffer.from(form, 'utf8'));
      add(Buffer.from(form, 'utf16le'));
    }
    for (const form of base64Of(Buffer.from(text, 'utf8'))) add(Buffer.from(form, 'latin1'));
  }
  return [...forms.values()].filter(({ length }) => length >= SHORTEST);
}

const asciiJson = (text: string): string =>
  inJson(text).replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** By its place modulo 3 in what was encoded; without the characters that depend on its neighbours. */
function base64Of(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url');
    const from = Math.ceil((before * 8) / 6);
    const core = encoded.slice(from, Math.floor(((before + bytes.length) * 8) / 6));
    return core.length < MIN_BASE64 ? [] : [core, core.replaceAll('-', '+').replaceAll('_', '/')];
  });
}
