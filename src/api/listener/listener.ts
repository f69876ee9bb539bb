/** The HTTP listener: starting it, and stopping it so that what is under way finishes. */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Lingering, lingering } from './lingering.js';
import { type RefusedAs, type Refusals, refusals } from './earlyRefusals.js';

/** Requests under way when it stops have so long to finish, milliseconds. */
const GRACE_MS = 8_000;

/** Answers one request; whatever it returns is not waited for. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A listening server. */
export interface Listener {
  readonly port: number;
  /** From now on requests get this handler; before, 503. */
  serve(handler: RequestHandler): void;
  /**
   * Takes no new connections; requests under way finish, at most 8 s, and their answers end their connections. Once it
   * is closed, closing it again does nothing.
   */
  close(): Promise<void>;
}

/** What becomes of a request that the parser refused, by the parser's code; any other is malformed. */
const REFUSED: Readonly<Record<string, RefusedAs>> = {
  HPE_HEADER_OVERFLOW: 'head_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'late',
};

/**
 * Listens on a port (0: any free one). `onError` is told what goes wrong later, such as a connection that can't be
 * taken since the machine is short of files: it listens on.
 * @throws Error when the port or host can't be had
 */
export async function listen(port: number, host: string, onError: (error: Error) => void): Promise<Listener> {
  let handler: RequestHandler | undefined;
  let closing = false;
  const connections = new Set<Socket>();
  const ends = lingering();
  const refusing = refusals(ends);
  const receive = (request: IncomingMessage, response: ServerResponse): void => {
    if (!namesItsHost(request)) refusing.refuse(request.socket, 'malformed');
    else if (handler === undefined) refusing.refuse(request.socket, 'starting');
    else if (refusing.admits(request, response)) {
      if (closing) refusing.end(request.socket);
      // Of what is refused before it has come, the rest is read and forgotten, so that the answer arrives and the
      // connection can be kept.
      if (announcesBody(request)) response.once('finish', () => void (request.complete || ends.drain(request)));
      return void handler(request, response);
    }
    // Read and forgotten: who is still sending does not look for an answer.
    request.resume();
  };
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 60_000, requireHostHeader: false }, receive);
  server.on('connection', (socket) => {
    connections.add(socket);
    endGently(socket, refusing, ends);
    socket.once('close', () => connections.delete(socket));
  });
  // Who has said all and sends FIN, as `nc -N` and some tills do, still waits for the answer: Node would close the
  // connection before it.
  Object.assign(server, { httpAllowHalfOpen: true });
  // An `Expect` that is not understood may be ignored (RFC 9110 10.1.1). Node's own refusal has no body.
  server.on('checkExpectation', receive);
  // Node would ask for the body before it is known whether anybody wants it: who reads it asks (`askForBody`), and who
  // is refused before gets that answer alone.
  server.on('checkContinue', receive);
  server.on('connect', (_, socket) => {
    // Node has let go of the connection: nobody else reads it, or hears of its faults.
    socket.on('error', () => socket.destroy()).resume();
    refusing.refuse(socket, 'not_found');
  });
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) =>
    refusing.refuse(socket, REFUSED[code ?? ''] ?? 'malformed'),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      server.on('error', onError);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    serve(next) {
      handler = next;
    },
    async close() {
      closing = true;
      // Whoever keeps a connection must not send the next request into its end.
      for (const connection of connections) refusing.end(connection);
      await stop(server, refusing, ends);
    },
  };
}

/** Whether a body comes with it (RFC 9112 6.3). */
const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/**
 * Node closes a connection once its last answer is written, be the request still coming: that would reset it. A request
 * that came whole costs nothing more.
 */
function endGently(socket: Socket, refusing: Refusals, ends: Lingering): void {
  const closeAtOnce = socket.destroySoon.bind(socket);
  socket.destroySoon = () => (refusing.isWhole(socket) ? closeAtOnce() : ends.end(socket));
}

/**
 * Whether it has one `Host` line, or, of a version before 1.1, none (RFC 9112 3.2). Node's own refusal of none has no
 * body, and of several it takes the first: a proxy may have taken another.
 */
function namesItsHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts += 1;
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
}

async function stop(server: Server, refusing: Refusals, ends: Lingering): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  ends.stop();
  server.closeIdleConnections();
  // A connection that is between two requests now is idle a moment later.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const force = setTimeout(() => {
    server.closeAllConnections();
    refusing.closeAll();
    ends.closeAll();
  }, GRACE_MS);
  await closed;
  clearInterval(idle);
  clearTimeout(force);
}
