/**
 * A frame is a JSON header and a body, the payload's JSON, which the broker never parses. On a socket: two lengths (4
 * bytes each, big endian), header, body. The first counts all bytes after it, the second the header.
 */
import { MAX_PAYLOAD_BYTES } from '../../busPayload.js';

/** `i` numbers a client's requests, `s` is a subject, `q` a queue group, `m` a message for people. */
export type Header =
  | { readonly t: 'serve' | 'unserve'; readonly s: string; readonly q: string }
  | { readonly t: 'sub' | 'unsub' | 'pub'; readonly s: string }
  | { readonly t: 'req'; readonly i: number; readonly s: string }
  | { readonly t: 'ask'; readonly i: number; readonly s: string; readonly q: string }
  | { readonly t: 'err'; readonly i: number; readonly m: string }
  | { readonly t: 'rep' | 'none'; readonly i: number }
  | { readonly t: 'gone' | 'drop' | 'ping' | 'pong'; readonly i: number };

export interface Frame {
  readonly header: Header;
  readonly body: string;
}

const MAX_FRAME_BYTES = MAX_PAYLOAD_BYTES + 4_096;

const KINDS: Readonly<Record<Header['t'], readonly ('i' | 's' | 'q' | 'm')[]>> = {
  serve: ['s', 'q'],
  unserve: ['s', 'q'],
  sub: ['s'],
  unsub: ['s'],
  pub: ['s'],
  req: ['i', 's'],
  ask: ['i', 's', 'q'],
  err: ['i', 'm'],
  rep: ['i'],
  none: ['i'],
  gone: ['i'],
  drop: ['i'],
  ping: ['i'],
  pong: ['i'],
};

export function encodeFrame({ header, body }: Frame): Buffer {
  const head = JSON.stringify(header);
  const headBytes = Buffer.byteLength(head);
  const bodyBytes = Buffer.byteLength(body);
  const bytes = Buffer.allocUnsafe(8 + headBytes + bodyBytes);
  bytes.writeUInt32BE(4 + headBytes + bodyBytes, 0);
  bytes.writeUInt32BE(headBytes, 4);
  bytes.write(head, 8);
  bytes.write(body, 8 + headBytes);
  return bytes;
}

class BrokenStreamError extends Error {
  override readonly name = 'BrokenStreamError';
}

interface FrameReader {
  /** Returns the frames that a chunk completes, and passes an invalid one to `onRefused`. @throws BrokenStreamError */
  read(chunk: Buffer): Frame[];
}

export function frameReader(onRefused: (error: Error) => void): FrameReader {
  let chunks: Buffer[] = [];
  let held = 0;
  let needed = 4;

  const take = (): Buffer => {
    const all = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, held);
    chunks = [];
    held = 0;
    return all;
  };

  return {
    read(chunk) {
      chunks.push(chunk);
      held += chunk.length;
      if (held < needed) return [];
      const frames: Frame[] = [];
      const bytes = take();
      let at = 0;
      needed = 4;
      while (bytes.length - at >= 4) {
        const length = bytes.readUInt32BE(at);
        if (length < 4 || length > MAX_FRAME_BYTES) throw new BrokenStreamError(`a frame of ${length} bytes`);
        if (bytes.length - at < 4 + length) {
          needed = 4 + length;
          break;
        }
        const frame = decodeFrame(bytes.subarray(at + 4, at + 4 + length));
        if (frame instanceof Error) onRefused(frame);
        else frames.push(frame);
        at += 4 + length;
      }
      if (at < bytes.length) {
        chunks = [bytes.subarray(at)];
        held = bytes.length - at;
      }
      return frames;
    },
  };
}

function decodeFrame(bytes: Buffer): Frame | Error {
  const headBytes = bytes.readUInt32BE(0);
  if (headBytes > bytes.length - 4) return new Error('a bus frame whose header is longer than itself');
  let header: unknown;
  try {
    header = JSON.parse(bytes.toString('utf8', 4, 4 + headBytes));
  } catch {
    return new Error('a bus frame whose header is not JSON');
  }
  if (!isHeader(header)) return new Error('a bus frame of an unknown kind');
  return { header, body: bytes.toString('utf8', 4 + headBytes) };
}

function isHeader(value: unknown): value is Header {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  if (typeof fields['t'] !== 'string' || !Object.hasOwn(KINDS, fields['t'])) return false;
  return KINDS[fields['t'] as Header['t']].every((name) =>
    name === 'i' ? Number.isSafeInteger(fields['i']) : typeof fields[name] === 'string',
  );
}
