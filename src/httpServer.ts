/** The HTTP listener: starting it, and stopping it so that what is under way finishes. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** Requests under way when it stops have so long to finish, milliseconds. */
const GRACE_MS = 8_000;

/** Answers one request; whatever it returns is not waited for. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A listening server. */
export interface Listener {
  readonly port: number;
  /** From now on requests get this handler; before, 503. */
  serve(handler: RequestHandler): void;
  /** Takes no new requests; those under way finish, at most 8 s. Once it is closed, closing it again does nothing. */
  close(): Promise<void>;
}

/** What this file itself answers: status line and message of each. */
const ANSWERS = {
  malformed: ['400 Bad Request', 'Malformed request.'],
  not_found: ['404 Not Found', 'Not found.'],
  late: ['408 Request Timeout', 'Request timed out.'],
  too_large: ['413 Content Too Large', 'Request too large.'],
  head_too_large: ['431 Request Header Fields Too Large', 'Request too large.'],
  starting: ['503 Service Unavailable', 'Service unavailable.'],
} as const;

/** What becomes of a request that the parser refused, by the parser's code; any other is malformed. */
const REFUSED: Readonly<Record<string, keyof typeof ANSWERS>> = {
  HPE_HEADER_OVERFLOW: 'head_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'late',
};

/** A whole answer to what never reached the application, with the headers that every answer carries; the connection ends with it. */
function answerText(which: keyof typeof ANSWERS): string {
  const [status, error] = ANSWERS[which];
  const body = JSON.stringify({ error });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(body.length),
    Connection: 'close',
    'X-Request-Id': randomUUID(),
    'Content-Security-Policy': "default-src 'none'",
    'Referrer-Policy': 'no-referrer',
    'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'SAMEORIGIN',
    ...(which === 'starting' ? { 'Retry-After': '1' } : {}),
  };
  return `HTTP/1.1 ${status}\r\n${Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}

/** Listens on a port (0: any free one). @throws Error when the port or host can't be had */
export async function listen(port: number, host: string): Promise<Listener> {
  let handler: RequestHandler = (request) => {
    request.socket.end(answerText('starting'));
  };
  /** The latest answer on each connection: nothing else may be written into one that has begun. */
  const answering = new WeakMap<Duplex, ServerResponse>();
  const receive = (request: IncomingMessage, response: ServerResponse): void => {
    // RFC 9112 3.2: a request of this version without Host is refused. Node's own refusal has no body.
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      request.socket.end(answerText('malformed'));
      return;
    }
    answering.set(request.socket, response);
    handler(request, response);
  };
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 60_000, requireHostHeader: false }, receive);
  // An `Expect` that is not understood may be ignored (RFC 9110 10.1.1). Node's own refusal has no body.
  server.on('checkExpectation', receive);
  server.on('connect', (_, socket) => socket.end(answerText('not_found')));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket);
    const begun = response?.headersSent === true && !response.writableFinished;
    if (begun || !socket.writable || error.code === 'ECONNRESET') socket.destroy();
    else socket.end(answerText(REFUSED[error.code ?? ''] ?? 'malformed'));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    serve(next) {
      handler = next;
    },
    close: () => stop(server),
  };
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  // A connection that is between two requests now is idle a moment later.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const force = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await closed;
  clearInterval(idle);
  clearTimeout(force);
}
