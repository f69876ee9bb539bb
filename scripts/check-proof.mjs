#!/usr/bin/env node
/**
 * Checks a file of proofs offline, with Node.js alone:
 *
 *   node check-proof.mjs [--gift ID] FILE LOG-KEY [WITNESS-KEY…]
 *
 * It is written to be read: docs/evidence.md describes the formats, and nothing of the service is used here. Keys are
 * "name+hash+base64" and must come from elsewhere than the file. What is printed was proven; all else in the file was
 * not. The exit code is 0 only when there are events, each of them stands in the log, and every key named has signed. With
 * --gift, every event of that gift must be there, too, up to the latest one shown.
 */
import { createHash, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { gift, file, logKey, witnessKeys } = given();

const ED25519 = 1;
const COSIGNATURE = 4;

const bundle = members(parsed(readFileSync(file, 'utf8')), 'format checkpoint events');
if (bundle.format !== 'gift-evidence/v1') stop('the file is not of the format gift-evidence/v1');
if (!Array.isArray(bundle.events) || bundle.events.length === 0) stop('the file has no events');

// The checkpoint is a text, an empty line, and lines of signatures.
const cut = bundle.checkpoint.lastIndexOf('\n\n');
const text = bundle.checkpoint.slice(0, cut + 1);
const signatures = bundle.checkpoint
  .slice(cut + 2)
  .split('\n')
  .slice(0, -1);
const [origin, sizeText, rootText] = text.split('\n');
const size = Number(sizeText);
const root = Buffer.from(rootText, 'base64');
if (!/^(0|[1-9]\d*)$/.test(sizeText) || !Number.isSafeInteger(size) || root.length !== 32) stop('no checkpoint');

const key = parseKey(logKey, ED25519);
if (key.name !== origin) stop(`the checkpoint is of the log ${origin}, not of ${key.name}`);
const signature = signatureOf(key);
if (!isSigned(key, Buffer.from(text), signature)) stop(`${key.name} has not signed the checkpoint`);
print(`log ${origin}: ${size} events, root ${rootText}`);

for (const witness of witnessKeys.map((one) => parseKey(one, COSIGNATURE))) {
  // 8 bytes of time, in seconds, then a signature over the time and the checkpoint.
  const cosignature = signatureOf(witness);
  if (cosignature.length !== 72) stop(`${witness.name} has not cosigned the checkpoint`);
  const time = cosignature.readBigUInt64BE();
  const cosigned = Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);
  if (!isSigned(witness, cosigned, cosignature.subarray(8))) stop(`${witness.name} has not cosigned the checkpoint`);
  print(`cosigned by ${witness.name} at ${new Date(Number(time) * 1000).toISOString()}`);
}

let before = -1;
let next = 0;
for (const event of bundle.events) {
  members(event, 'index id stream revision type at data metadata inclusion');
  if (!isCount(event.index) || event.index <= before || event.index >= size)
    stop('the events are not in the order of the log, each of them once');
  before = event.index;
  if (
    !isCount(event.revision) ||
    ![event.id, event.stream, event.type, event.at].every((one) => typeof one === 'string')
  )
    stop(`event ${event.index} has a field of another kind`);
  const leaf = sha256(Buffer.concat([Buffer.from([0]), leafBytes(event)]));
  const path = event.inclusion.map((hash) => Buffer.from(hash, 'base64'));
  if (!isIncluded(event.index, leaf, path)) stop(`event ${event.index} is not in the log as it is shown`);
  if (event.stream === `gift-${gift}` && event.revision === next) next += 1;
  else if (event.stream === `gift-${gift}`) stop(`revision ${next} of gift-${gift} is not in the file`);
  print(`\nevent ${event.index}: ${event.type}, revision ${event.revision} of ${event.stream}, at ${event.at}`);
  if ('hash' in event.data) print('  its data is not shown');
  else
    for (const [name, value] of Object.entries(event.data.value)) {
      const field = event.data.shown.find((one) => one.name === name);
      const isKept = event.data.apart.includes(name) && field === undefined;
      print(
        isKept ? `  ${name} is not shown` : `  ${name} = ${JSON.stringify(field === undefined ? value : field.value)}`,
      );
    }
  print(
    'hash' in event.metadata ? '  its metadata is not shown' : `  metadata = ${JSON.stringify(event.metadata.value)}`,
  );
}
if (gift !== undefined && next === 0) stop(`revision 0 of gift-${gift} is not in the file`);
print(`\n${bundle.events.length} events are in the log as they are shown`);

function given() {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { gift: { type: 'string' } } });
    const [name, key, ...others] = positionals;
    if (key !== undefined) return { gift: values.gift, file: name, logKey: key, witnessKeys: others };
  } catch {
    // An option that is not known.
  }
  return stop('usage: node check-proof.mjs [--gift ID] FILE LOG-KEY [WITNESS-KEY…]', 2);
}

