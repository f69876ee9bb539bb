/** The HTTP listener: starting it, and stopping it so that what is under way finishes. */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Requests under way when it stops have so long to finish, milliseconds. */
const GRACE_MS = 8_000;

/** Answers one request; whatever it returns is not waited for. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A listening server. */
export interface Listener {
  readonly port: number;
  /** From now on requests get this handler; before, 503. */
  serve(handler: RequestHandler): void;
  /** Takes no new requests; those under way finish, at most 8 s. */
  close(): Promise<void>;
}

/** Listens on a port (0: any free one). @throws Error when the port or host can't be had */
export async function listen(port: number, host: string): Promise<Listener> {
  let handler: RequestHandler = (_, response) => {
    response.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end('{"error":"Service unavailable."}');
  };
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 60_000 }, (request, response) => {
    handler(request, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
    const body = '{"error":"Malformed request."}';
    socket.end(`HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
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
