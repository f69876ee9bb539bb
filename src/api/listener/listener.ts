/** The HTTP listener. A stop lets running requests finish. */
import { type IncomingMessage, type Server, ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { after, endTimer, every } from '../../lib/world.js';
import { peerNetwork } from '../auth/address.js';
import type { ErrorCode } from '../../domain/errors.js';
import { inFlight } from '../../lib/inFlight.js';
import { announcesBody } from '../pipeline/askForBody.js';
import { corsFor } from '../pipeline/cors.js';
import {
  admission,
  type ConnectionCounts,
  connectionLimits,
  type ConnectionLimits,
  type NetworkOf,
  ANSWERED_CONNECTIONS,
} from './admission.js';
import { type Lingering, lingering } from './lingering.js';
import { answerRefused, type Refusals, refusals } from './earlyRefusals.js';
import { requestTurns } from './requestTurns.js';

/** Time for running requests at a stop, ms. */
const GRACE_MS = 8_000;

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface Listener {
  /** The port; before the listener is open, the one that it was given. */
  readonly port: number;
  /** Accepts connections, where it does not yet. @throws Error when the port or host is not available */
  open(): Promise<void>;
  /** Before this call, requests get 503. A later handler takes the requests from then on. */
  serve(handler: RequestHandler): void;
  /** Connections refused since the start, and open at present. */
  connections(): ConnectionCounts;
  /** Number of requests refused since the start, because they came faster than they could be begun. */
  shedRequests(): number;
  /** Waits for the requests that earlier handlers took. Requests that take longer than 8 s lose their connections. */
  settled(): Promise<void>;
  /**
   * Takes no new connections; running requests finish within 8 s, and their answers end their connections. Idempotent.
   */
  close(): Promise<void>;
}

/** How long a request's headers may take, and how long a new connection may send nothing, ms. */
const HEADERS_MS = 15_000;

/** Health is told however many requests wait: a process that works hard must not be taken for one that has died. */
const AT_ONCE: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** Refusals by the HTTP parser's error code; all other codes are malformed requests. */
const REFUSED: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'request_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timed_out',
};

/** Answer to a running request. It is a class with one event listener for all, because every request creates one. */
class RunningResponse extends ServerResponse {
  handler: RequestHandler | undefined = undefined;
  /** Number among the answers in progress. */
  number = 0;
}

export interface ListenerOptions {
  /** Limits on connections. Default: by the open files that this process may have. */
  readonly limits?: ConnectionLimits;
  readonly networkOf?: NetworkOf;
  readonly headersMs?: number;
  /** The longest wait of a request until it is begun, in milliseconds; 0, the default: no limit. */
  readonly requestWaitMs?: number;
  /** Origins whose pages may read that a request was refused for its wait. Default: none. */
  readonly corsOrigins?: readonly string[];
  /** Whether connections are accepted only from `open` on. */
  readonly late?: boolean;
}

/**
 * Opens a listener. `port` 0: any free one. `onError` gets later errors, such as a lack of file descriptors; the server
 * still listens.
 * @throws Error when the port or host is not available
 */
