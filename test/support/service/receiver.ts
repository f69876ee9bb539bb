/** A server that webhooks are delivered to, which answers as a test wants. */
import { createRequire } from 'node:module';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface Received {
  readonly id: string;
  readonly type: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: { readonly id: string; readonly type: string; readonly data: Readonly<Record<string, string>> };
  /** By `performance.now()`. */
  readonly at: number;
}

export type Answer = (received: Received, response: ServerResponse, requested: IncomingMessage) => void | Promise<void>;

export interface Receiver {
  readonly port: number;
  readonly url: string;
  /** In the order of their arrival. */
  readonly received: readonly Received[];
  /** How often something has connected. */
  readonly connections: number;
  answer: Answer;
  close(): Promise<void>;
}

export interface ReceiverOptions {
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly host?: string;
  /** Default: any free one. */
  readonly port?: number;
}

export async function openReceiver(
  answer: Answer = (_, response) => void response.end(),
  { tls, host = '127.0.0.1', port: at = 0 }: ReceiverOptions = {},
): Promise<Receiver> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const hear = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = JSON.parse(text) as Received['body'];
    const one = {
      id: body.id,
      type: body.type,
      path: request.url ?? '',
      headers: request.headers,
      text,
      body,
      at: performance.now(),
    };
    received.push(one);
    await self.answer(one, response, request);
  };
  // A test that ends breaks connections.
  const listener: RequestListener = (request, response) => void hear(request, response).catch(() => response.destroy());
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(at, host, resolve));
  const { port } = server.address() as AddressInfo;
  const self: Receiver = {
    port,
    url: `http://${host}:${port}/hook`,
    received,
    get connections() {
      return connections;
    },
    answer,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

interface StandardWebhooks {
  readonly Webhook: new (secret: string) => { verify(text: string, headers: Received['headers']): unknown };
}

const require = createRequire(import.meta.url);

/** As a receiver checks it, by the public library, which only tests that verify load. @throws Error where it does not hold */
export function verify(secret: string, { text, headers }: Pick<Received, 'text' | 'headers'>): void {
  const { Webhook } = require('standardwebhooks') as StandardWebhooks;
  new Webhook(secret).verify(text, headers);
}
