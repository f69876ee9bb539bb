/**
 * The file that shows events with their proofs (docs/evidence.md#bundles): one checkpoint, and for each event its shown
 * parts, its index and its inclusion proof.
 */
import { shortened } from '../../../lib/quotedText.js';
import { repeatedNames } from '../../../lib/repeatedNames.js';
import { isObject } from '../../../lib/isObject.js';
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

function eventIn(value: unknown, path: string): ProvenEvent {
  const event = members(value, path, EVENT);
  return {
    index: count(event['index'], `${path}.index`),
    id: textIn(event['id'], `${path}.id`),
    stream: textIn(event['stream'], `${path}.stream`),
    revision: count(event['revision'], `${path}.revision`),
    type: textIn(event['type'], `${path}.type`),
    at: textIn(event['at'], `${path}.at`),
    data: dataIn(event['data'], `${path}.data`),
    metadata: metadataIn(event['metadata'], `${path}.metadata`),
    inclusion: list(event['inclusion'], `${path}.inclusion`).map((hash, at) => {
      const where = `${path}.inclusion[${at}]`;
      return hashFromBase64(textIn(hash, where), where);
    }),
  };
}

function dataIn(given: unknown, path: string): ShownData {
  if (isObject(given) && 'hash' in given) return hashIn(given, path);
  const data = members(given, path, ['apart', 'value', 'salt', 'shown']);
  const { value } = data;
  if (!isObject(value)) throw malformed(`${path}.value`, 'an object');
  const apart = list(data['apart'], `${path}.apart`).map((name, at) => textIn(name, `${path}.apart[${at}]`));
  for (const name of once(apart, `${path}.apart`))
    hex(Object.hasOwn(value, name) ? value[name] : undefined, `${path}.value.${name}`, HASH);
  const shown = list(data['shown'], `${path}.shown`).map((field, at) => fieldIn(field, `${path}.shown[${at}]`));
  for (const name of once(
    shown.map((field) => field.name),
    `${path}.shown`,
  ))
    if (!apart.includes(name)) throw malformed(`${path}.shown`, `of fields that stand apart: ${name} does not`);
  return { apart, value, salt: saltIn(data, path), shown };
}

function fieldIn(given: unknown, path: string): ShownField {
  const field = members(given, path, ['name', 'value', 'salt']);
  return { name: textIn(field['name'], `${path}.name`), value: field['value'], salt: saltIn(field, path) };
}

function once(all: readonly string[], path: string): readonly string[] {
  if (new Set(all).size !== all.length) throw malformed(path, 'a list of names that differ');
  return all;
}

function metadataIn(value: unknown, path: string): ShownMetadata {
  if (isObject(value) && 'hash' in value) return hashIn(value, path);
  const metadata = members(value, path, ['value', 'salt']);
  if (!isObject(metadata['value'])) throw malformed(`${path}.value`, 'an object');
  return { value: metadata['value'], salt: saltIn(metadata, path) };
}

const hashIn = (value: Readonly<Record<string, unknown>>, path: string): { readonly hash: string } => ({
  hash: hex(members(value, path, ['hash'])['hash'], `${path}.hash`, HASH),
});

/** The salt of a hash. Its length is checked, since a longer salt could include the beginning of the salted text. */
const saltIn = (value: Readonly<Record<string, unknown>>, path: string): string =>
  hex(value['salt'], `${path}.salt`, /^[\da-f]{32}$/);

function parsed(text: string): unknown {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (cause) {
    throw new MalformedEvidenceError('the file is no JSON', { cause });
  }
  // Parsers differ in which of two values under one name they take (RFC 7493 2.3).
  const [repeated] = repeatedNames(text, 1);
  if (repeated !== undefined) throw new MalformedEvidenceError(`${shortened(repeated.path)} is there twice`);
  return file;
}

/** Checks that a value is an object with exactly these members. @throws MalformedEvidenceError */
function members(value: unknown, path: string, names: readonly string[]): Readonly<Record<string, unknown>> {
  if (
    !isObject(value) ||
    Object.keys(value).length !== names.length ||
    !names.every((name) => Object.hasOwn(value, name))
  )
    throw malformed(path, `an object of ${names.join(', ')}`);
  return value;
}

function list(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(path, 'a list');
  return value;
}

function textIn(value: unknown, path: string): string {
  if (typeof value !== 'string' || !value.isWellFormed()) throw malformed(path, 'a text');
  return value;
}

function hex(value: unknown, path: string, form: RegExp): string {
  if (typeof value !== 'string' || !form.test(value)) throw malformed(path, 'lower-case hex of its length');
  return value;
}

function count(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw malformed(path, 'a whole number');
  return value;
}

const malformed = (path: string, what: string): MalformedEvidenceError =>
  new MalformedEvidenceError(`${path} is not ${what}`);
