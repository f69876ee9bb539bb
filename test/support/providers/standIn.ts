/** A provider's HTTP API on a port of its own, that can be made to fail in every way a provider does. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** What a client asks. */
export interface Requested {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What it is answered. */
export interface Answered {
  readonly status: number;
  /** A text is sent as it is. */
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * How a request is treated. `undone`: nothing is done; `done`: it is done first.
 * silence: no answer ever comes; lost: the connection breaks; error: a failure of the provider's own.
 */
export type Fault =
  | { readonly kind: 'silence' | 'lost' | 'error'; readonly when: 'undone' | 'done' }
  | { readonly kind: 'twice' }
  /** A byte of its answer each `ms`, from its head on or only of its body. */
  | { readonly kind: 'dripping'; readonly ms: number; readonly part?: 'head' }
  | { readonly kind: 'slow'; readonly ms: number }
  /** `retryAfter`: seconds, or an HTTP date; absent: not said. */
  | { readonly kind: 'limited'; readonly retryAfter?: string }
  /** Something else answers; `done`: all the same it is done first. */
  | { readonly kind: 'answer'; readonly answer: Answered; readonly when?: 'done' };

/** What a provider does and how its failures look. */
export interface Provider {
  /** `failing`: the answer will be a failure all the same. */
  handle(requested: Requested, failing: boolean): Answered | Promise<Answered>;
  readonly error: Answered;
  readonly limited: Answered;
}

/** The stand-in. */
export interface StandIn {
  /** Scheme, host and port. */
  readonly url: string;
  /** All that was asked, in order. */
  readonly requested: Requested[];
  /** What was left undone without saying so: nobody but this ledger knows. */
  readonly undone: Requested[];
  /** Chooses how a request is treated; default: as it should be. */
  fault: (requested: Requested) => Fault | undefined;
  /** Connections that are open now. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

/** Opens it on a free port. */
export async function openStandIn(provider: Provider): Promise<StandIn> {
  const server = createServer((request, response) => {
    void serve(request, response).catch((error: unknown) => {
      console.error('a stand-in failed', error);
      response.destroy();
    });
  });
  const requested: Requested[] = [];
  const undoneOnes: Requested[] = [];

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stand-in');
    const one: Requested = {
      method: request.method ?? '',
      path: pathname,
      query: searchParams,
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    requested.push(one);
    const fault = standIn.fault(one);
    if (fault?.kind === 'slow') await sleep(fault.ms);
    if (fault?.kind === 'answer') {
      if (fault.when === 'done') await provider.handle(one, true);
      return send(response, fault.answer);
    }
    if (fault?.kind === 'limited')
      return send(response, {
        ...provider.limited,
        ...(fault.retryAfter === undefined ? {} : { headers: { 'Retry-After': fault.retryAfter } }),
      });
    const undone = fault !== undefined && 'when' in fault && fault.when === 'undone';
    if (undone) undoneOnes.push(one);
    const answer = undone ? provider.error : await provider.handle(one, fault?.kind === 'error');
    switch (fault?.kind) {
      case 'silence':
        return undefined;
      case 'lost':
        return void request.socket.destroy();
      case 'error':
        return send(response, provider.error);
      case 'twice':
        return sendTwice(response, answer);
      case 'dripping':
        return fault.part === 'head' ? dripHead(response, fault.ms) : drip(response, answer, fault.ms);
      default:
        return send(response, answer);
    }
  };

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const standIn: StandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requested,
    undone: undoneOnes,
    fault: () => undefined,
    connections: async () => promisify(server.getConnections.bind(server))(),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return standIn;
}

function send(response: ServerResponse, { status, body, headers }: Answered): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

async function drip(response: ServerResponse, { status, body }: Answered, ms: number): Promise<void> {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  for (const byte of typeof body === 'string' ? body : JSON.stringify(body)) {
    if (response.destroyed) return;
    response.write(byte);
    await sleep(ms);
  }
  response.end();
}

/** A head that goes on and on. */
async function dripHead(response: ServerResponse, ms: number): Promise<void> {
  for (const byte of `HTTP/1.1 200 OK\r\nX-Slow: ${'a'.repeat(1_000)}`) {
    if (response.socket === null || response.socket.destroyed) return;
    response.socket.write(byte);
    await sleep(ms);
  }
  response.destroy();
}

/** The same answer twice on one connection. */
function sendTwice(response: ServerResponse, { status, body, headers }: Answered): void {
  const text = JSON.stringify(body);
  const head = Object.entries({
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(text)),
    ...headers,
  });
  const raw = `HTTP/1.1 ${status} OK\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text}`;
  response.socket?.write(raw + raw);
}
