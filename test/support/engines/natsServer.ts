/** A NATS server for tests: `nats-server` on a free port of the loopback address, or the one at TEST_NATS_URL. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'nats';
import { freePort, killed } from './serverProcess.js';
import { DEADLINE_MS } from '../assertions/until.js';

/** A running server. */
export interface NatsServer {
  readonly url: string;
  /** Sends it a signal; `undefined` where it is not ours. */
  readonly child: ChildProcess | undefined;
  /** Ends it, and starts it on the same port again. @param args instead of those it was started with */
  restart(args?: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Why no server can be had; `undefined`: one can. `own`: one that may be ended. */
export function natsMissing({ own = false } = {}): string | undefined {
  if (process.env['TEST_NATS_URL'] !== undefined && !own) return undefined;
  return spawnSync('nats-server', ['--version']).error === undefined ? undefined : 'nats-server is not installed';
}

/** Starts a server, unless one is given and need not be our `own`. */
export async function startNats({
  args = [],
  own = args.length > 0,
}: { readonly args?: readonly string[]; readonly own?: boolean } = {}): Promise<NatsServer> {
  const given = process.env['TEST_NATS_URL'];
  if (given !== undefined && !own)
    return { url: given, child: undefined, restart: async () => undefined, stop: async () => undefined };
  const port = await freePort();
  const url = `nats://127.0.0.1:${port}`;
  const start = async (more: readonly string[]): Promise<ChildProcess> => {
    const child = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port), ...more], { stdio: 'ignore' });
    for (const end = performance.now() + DEADLINE_MS; performance.now() < end;) {
      // Any answer, also a refusal, means that it is up.
      const up = await connect({ servers: `127.0.0.1:${port}`, timeout: 500, reconnect: false }).then(
        (one) => one.close().then(() => true),
        (error: { code?: string }) =>
          error.code === 'AUTHORIZATION_VIOLATION' || error.code === 'DEPTH_ZERO_SELF_SIGNED_CERT',
      );
      if (up) return child;
      await sleep(25);
    }
    throw new Error('nats-server did not start');
  };
  let child = await start(args);
  return {
    url,
    get child() {
      return child;
    },
    async restart(other = args) {
      await killed(child);
      child = await start(other);
    },
    stop: () => killed(child),
  };
}

/** Something that says it is a NATS of this version, and answers pings. */
export async function natsOfVersion(version: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.write(
      `INFO ${JSON.stringify({ server_id: 'x', version, proto: 1, headers: true, max_payload: 1_048_576 })}\r\n`,
    );
    socket.on('data', (chunk: Buffer) => {
      if (chunk.includes('PING')) socket.write('PONG\r\n');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
