/**
 * The embedded bus. It uses calls within a process, and a Unix domain socket between the processes of one data folder.
 * One process is the broker. When it ends, another takes over within a second and all connect again.
 */
import { chmodSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { slices } from '../../../lib/async/slices.js';
import { fullOr } from '../../../lib/files/folderErrors.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import type { Bus } from '../../../ports/bus.js';
import { type Connection, openConnection } from './connection.js';
import type { Frame } from './frames.js';
import { type BusClient, openBusClient } from './client.js';
import { openRendezvous, type Rendezvous } from './rendezvous.js';
import { openRouter, type Peer } from './router.js';

const RETRY_MS = 20;
const OPEN_WITHIN_MS = 10_000;

interface EmbeddedBusOptions {
  readonly dir: string;
  /** Errors outside requests: handlers of published messages, invalid frames, lost connections. */
  readonly onError: (error: unknown) => void;
}

interface Attachment {
  /** Resolves when the attachment to the broker has ended. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

export async function openEmbeddedBus({ dir, onError }: EmbeddedBusOptions): Promise<Bus> {
  const rendezvous = openRendezvous(dir);
  const client = openBusClient(onError);
  let closing = false;
  let attachment: Attachment | undefined;

  const attach = async (): Promise<Attachment | undefined> => {
    for (const deadline = performance.now() + OPEN_WITHIN_MS; !closing; await sleep(RETRY_MS * (0.5 + Math.random()))) {
      const taken = rendezvous.claim()
        ? await becomeBroker(rendezvous, client, onError)
        : await joinBroker(rendezvous, client, onError);
      if (taken !== undefined) return taken;
      if (performance.now() > deadline) throw new Error(`no process answers on the bus of ${dir}, though one holds it`);
    }
    return undefined;
  };

  const stayAttached = async (): Promise<void> => {
    while (!closing) {
      try {
        await attachment?.ended;
        attachment = await attach();
      } catch (error) {
        attachment = undefined;
        onError(error);
        await sleep(RETRY_MS * 10);
      }
    }
  };

  try {
    attachment = await attach();
  } catch (error) {
    rendezvous.close();
    throw error;
  }
  const attached = stayAttached();
  let closed: Promise<void> | undefined;

  const leave = async (): Promise<void> => {
    await client.close();
    closing = true;
    await attachment?.close();
    await attached;
    await attachment?.close();
    rendezvous.close();
  };

  return {
    engine: 'embedded',
    request: client.request,
    serve: client.serve,
    publish: client.publish,
    subscribe: client.subscribe,
    ping: client.ping,
    close() {
      closed ??= leave();
      return closed;
    },
  };
}

/** @throws Error when the socket can't be bound, after releasing the claim */
async function becomeBroker(
  rendezvous: Rendezvous,
  client: BusClient,
  onError: (error: unknown) => void,
): Promise<Attachment> {
  const router = openRouter(onError);
  const connections = new Set<Connection>();
  const welcome = (socket: Socket): void => {
    const connection = openConnection(socket, {
      onFrame: (frame) => router.receive(connection, frame),
      onClose() {
        connections.delete(connection);
        router.leave(connection);
      },
      onError,
    });
    connections.add(connection);
  };

  let server: Server;
  try {
    const path = rendezvous.prepare();
    server = await listen(path, welcome).catch((error: unknown) => {
      throw fullOr(error, path);
    });
  } catch (error) {
    rendezvous.release();
    throw error;
  }
  server.on('error', onError);
  const ended = new Promise<void>((resolve) => server.once('close', resolve));

  let room: Promise<void> | undefined;
  const own: Peer = {
    send: inTurn((frame) => client.receive(frame)),
    congested: () => undefined,
    hold(until) {
      room = until.then(() => {
        room = undefined;
      });
    },
  };
  client.attach({ send: inTurn((frame) => router.receive(own, frame)), congested: () => room });

  return {
    ended,
    async close() {
      client.detach();
      server.close();
      await Promise.all([...connections].map((connection) => connection.end()));
      await ended;
      rendezvous.release();
    },
  };
}

/** Connects to the broker; `undefined`: no broker answers. */
async function joinBroker(
  rendezvous: Rendezvous,
  client: BusClient,
  onError: (error: unknown) => void,
): Promise<Attachment | undefined> {
  const socket = await reach(rendezvous.address());
  if (socket === undefined) return undefined;
  let left: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (left = resolve));
  const connection = openConnection(socket, {
    onFrame: client.receive,
    onClose() {
      client.detach();
      left();
    },
    onError,
  });
  client.attach(connection);
  return { ended, close: () => connection.end() };
}

function listen(path: string, welcome: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(welcome);
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      try {
        chmodSync(path, 0o600);
        keepOwner(path);
        resolve(server);
      } catch (error) {
        server.close();
        reject(error as Error);
      }
    });
  });
}

function reach(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const fail = (): void => resolve(undefined);
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

/** Passes frames on in order, outside the sender's call. A long queue yields to the event loop. */
function inTurn(take: (frame: Frame) => void): (frame: Frame) => void {
  let waiting: Frame[] = [];
  let at = 0;
  const turn = (): void => {
    const time = slices();
    while (at < waiting.length && !time.due()) take(waiting[at++] as Frame);
    if (at < waiting.length) return void setImmediate(turn);
    waiting = [];
    at = 0;
  };
  return (frame) => {
    if (waiting.push(frame) === 1) setImmediate(turn);
  };
}
