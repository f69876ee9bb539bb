/** The leaf of an event (docs/evidence.md#leaves), and the parts of the event that a proof shows. */
import { hash } from 'node:crypto';
import { isObject } from '../../../lib/isObject.js';
import type { EventTexts, RecordedEvent } from '../../../ports/eventStore.js';
import { type Leaf, timeOf } from './leaf.js';
import { sha256 } from './merkleTree.js';
import { MalformedEvidenceError } from './parsing.js';
import { isPlain, plainMembers } from './plainJson.js';

/** An event as stored in the log: neither decrypted nor upcast. */
export type StoredEvent = Pick<RecordedEvent, 'id' | 'stream' | 'revision' | 'type' | 'at' | 'data' | 'metadata'>;

/** The rules by which leaves of a log are made, the same for all its events (docs/evidence.md#salted-hashes). */
export interface LeafRules {
  /** The secret from which the salts of all events are derived: 32 random bytes as text. */
  readonly saltKey: string;
  /** Names of top-level fields of data that are hashed apart, so that a proof may hide them and show the others. */
  readonly apart: ReadonlySet<string>;
}

export interface ShownField {
  readonly name: string;
  readonly value: unknown;
  /** The field's salt: 16 bytes in hex. */
  readonly salt: string;
}

/** An event's data in a proof. `hash`, in hex, takes the place of data that the proof hides as a whole. */
export type ShownData =
  | {
      /** Names of the fields that are hashed apart, in stored order. */
      readonly apart: readonly string[];
      /** The data, in which each field that is hashed apart is replaced by its hash in hex. */
      readonly value: Readonly<Record<string, unknown>>;
      readonly salt: string;
      /** The fields hashed apart that the proof shows nevertheless. */
      readonly shown: readonly ShownField[];
    }
  | { readonly hash: string };

/** An event's metadata in a proof. `hash`, in hex, takes the place of metadata that the proof hides. */
export type ShownMetadata = { readonly value: object; readonly salt: string } | { readonly hash: string };

export interface ShownParts {
  readonly data: ShownData;
  readonly metadata: ShownMetadata;
}

/** @throws MalformedEvidenceError for an event that no release of this service can have written */
export function leafOf(event: StoredEvent, rules: LeafRules): Leaf {
  const { metadata, metadataSalt, apart, value, dataSalt } = salted(event, rules);
  return leafWith(event, dataDigest(names(apart), value, dataSalt), metadataDigest(metadata, metadataSalt));
}

/**
 * The leaf of an event whose data and metadata are given as texts, in most cases without parsing them.
 * @throws MalformedEvidenceError as `leafOf`, and where the texts are no JSON
 */
export function leafOfTexts(event: Omit<EventTexts, 'position'>, rules: LeafRules): Leaf {
  const members = plainMembers(event.data, rules.apart);
  if (members === undefined || !isPlain(event.metadata)) return leafOf(parsed(event), rules);
  const salt = saltsOf(rules.saltKey, event.id);
  const [metadataSalt, dataSalt] = [salt(), salt()];
  let value = '';
  let taken = 0;
  for (const { start, valueStart, end } of members) {
    value += `${event.data.slice(taken, valueStart)}"${textHash(event.data.slice(start, end), salt())}"`;
    taken = end;
  }
  value += taken === 0 ? event.data : event.data.slice(taken);
  return leafWith(
    event,
    textDigest(`${JSON.stringify(names(members))}${value}`, dataSalt),
    textDigest(event.metadata, metadataSalt),
  );
}

function parsed({ data, metadata, ...event }: Omit<EventTexts, 'position'>): StoredEvent {
  try {
    return { ...event, data: JSON.parse(data) as object, metadata: JSON.parse(metadata) as RecordedEvent['metadata'] };
  } catch (cause) {
    throw new MalformedEvidenceError(`data or metadata of event ${event.id} is no JSON`, { cause });
  }
}

export interface IsShown {
  readonly field: (name: string) => boolean;
  readonly metadata: boolean;
}

/**
 * The event's parts for a proof, in which hashes replace hidden fields. Hiding a field that is not hashed apart hides
 * the data as a whole.
 * @throws MalformedEvidenceError
 */
