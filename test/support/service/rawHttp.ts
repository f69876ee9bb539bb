/** Sends bytes as they are over TCP: requests that no HTTP client would send. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../assertions/until.js';

/** An answer, read from the wire. */
export interface RawReply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** How to send. */
export interface RawOptions {
  /** Pause between two parts, milliseconds. */
  readonly pauseMs?: number;
  /** Give up waiting for an answer after so long, milliseconds. */
  readonly waitMs?: number;
}

/**
 * Sends the parts one after another and gives the first answer; `undefined` where the connection ended, or the time was
 * up, without one.
 */
export async function sendRaw(
  url: string,
  parts: string | Uint8Array | readonly (string | Uint8Array)[],
  options: RawOptions = {},
): Promise<RawReply | undefined> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = Buffer.alloc(0);
  const answered = new Promise<RawReply | undefined>((resolve) => {
    const end = (): void => resolve(parse(received, true));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const reply = parse(received, false);
      if (reply !== undefined) resolve(reply);
    });
    socket.on('close', end);
    // A server may close before it has read all: what it said before that counts.
    socket.on('error', () => undefined);
    setTimeout(end, options.waitMs ?? 5_000).unref();
  });
  for (const part of typeof parts === 'string' || parts instanceof Uint8Array ? [parts] : parts) {
    if (socket.destroyed) break;
    socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
    if (options.pauseMs !== undefined) await sleep(options.pauseMs);
  }
  const reply = await answered;
  socket.destroy();
  return reply;
}

function parse(bytes: Buffer, ended: boolean): RawReply | undefined {
  const text = bytes.toString('latin1');
  const at = text.indexOf('\r\n\r\n');
  if (at < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, at).split('\r\n');
  const status = Number(first.split(' ')[1]);
  if (status === 100) return parse(bytes.subarray(at + 4), ended);
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const rest = bytes.subarray(at + 4);
  const length = headers.get('content-length');
  if (!ended && (length === undefined || rest.length < Number(length))) return undefined;
  return { status, headers, body: rest.toString('utf8') };
}

/** A request's head and body as text, with `Host`, `Connection: close` and the body's length. */
export function requestText(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): string {
  const all = {
    Host: 'gift.test',
    Connection: 'close',
    ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  return `${method} ${target} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${Buffer.from(body).toString('latin1')}`;
}

/**
 * Sends requests on one connection without waiting for answers.
 * @param aTurn number of requests that each turn of the event loop sends
 * @returns the answers, in their order
 */
export async function pipelined(
  url: string,
  requests: readonly string[],
  aTurn = requests.length,
): Promise<readonly RawReply[]> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let rest = Buffer.alloc(0);
  const replies: RawReply[] = [];
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let reply = parse(rest, false); reply !== undefined; reply = parse(rest, false)) {
      replies.push(reply);
      rest = rest.subarray(rest.indexOf('\r\n\r\n') + 4 + Number(reply.headers.get('content-length')));
    }
  });
  await once(socket, 'connect');
  for (let at = 0; at < requests.length; at += aTurn) {
    socket.write(requests.slice(at, at + aTurn).join(''));
    await new Promise(setImmediate);
  }
  await until(() => replies.length === requests.length);
  socket.destroy();
  return replies;
}

/** What came of a request whose sender reads nothing before it has sent all. */
export interface SentWhole {
  /** What sending met, as a connection that was reset. */
  readonly error: string | undefined;
  readonly text: string;
  /** The other side ended the connection. */
  readonly ended: boolean;
  /** How long that took after the last byte was sent, milliseconds. */
  readonly endedAfterMs: number;
}

/**
 * Sends a head and so many bytes, piece by piece, and only then reads, as simple clients and proxies do. Reads until
 * the other side ends, or for `waitMs`.
 */
export async function sendThenRead(
  url: string,
  head: string,
  bytes: number,
  { pieceBytes = 65_536, pauseMs = 0, waitMs = 3_000 }: { pieceBytes?: number; pauseMs?: number; waitMs?: number } = {},
): Promise<SentWhole> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  let error: string | undefined;
  socket.on('error', ({ code }: NodeJS.ErrnoException) => (error ??= code));
  socket.pause();
  const write = (piece: string | Buffer): Promise<void> =>
    new Promise((resolve) => socket.write(piece, () => resolve()));
  await write(head);
  for (let left = bytes; left > 0 && error === undefined; left -= pieceBytes) {
    await write(Buffer.alloc(Math.min(left, pieceBytes), ' '));
    if (pauseMs > 0) await sleep(pauseMs);
  }
  const sentAt = performance.now();
  let text = '';
  let ended = false;
  let endedAfterMs = Number.NaN;
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, waitMs);
    const end = (): void => {
      clearTimeout(timer);
      if (!ended) endedAfterMs = performance.now() - sentAt;
      ended = true;
      resolve();
    };
    socket.once('end', end).once('close', end).resume();
  });
  socket.destroy();
  return { error, text, ended, endedAfterMs };
}
