import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { NewEvent, Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { METADATA, withMetadata } from '../lazyMetadata.js';

export type ServerRecord = ReadResp.ReadEvent.RecordedEvent;

/** 2^63-1: the server's positions are signed, and never negative. */
const LAST_POSITION = '9223372036854775807';

/**
 * The position of a commit, in fixed width, so that byte order is log order; `undefined` where no event can have it.
 */
export function possiblePosition(commit: string): Position | undefined {
  const position = commit.padStart(LAST_POSITION.length, '0');
  return isPosition(position) ? position : undefined;
}

/** @throws UnavailableError for an impossible position: the answer is not trusted, and the call is repeated */
export function positionOf(commit: string): Position {
  const position = possiblePosition(commit);
  if (position === undefined)
    throw new UnavailableError(`EventStoreDB named ${commit} as the position of an event, where none can stand`);
  return position;
}

export function isPosition(text: string): boolean {
  return /^[0-9]{19}$/.test(text) && text <= LAST_POSITION;
}

/** @throws RangeError for another engine's position */
export function commitOf(position: Position): string {
  if (!isPosition(position)) throw new RangeError(`not a position of EventStoreDB: ${position}`);
  return BigInt(position).toString();
}

export interface EncodedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
}

const AT = '{"at":"';

/** Metadata starts with `at`, so that reading `at` needs no parsing. */
export function encode({ id, type, at, data, metadata }: NewEvent): EncodedEvent & { readonly bytes: number } {
  const dataBytes = Buffer.from(JSON.stringify(data));
  const rest = JSON.stringify(metadata);
  const metadataBytes = Buffer.from(`${AT}${at}"${rest === '{}' ? '' : ','}${rest.slice(1)}`);
  return { id, type, data: dataBytes, metadata: metadataBytes, bytes: dataBytes.length + Buffer.byteLength(rest) };
}

export function streamOf(record: ServerRecord): string {
  return textOf(record.getStreamIdentifier()!.getStreamName_asU8());
}

export function typeOf(record: ServerRecord): string {
  return String(record.getMetadataMap().get('type'));
}

/**
 * Whether an event is delivered: JSON, and no link or other event of the server. Other programs' events may hold
 * anything.
 */
export function isOurs(record: ServerRecord, type: string): boolean {
  return !type.startsWith('$') && record.getMetadataMap().get('content-type') === 'application/json';
}

export function decode(record: ServerRecord, stream: string, type: string): RecordedEvent {
  const written = textOf(record.getCustomMetadata_asU8());
  const quote = written.startsWith(AT) ? written.indexOf('"', AT.length) : -1;
  return withMetadata({
    position: positionOf(record.getCommitPosition()),
    stream,
    revision: Number(record.getStreamRevision()),
    type,
    id: record.getId()!.getString(),
    at: quote < 0 ? createdAt(record) : written.slice(AT.length, quote),
    data: JSON.parse(textOf(record.getData_asU8())) as object,
    // A comma follows the quote, or the closing brace.
    [METADATA]: quote < 0 ? written || '{}' : `{${written.slice(written[quote + 1] === ',' ? quote + 2 : quote + 1)}`,
  });
}

/** The server's time of an event, reported in .NET ticks of 100 ns: other programs' events lack `at`. */
function createdAt(record: ServerRecord): string {
  return new Date(Number(BigInt(String(record.getMetadataMap().get('created'))) / 10_000n)).toISOString();
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