export function showEvent(event: StoredEvent, rules: LeafRules, isShown: IsShown): ShownParts {
  const { metadata, metadataSalt, apart, value, dataSalt } = salted(event, rules);
  const isKept = Object.keys(value).some((name) => !isShown.field(name) && !apart.some((field) => field.name === name));
  return {
    data: isKept
      ? { hash: dataDigest(names(apart), value, dataSalt).toString('hex') }
      : { apart: names(apart), value, salt: dataSalt, shown: apart.filter(({ name }) => isShown.field(name)) },
    metadata: isShown.metadata
      ? { value: metadata, salt: metadataSalt }
      : { hash: metadataDigest(metadata, metadataSalt).toString('hex') },
  };
}

/**
 * The leaf of an event that is shown in part; `undefined`: a shown field does not match the hash in its place in the
 * data.
 * @throws MalformedEvidenceError
 */
export function leafOfShown(
  event: Omit<StoredEvent, 'data' | 'metadata'>,
  { data, metadata }: ShownParts,
): Leaf | undefined {
  const isOther = ({ name, value, salt }: ShownField, inPlace: unknown): boolean =>
    inPlace !== fieldHash(name, value, salt);
  if (!('hash' in data) && data.shown.some((field) => isOther(field, data.value[field.name]))) return undefined;
  return leafWith(
    event,
    'hash' in data ? Buffer.from(data.hash, 'hex') : dataDigest(data.apart, data.value, data.salt),
    'hash' in metadata ? Buffer.from(metadata.hash, 'hex') : metadataDigest(metadata.value, metadata.salt),
  );
}

function leafWith(event: Omit<StoredEvent, 'data' | 'metadata'>, data: Buffer, metadata: Buffer): Leaf {
  const { id, stream, revision, type, at } = event;
  return { id, stream, revision, type, time: timeOf(at), data, metadata };
}

interface Salted {
  readonly metadata: object;
  readonly metadataSalt: string;
  readonly apart: readonly ShownField[];
  readonly value: Readonly<Record<string, unknown>>;
  readonly dataSalt: string;
}

function salted({ id, data, metadata }: StoredEvent, { saltKey, apart: isApart }: LeafRules): Salted {
  if (!isObject(data) || !isObject(metadata))
    throw new MalformedEvidenceError(`data or metadata of event ${id} is not an object`);
  const salt = saltsOf(saltKey, id);
  const [metadataSalt, dataSalt] = [salt(), salt()];
  const apart: ShownField[] = [];
  for (const name of Object.keys(data))
    if (isApart.has(name) && data[name] !== undefined) apart.push({ name, value: data[name], salt: salt() });
  if (apart.length === 0) return { metadata, metadataSalt, apart, value: data, dataSalt };
  const value: Record<string, unknown> = { ...data };
  for (const field of apart) value[field.name] = fieldHash(field.name, field.value, field.salt);
  return { metadata, metadataSalt, apart, value, dataSalt };
}

const names = (fields: readonly { readonly name: string }[]): readonly string[] => fields.map(({ name }) => name);

/** Length of a salt: 16 bytes in hex. */
const SALT_CHARACTERS = 32;
const SALTS_OF_A_HASH = 4;

/**
 * The salts of one event (docs/evidence.md#salted-hashes). Without the salt a hash reveals nothing, not even of a value
 * with few possibilities such as a PIN. Each call of the returned function gives the next one, in hex.
 */
function saltsOf(saltKey: string, eventId: string): () => string {
  let block = 0;
  let salts = '';
  let at = SALTS_OF_A_HASH;
  return () => {
    if (at === SALTS_OF_A_HASH) {
      salts = hash('sha512', `${saltKey} ${eventId} ${block++}`, 'hex');
      at = 0;
    }
    return salts.slice(at * SALT_CHARACTERS, ++at * SALT_CHARACTERS);
  };
}

/** The hash, in hex, of a field that is hashed apart from the rest of its event's data. */
const fieldHash = (name: string, value: unknown, salt: string): string =>
  textHash(`${JSON.stringify(name)}:${JSON.stringify(value)}`, salt);

/** The digest of an event's data. @param value the data, with hashes in place of the fields that are hashed apart */
const dataDigest = (apart: readonly string[], value: object, salt: string): Buffer =>
  textDigest(`${JSON.stringify(apart)}${JSON.stringify(value)}`, salt);

const metadataDigest = (metadata: object, salt: string): Buffer => textDigest(JSON.stringify(metadata), salt);

/** Salted SHA-256 of a JSON text, the salt first: in hex here, as bytes in `textDigest`. */
const textHash = (text: string, salt: string): string => hash('sha256', salt + text, 'hex');
const textDigest = (text: string, salt: string): Buffer => sha256(salt + text);
