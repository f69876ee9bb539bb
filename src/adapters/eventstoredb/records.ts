/** Events as EventStoreDB holds them, and as the port gives them. */
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { NewEvent, Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { METADATA, withMetadata } from '../lazyMetadata.js';

/** An event of the log as the server sends it. */
export type ServerRecord = ReadResp.ReadEvent.RecordedEvent;

/** The greatest position, 2^63-1: the server's positions are signed 64-bit numbers, and never negative. */
const LAST_POSITION = '9223372036854775807';

/**
 * The position of a commit position that the server names: so long that byte order is log order; `undefined` where no
 * event can stand there.
 */
export function possiblePosition(commit: string): Position | undefined {
  const position = commit.padStart(LAST_POSITION.length, '0');
  return isPosition(position) ? position : undefined;
}

/**
 * Where an event stands. @throws UnavailableError when it can't stand where the server says: what it sends is not to be
 * believed, and asked for again
 */
export function positionOf(commit: string): Position {
  const position = possiblePosition(commit);
  if (position === undefined)
    throw new UnavailableError(`EventStoreDB named ${commit} as the position of an event, where none can stand`);
  return position;
}

/** Whether a text can be a position: 19 digits, from 0 to 2^63-1. */
export function isPosition(text: string): boolean {
  return /^[0-9]{19}$/.test(text) && text <= LAST_POSITION;
}

/** The server's number of a position. @throws RangeError when it is not a position of this engine. */
export function commitOf(position: Position): string {
  if (!isPosition(position)) throw new RangeError(`not a position of EventStoreDB: ${position}`);
  return BigInt(position).toString();
}

/** An event's data and metadata in bytes. */
export interface EncodedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
}

const AT = '{"at":"';

/** Metadata begins with `at`, so that it can be told without parsing all of it. */
export function encode({ id, type, at, data, metadata }: NewEvent): EncodedEvent & { readonly bytes: number } {
  const dataBytes = Buffer.from(JSON.stringify(data));
  const rest = JSON.stringify(metadata);
  const metadataBytes = Buffer.from(`${AT}${at}"${rest === '{}' ? '' : ','}${rest.slice(1)}`);
  return { id, type, data: dataBytes, metadata: metadataBytes, bytes: dataBytes.length + Buffer.byteLength(rest) };
}

/** The name of the stream that an event stands in. */
export function streamOf(record: ServerRecord): string {
  return textOf(record.getStreamIdentifier()!.getStreamName_asU8());
}

/** The type of an event. */
export function typeOf(record: ServerRecord): string {
  return String(record.getMetadataMap().get('type'));
}

/**
 * Whether it can be one of ours: not a link or another mark of the server's, and JSON (events of others may hold
 * anything).
 */
export function isOurs(record: ServerRecord, type: string): boolean {
  return !type.startsWith('$') && record.getMetadataMap().get('content-type') === 'application/json';
}

/** The event for readers. @throws SyntaxError when its data is no JSON */
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
    // After the quote comes a comma, or the closing brace.
    [METADATA]: quote < 0 ? written || '{}' : `{${written.slice(written[quote + 1] === ',' ? quote + 2 : quote + 1)}`,
  });
}

/** When the server stored an event (in .NET's ticks of 100 ns): for events of others, which don't say. */
function createdAt(record: ServerRecord): string {
  return new Date(Number(BigInt(String(record.getMetadataMap().get('created'))) / 10_000n)).toISOString();
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
