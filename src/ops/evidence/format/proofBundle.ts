/**
 * The file that shows events with their proofs (docs/evidence.md#bundles): one checkpoint, and for each event its shown
 * parts, its index and its inclusion proof.
 */
import { shortened } from '../../../lib/quotedText.js';
import { repeatedNames } from '../../../lib/repeatedNames.js';
import { hashFromBase64, MalformedEvidenceError } from './parsing.js';
import type { ShownData, ShownField, ShownMetadata, ShownParts } from './eventLeaf.js';

export const BUNDLE_FORMAT = 'gift-evidence/v1';

export interface ProvenEvent extends ShownParts {
  /** Index of the event's leaf in the tree. */
  readonly index: number;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** The event's time: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly inclusion: readonly Uint8Array[];
}

export interface ProofBundle {
  /** The checkpoint as a signed note, with the witnesses' cosignatures. */
  readonly checkpoint: string;
  readonly events: readonly ProvenEvent[];
}

/** The bundle as plain JSON, for a file or an HTTP answer. */
export function bundleJson({ checkpoint, events }: ProofBundle): object {
  return {
    format: BUNDLE_FORMAT,
    checkpoint,
    events: events.map(({ inclusion, ...event }) => ({
      ...event,
      inclusion: inclusion.map((hash) => Buffer.from(hash).toString('base64')),
    })),
  };
}

/** Parses a bundle's text; no proof in it is verified. @throws MalformedEvidenceError naming the faulty member */
export function parseBundle(text: string): ProofBundle {
  const bundle = members(parsed(text), 'the file', ['format', 'checkpoint', 'events']);
  if (bundle['format'] !== BUNDLE_FORMAT) throw malformed('format', `"${BUNDLE_FORMAT}"`);
  return {
    checkpoint: textIn(bundle['checkpoint'], 'checkpoint'),
    events: list(bundle['events'], 'events').map((event, at) => eventIn(event, `events[${at}]`)),
  };
}

const HASH = /^[\da-f]{64}$/;
const EVENT = ['index', 'id', 'stream', 'revision', 'type', 'at', 'data', 'metadata', 'inclusion'] as const;

function eventIn(value: unknown, place: string): ProvenEvent {
  const event = members(value, place, EVENT);
  return {
    index: count(event['index'], `${place}.index`),
    id: textIn(event['id'], `${place}.id`),
    stream: textIn(event['stream'], `${place}.stream`),
    revision: count(event['revision'], `${place}.revision`),
    type: textIn(event['type'], `${place}.type`),
    at: textIn(event['at'], `${place}.at`),
    data: dataIn(event['data'], `${place}.data`),
    metadata: metadataIn(event['metadata'], `${place}.metadata`),
    inclusion: list(event['inclusion'], `${place}.inclusion`).map((hash, at) => {
      const where = `${place}.inclusion[${at}]`;
      return hashFromBase64(textIn(hash, where), where);
    }),
  };
}

function dataIn(given: unknown, place: string): ShownData {
  if (isObject(given) && 'hash' in given) return hashIn(given, place);
  const data = members(given, place, ['apart', 'value', 'salt', 'shown']);
  const { value } = data;
  if (!isObject(value)) throw malformed(`${place}.value`, 'an object');
  const apart = list(data['apart'], `${place}.apart`).map((name, at) => textIn(name, `${place}.apart[${at}]`));
  for (const name of once(apart, `${place}.apart`))
    hex(Object.hasOwn(value, name) ? value[name] : undefined, `${place}.value.${name}`, HASH);
  const shown = list(data['shown'], `${place}.shown`).map((field, at) => fieldIn(field, `${place}.shown[${at}]`));
  for (const name of once(
    shown.map((field) => field.name),
    `${place}.shown`,
  ))
    if (!apart.includes(name)) throw malformed(`${place}.shown`, `of fields that stand apart: ${name} does not`);
  return { apart, value, salt: saltIn(data, place), shown };
}

function fieldIn(given: unknown, place: string): ShownField {
  const field = members(given, place, ['name', 'value', 'salt']);
  return { name: textIn(field['name'], `${place}.name`), value: field['value'], salt: saltIn(field, place) };
}

function once(all: readonly string[], place: string): readonly string[] {
  if (new Set(all).size !== all.length) throw malformed(place, 'a list of names that differ');
  return all;
}

function metadataIn(value: unknown, place: string): ShownMetadata {
  if (isObject(value) && 'hash' in value) return hashIn(value, place);
  const metadata = members(value, place, ['value', 'salt']);
  if (!isObject(metadata['value'])) throw malformed(`${place}.value`, 'an object');
  return { value: metadata['value'], salt: saltIn(metadata, place) };
}

const hashIn = (value: Record<string, unknown>, place: string): { readonly hash: string } => ({
  hash: hex(members(value, place, ['hash'])['hash'], `${place}.hash`, HASH),
});

/** The salt of a hash. Its length is checked, since a longer salt could include the beginning of the salted text. */
const saltIn = (value: Record<string, unknown>, place: string): string =>
  hex(value['salt'], `${place}.salt`, /^[\da-f]{32}$/);

function parsed(text: string): unknown {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (cause) {
    throw new MalformedEvidenceError('the file is no JSON', { cause });
  }
  // Parsers differ in which of two values under one name they take (RFC 7493 2.3).
  const [repeated] = repeatedNames(text, 1);
  if (repeated !== undefined) throw new MalformedEvidenceError(`${shortened(repeated.place)} is there twice`);
  return file;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Checks that a value is an object with exactly these members. @throws MalformedEvidenceError */
function members(value: unknown, place: string, names: readonly string[]): Record<string, unknown> {
  if (
    !isObject(value) ||
    Object.keys(value).length !== names.length ||
    !names.every((name) => Object.hasOwn(value, name))
  )
    throw malformed(place, `an object of ${names.join(', ')}`);
  return value;
}

function list(value: unknown, place: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(place, 'a list');
  return value;
}

function textIn(value: unknown, place: string): string {
  if (typeof value !== 'string' || !value.isWellFormed()) throw malformed(place, 'a text');
  return value;
}

function hex(value: unknown, place: string, form: RegExp): string {
  if (typeof value !== 'string' || !form.test(value)) throw malformed(place, 'lower-case hex of its length');
  return value;
}

function count(value: unknown, place: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw malformed(place, 'a whole number');
  return value;
}

const malformed = (place: string, what: string): MalformedEvidenceError =>
  new MalformedEvidenceError(`${place} is not ${what}`);