/** Parsers differ in which of two members of one name they take (RFC 7493, section 2.3): none may be there twice. */
function parsed(json) {
  let count = 0;
  let value;
  try {
    value = JSON.parse(json, (_, part) => {
      if (typeof part === 'object' && part !== null && !Array.isArray(part)) count += Object.keys(part).length;
      return part;
    });
  } catch {
    stop('the file is no JSON');
  }
  const names = [...json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined);
  return names.length === count ? value : stop('a member is there twice');
}

/** All of these members, and no others. */
function members(value, names) {
  const all = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
  return all.toSorted().join(' ') === names.split(' ').toSorted().join(' ')
    ? value
    : stop(`the members ${names} are not there, and those alone`);
}

function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Name, id and public key of a key as text: the id is a hash of the others. */
function parseKey(keyText, type) {
  const [, name, id, base64] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(keyText) ?? stop(`${keyText} is no key`);
  const bytes = Buffer.from(base64, 'base64');
  const named = sha256(Buffer.concat([Buffer.from(`${name}\n`), bytes])).subarray(0, 4);
  if (bytes.length !== 33 || bytes[0] !== type || named.toString('hex') !== id)
    stop(`${keyText} is no key of this kind`);
  // An Ed25519 public key in DER is this prefix and its 32 bytes.
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes.subarray(1)]);
  return { name, id: named, publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}

/** The bytes behind the key's id in the line "— NAME BASE64" of a key; none where it has not signed. */
function signatureOf({ name, id }) {
  for (const line of signatures) {
    const [dash, signer, base64] = line.split(' ');
    const bytes = Buffer.from(base64 ?? '', 'base64');
    if (dash === '—' && signer === name && bytes.subarray(0, 4).equals(id)) return bytes.subarray(4);
  }
  return Buffer.alloc(0);
}

function isSigned({ publicKey }, message, bytes) {
  return bytes.length === 64 && verify(null, message, publicKey, bytes);
}

/** A version, then each field of the leaf behind its length in two bytes. */
function leafBytes(event) {
  const time = Date.parse(event.at);
  if (new Date(time).toISOString() !== event.at) stop(`event ${event.index} has no time`);
  const fields = [
    Buffer.from(event.id),
    Buffer.from(event.stream),
    number(event.revision),
    Buffer.from(event.type),
    number(time),
    dataDigest(event.data),
    metadataDigest(event.metadata),
  ];
  return Buffer.concat([Buffer.from([1]), ...fields.flatMap((field) => [length(field), field])]);
}

function length(field) {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(field.length);
  return bytes;
}

function number(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** In place of a field that stands apart there is its hash; where the field is shown, that is its hash indeed. */
function dataDigest(data) {
  if ('hash' in data) return Buffer.from(isHex(members(data, 'hash').hash, 64), 'hex');
  members(data, 'apart value salt shown');
  for (const field of data.shown) {
    const { name, value, salt } = members(field, 'name value salt');
    const hash = salted(salt, `${JSON.stringify(name)}:${JSON.stringify(value)}`).toString('hex');
    if (!data.apart.includes(name) || data.value[name] !== hash)
      stop(`${name} is not the field of which the hash is there`);
  }
  return salted(data.salt, JSON.stringify(data.apart) + JSON.stringify(data.value));
}

function metadataDigest(metadata) {
  if ('hash' in metadata) return Buffer.from(isHex(members(metadata, 'hash').hash, 64), 'hex');
  const { value, salt } = members(metadata, 'value salt');
  return salted(salt, JSON.stringify(value));
}

function salted(salt, json) {
  return sha256(Buffer.from(isHex(salt, 32) + json));
}

function isHex(text, digits) {
  return text.length === digits && /^[0-9a-f]+$/.test(text) ? text : stop(`${digits} hex digits are missing`);
}

/** RFC 9162, section 2.1.3.2. */
function isIncluded(index, leaf, path) {
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) return false;
  let [place, last, hash] = [index, size - 1, leaf];
  for (const beside of path) {
    if (last === 0 || beside.length !== 32) return false;
    if (place % 2 === 1 || place === last) {
      hash = sha256(Buffer.concat([Buffer.from([1]), beside, hash]));
      while (place % 2 === 0 && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      hash = sha256(Buffer.concat([Buffer.from([1]), hash, beside]));
    }
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && hash.equals(root);
}

/** Without what could move a terminal's cursor. */
function print(line) {
  process.stdout.write(`${line.replaceAll(/(?!\n)[\p{Cc}\p{Cf}]/gu, '')}\n`);
}

function half(value) {
  return Math.floor(value / 2);
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest();
}

function stop(reason, code = 1) {
  process.stderr.write(`check-proof: ${reason}\n`);
  process.exit(code);
}