export async function listen(
  port: number,
  host: string,
  onError: (error: Error) => void,
  {
    limits = connectionLimits(),
    networkOf = peerNetwork([]),
    headersMs = HEADERS_MS,
    requestWaitMs = 0,
    corsOrigins = [],
    late = false,
  }: ListenerOptions = {},
): Promise<Listener> {
  const admitted = admission(limits, networkOf);
  let handler: RequestHandler | undefined;
  let closing = false;
  const connections = new Set<Socket>();
  const running = inFlight<RunningResponse>();
  /** Answers that wait, or have waited, for the answers to earlier requests of their connection. */
  const pipelined = new WeakMap<Socket, Set<RunningResponse>>();
  function ended(this: RunningResponse): void {
    running.take(this.number);
    pipelined.get(this.req.socket)?.delete(this);
  }
  const ends = lingering();
  const refusing = refusals(ends);
  const turns = requestTurns(requestWaitMs);
  const cors = corsFor(corsOrigins);
  const begin = (request: IncomingMessage, response: RunningResponse): void => {
    response.handler = handler;
    response.number = running.put(response);
    response.on('close', ended);
    if (response.socket === null)
      pipelined.set(request.socket, (pipelined.get(request.socket) ?? new Set()).add(response));
    handler?.(request, response);
  };
  const receive = (request: IncomingMessage, response: RunningResponse): void => {
    if (!namesItsHost(request)) refusing.refuse(request.socket, 'malformed_request');
    else if (handler === undefined) refusing.refuse(request.socket, 'unavailable');
    else if (refusing.admits(request, response)) {
      if (closing) refusing.end(request.socket);
      // Discards the rest of a request that was refused early, so that the answer arrives and the connection can stay
      // open.
      if (announcesBody(request)) response.once('finish', () => void (request.complete || ends.drain(request)));
      if (AT_ONCE.has(request.url ?? '')) return begin(request, response);
      if (turns.take(() => request.socket.destroyed || begin(request, response))) return;
      answerRefused(response, 'unavailable', cors?.headersFor(request.headers.origin) ?? {});
    }
    // Some clients read no answer before they have sent the body.
    request.resume();
  };
  const server = createServer(
    {
      keepAliveTimeout: 65_000,
      requestTimeout: 60_000,
      headersTimeout: headersMs,
      // Node notices timeouts only at this interval, ms.
      connectionsCheckingInterval: Math.min(1_000, headersMs),
      requireHostHeader: false,
      ServerResponse: RunningResponse,
    },
    receive,
  );
  server.on('connection', (socket) => {
    // Node's own limit (`maxConnections`) hands a connection on to the other processes of a cluster, in circles where
    // all are full.
    if (connections.size >= limits.all + ANSWERED_CONNECTIONS) {
      admitted.noteUnheard();
      socket.destroy();
      return;
    }
    connections.add(socket);
    endGently(socket, refusing, ends);
    socket.once('close', () => {
      connections.delete(socket);
      // Node closes only the answer whose turn it was.
      for (const response of pipelined.get(socket) ?? [])
        if (response.socket === null && !response.writableFinished) response.destroy().emit('close');
    });
    if (!admitted.admits(socket)) refusing.turnAway(socket);
  });
  // Some clients (`nc -N`, some tills) end their side after the request and wait for the answer. By default Node closes
  // such a connection.
  Object.assign(server, { httpAllowHalfOpen: true });
  // An unknown `Expect` may be ignored (RFC 9110 10.1.1). Node's own refusal has no body.
  server.on('checkExpectation', receive);
  // Node would send `100 Continue` for every body. `askForBody` sends it when the body is read, so that an early
  // refusal is the only answer.
  server.on('checkContinue', receive);
  server.on('connect', (_, socket) => {
    // Node has detached the connection: its data and errors must be handled here.
    socket.on('error', () => socket.destroy()).resume();
    refusing.refuse(socket, 'not_found');
  });
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) =>
    refusing.refuse(socket, REFUSED[code ?? ''] ?? 'malformed_request'),
  );
  const open = async (): Promise<void> => {
    if (server.listening) return;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        server.on('error', onError);
        resolve();
      });
    });
  };
  if (!late) await open();
  return {
    get port() {
      return (server.address() as AddressInfo | null)?.port ?? port;
    },
    open,
    serve(next) {
      handler = next;
    },
    connections: admitted.counts,
    shedRequests: turns.refused,
    async settled() {
      const earlier = running.values().filter((response) => response.handler !== handler);
      const force = after(GRACE_MS, () => earlier.forEach(({ socket }) => socket?.destroy()));
      await Promise.all(
        earlier.map(async (response) => response.closed || (await new Promise((done) => response.once('close', done)))),
      );
      endTimer(force);
    },
    async close() {
      closing = true;
      // Keep-alive clients must not send their next request to a closing connection.
      for (const connection of connections) refusing.end(connection);
      await stop(server, refusing, ends);
    },
  };
}

/** Node closes a connection after its last answer even while the request still arrives: that would reset it. */
function endGently(socket: Socket, refusing: Refusals, ends: Lingering): void {
  const closeAtOnce = socket.destroySoon.bind(socket);
  socket.destroySoon = () => (refusing.isWhole(socket) ? closeAtOnce() : ends.end(socket));
}

/**
 * One `Host` line, or none before HTTP/1.1 (RFC 9112 3.2). Node's own refusal has no body, and Node takes the first of
 * several lines, where a proxy may take another.
 */
function namesItsHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts += 1;
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
}

async function stop(
  server: Server<typeof IncomingMessage, typeof RunningResponse>,
  refusing: Refusals,
  ends: Lingering,
): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    // A server that never listened reports an error here, and is closed all the same.
    server.close(() => resolve());
  });
  ends.stop();
  server.closeIdleConnections();
  // A connection between two requests becomes idle a moment later.
  const idle = every(50, () => server.closeIdleConnections());
  const force = after(GRACE_MS, () => {
    server.closeAllConnections();
    refusing.closeAll();
    ends.closeAll();
  });
  await closed;
  endTimer(idle);
  endTimer(force);
}
