/**
 * Checks a bundle of proofs where it is shown: each event's leaf is in the tree whose root the head names
 * (docs/evidence.md#leaves; RFC 9162, section 2.1.3.2). The head's signature is not checked here: the log's key has to
 * reach an auditor by another way than the proof does.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';

type Hidden = { readonly hash: string };

interface ProvedEvent {
  readonly index: number;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly at: string;
  readonly data:
    | Hidden
    | {
        readonly apart: readonly string[];
        readonly value: Readonly<Record<string, unknown>>;
        readonly salt: string;
        readonly shown: readonly { readonly name: string; readonly value: unknown; readonly salt: string }[];
      };
  readonly metadata: Hidden | { readonly value: unknown; readonly salt: string };
  /** Hashes beside the way from the leaf to the root, in base64. */
  readonly inclusion: readonly string[];
}

export interface Bundle {
  readonly format: string;
  readonly checkpoint: string;
  readonly events: readonly ProvedEvent[];
}

interface Checked {
  /** The log's name, as its head has it. */
  readonly origin: string;
  /** How many events the head covers. */
  readonly size: number;
  readonly root: string;
  /** Indices of events that the head does not cover as they are shown: none, where all is well. */
  readonly wrong: readonly number[];
}

export function check({ checkpoint, events }: Bundle): Checked {
  const [origin = '', sizeText = '', root = ''] = checkpoint.split('\n');
  const size = Number(sizeText);
  const wrong = events.filter((event) => !isIncluded(event, size, root)).map(({ index }) => index);
  return { origin, size, root, wrong };
}

function isIncluded(event: ProvedEvent, size: number, root: string): boolean {
  const { index, inclusion } = event;
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return false;
  let [place, last, hash] = [index, size - 1, sha256(concatBytes(Uint8Array.of(0), leafOf(event)))];
  const half = (): void => {
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  };
  for (const alongside of inclusion.map(bytesOf)) {
    if (last === 0) return false;
    if (place % 2 === 1 || place === last) {
      hash = sha256(concatBytes(Uint8Array.of(1), alongside, hash));
      while (place % 2 === 0 && place !== 0) half();
    } else hash = sha256(concatBytes(Uint8Array.of(1), hash, alongside));
    half();
  }
  return last === 0 && bytesToHex(hash) === bytesToHex(bytesOf(root));
}

function leafOf({ id, stream, revision, type, at, data, metadata }: ProvedEvent): Uint8Array {
  const fields = [
    utf8ToBytes(id),
    utf8ToBytes(stream),
    number(revision, 8),
    utf8ToBytes(type),
    number(Date.parse(at), 8),
    'hash' in data ? hexToBytes(data.hash) : dataDigest(data),
    'hash' in metadata ? hexToBytes(metadata.hash) : salted(metadata.salt, JSON.stringify(metadata.value)),
  ];
  return concatBytes(Uint8Array.of(1), ...fields.flatMap((field) => [number(field.length, 2), field]));
}

/** In place of a field that stands apart is its hash; where the field is shown, its hash is computed from it. */
function dataDigest({ apart, value, salt, shown }: Exclude<ProvedEvent['data'], Hidden>): Uint8Array {
  const hashed = { ...value };
  for (const { name, value: field, salt: own } of shown)
    hashed[name] = bytesToHex(salted(own, `${JSON.stringify(name)}:${JSON.stringify(field)}`));
  return salted(salt, JSON.stringify(apart) + JSON.stringify(hashed));
}

const salted = (salt: string, json: string): Uint8Array => sha256(utf8ToBytes(salt + json));

function number(value: number, length: 2 | 8): Uint8Array {
  const view = new DataView(new ArrayBuffer(length));
  if (length === 2) view.setUint16(0, value);
  else view.setBigUint64(0, BigInt(value));
  return new Uint8Array(view.buffer);
}

const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
