/** A way to a server that can be cut, blocked and mended: for a double and for a real server alike. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** The way. */
export interface Proxy {
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: number;
  /** Connections that were made so far. */
  readonly made: number;
  /** Ends all connections at once, as a killed server does; new ones are taken. */
  cut(): void;
  /** As a server that is gone: connections end, new ones are refused. */
  down(): Promise<void>;
  /** Taken again, at the same port. */
  up(): Promise<void>;
  /**
   * As a frozen server, or a broken network: nothing goes through any more, in either direction; new connections are
   * taken, and are as silent.
   */
  freeze(): void;
  /** Open connections are silently dead; new ones work. */
  hang(): void;
  /** Goes on, with everything sent meanwhile. */
  thaw(): void;
  /** New connections lead to another port of the same host; open ones stay where they are. */
  turn(port: number): void;
  close(): Promise<void>;
}

/** Opens a way to a port of this machine, or of another. */
export async function openProxy(target: { port: number; host?: string }): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const hanging = new WeakSet<Socket>();
  let frozen = false;
  let made = 0;
  let farPort = target.port;
  const waiting = new Set<() => void>();
  const server = createServer((near) => {
    made += 1;
    const far = connect(farPort, target.host ?? '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.setNoDelay(true);
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.on('data', (chunk: Buffer) => {
        const pass = (): void => {
          if (other.write(chunk)) return;
          one.pause();
          other.once('drain', () => one.resume());
        };
        if (hanging.has(one)) return;
        if (frozen) waiting.add(pass);
        else pass();
      });
    }
  });
  const cut = (): void => {
    waiting.clear();
    for (const socket of sockets) socket.destroy();
  };
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const down = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    cut();
    await closed;
  };
  return {
    port,
    get connections() {
      return sockets.size / 2;
    },
    get made() {
      return made;
    },
    cut,
    down,
    async up() {
      if (!server.listening) await listen(port);
    },
    freeze() {
      frozen = true;
    },
    hang() {
      for (const socket of sockets) hanging.add(socket);
    },
    thaw() {
      frozen = false;
      for (const pass of waiting) pass();
      waiting.clear();
    },
    turn(to) {
      farPort = to;
    },
    close: down,
  };
}
