/** A listener without sockets: requests come from the simulation, and their answers go back to it. */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Listener, RequestHandler } from '../../../src/api/listener/listener.js';

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly address: string;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface SimulatedListener extends Listener {
  /** Whether a connection would be accepted. */
  readonly isOpen: boolean;
  /** Hands a request over. @param answered called once, with `undefined` where the service closed the connection */
  take(request: HttpRequest, answered: (answer: HttpAnswer | undefined) => void): void;
}

export function simulatedListener(port: number): SimulatedListener {
  let handler: RequestHandler | undefined;
  let isOpen = false;
  const running = new Set<Promise<void>>();
  const settled = async (): Promise<void> => void (await Promise.all(running));
  return {
    port,
    get isOpen() {
      return isOpen;
    },
    async open() {
      isOpen = true;
    },
    serve(next) {
      handler = next;
    },
    connections: () => ({ open: running.size, refused: { all: 0, address: 0, unheard: 0 } }),
    shedRequests: () => 0,
    settled,
    async close() {
      isOpen = false;
      await settled();
    },
    take(request, answered) {
      if (handler === undefined) return answered({ status: 503, headers: {}, text: '' });
      const { message, response, socket } = connected(request);
      const ended = new Promise<void>((resolve) => {
        socket.once('close', () => {
          answered(response.writableFinished ? socket.answer() : undefined);
          resolve();
        });
      });
      running.add(ended);
      void ended.then(() => running.delete(ended));
      return void handler(message, response);
    },
  };
}

/** Bytes that a connection takes at once: nothing waits until it has room again. */
const MOST_BYTES = 2 ** 30;

/** The service's side of a connection, which stores what is written. */
class Connection extends Duplex {
  readonly remoteAddress: string;
  readonly #written: Buffer[] = [];
  constructor(remoteAddress: string) {
    super({ writableHighWaterMark: MOST_BYTES });
    this.remoteAddress = remoteAddress;
  }
  override _read(): void {
    // The request was given as a whole.
  }
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#written.push(chunk);
    done();
  }
  setTimeout(): this {
    return this;
  }
  answer(): HttpAnswer {
    return parsed(Buffer.concat(this.#written));
  }
}

function connected({ method, path, headers, body, address }: HttpRequest): {
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Connection;
} {
  const socket = new Connection(address);
  const message = new IncomingMessage(socket as unknown as Socket);
  const sent: Record<string, string> = { host: 'simulated', ...headers };
  if (body !== undefined) sent['content-length'] = String(Buffer.byteLength(body));
  const rawHeaders = Object.entries(sent).flat();
  Object.assign(message, { method, url: path, headers: sent, rawHeaders, httpVersion: '1.1' });
  Object.assign(message, { httpVersionMajor: 1, httpVersionMinor: 1, complete: true });
  if (body !== undefined) message.push(body);
  message.push(null);
  const response = new ServerResponse(message);
  response.sendDate = false;
  response.assignSocket(socket as unknown as Socket);
  response.once('finish', () => socket.destroy());
  return { message, response, socket };
}

/** The answer as it was written: status line, headers, and a body that may be in chunks. */
function parsed(bytes: Buffer): HttpAnswer {
  const end = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const body = bytes.subarray(end + 4);
  const chunked = headers['transfer-encoding'] === 'chunked';
  return { status: Number(statusLine.split(' ')[1]), headers, text: (chunked ? unchunked(body) : body).toString() };
}

function unchunked(bytes: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const line = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16);
    if (!(size > 0)) return Buffer.concat(chunks);
    chunks.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 4 + size;
  }
}
