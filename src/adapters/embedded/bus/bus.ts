/**
 * The embedded bus: in one process straight from hand to hand, and over a Unix domain socket to the other processes of
 * the same data folder. One process is the hub, the others are connected to it; when it goes, another takes its place
 * within a second and all connect again by themselves.
 */
import { chmodSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { slices } from '../../../lib/async/slices.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import type { Bus } from '../../../ports/bus.js';
import { type Connection, openConnection } from './connection.js';
import type { Frame } from './frames.js';
import { type Member, openMember } from './client.js';
import { openPlace, type Place } from './rendezvous.js';
import { openRouter, type Peer } from './router.js';

const RETRY_MS = 20;
const OPEN_WITHIN_MS = 10_000;

/** Options of the embedded bus. */
export interface EmbeddedBusOptions {
  /** The data folder. */
  readonly dir: string;
  /**
   * What goes wrong beside a request: handlers of published messages that throw, frames that make no sense, lost
   * connections.
   */
  readonly onError: (error: unknown) => void;
}

/** How this process takes part at the moment. */
interface Part {
  /** Resolves when it ended by itself. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** Opens the bus of a data folder: connected when it resolves. @throws Error when the folder can't be used. */
export async function openEmbeddedBus({ dir, onError }: EmbeddedBusOptions): Promise<Bus> {
  const place = openPlace(dir);
  const member = openMember(onError);
  let closing = false;
  let part: Part | undefined;

  const takePart = async (): Promise<Part | undefined> => {
    for (const deadline = performance.now() + OPEN_WITHIN_MS; !closing; await sleep(RETRY_MS * (0.5 + Math.random()))) {
      const taken = place.claim() ? await becomeHub(place, member, onError) : await join(place, member, onError);
      if (taken !== undefined) return taken;
      if (performance.now() > deadline) throw new Error(`no process answers on the bus of ${dir}, though one holds it`);
    }
    return undefined;
  };

  const stayIn = async (): Promise<void> => {
    while (!closing) {
      try {
        await part?.ended;
        part = await takePart();
      } catch (error) {
        part = undefined;
        onError(error);
        await sleep(RETRY_MS * 10);
      }
    }
  };

  try {
    part = await takePart();
  } catch (error) {
    place.close();
    throw error;
  }
  const staying = stayIn();
  let closed: Promise<void> | undefined;

  const leave = async (): Promise<void> => {
    await member.close();
    closing = true;
    await part?.close();
    await staying;
    // A part that was being taken while the first was closed.
    await part?.close();
    place.close();
  };

  return {
    engine: 'embedded',
    request: member.request,
    serve: member.serve,
    publish: member.publish,
    subscribe: member.subscribe,
    ping: member.ping,
    close() {
      closed ??= leave();
      return closed;
    },
  };
}

/** Binds the socket and routes for everyone. @throws Error when it can't be bound; the claim is given up then. */
async function becomeHub(place: Place, member: Member, onError: (error: unknown) => void): Promise<Part> {
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
    server = await listen(place.prepare(), welcome);
  } catch (error) {
    place.release();
    throw error;
  }
  server.on('error', onError);
  const ended = new Promise<void>((resolve) => server.once('close', resolve));

  let room: Promise<void> | undefined;
  const own: Peer = {
    send: inTurn((frame) => member.receive(frame)),
    congested: () => undefined,
    hold(until) {
      room = until.then(() => {
        room = undefined;
      });
    },
  };
  member.attach({ send: inTurn((frame) => router.receive(own, frame)), congested: () => room });

  return {
    ended,
    async close() {
      member.detach();
      server.close();
      await Promise.all([...connections].map((connection) => connection.end()));
      await ended;
      place.release();
    },
  };
}

/** Connects to the hub; `undefined` when there is none. */
async function join(place: Place, member: Member, onError: (error: unknown) => void): Promise<Part | undefined> {
  const socket = await reach(place.address());
  if (socket === undefined) return undefined;
  let left: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (left = resolve));
  const connection = openConnection(socket, {
    onFrame: member.receive,
    onClose() {
      member.detach();
      left();
    },
    onError,
  });
  member.attach(connection);
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
        // Somebody has taken it away in this very moment.
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

/** Hands frames on in order, never from within the sender's call, and lets the event loop go on in between. */
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
