/**
 * Ends connections so that their last answer arrives (RFC 9112 9.6). A connection that is closed while the other side
 * still sends is reset, and the reset takes the answer from whoever has not read it yet. So the last answer is followed
 * by the end of our side alone; what still comes is read and forgotten, a bounded amount for a bounded time; then the
 * connection is closed.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** After its answer the other side may send for so long, milliseconds. */
const SENDING_MS = 15_000;
/** Or stay silent for so long, without closing. */
const SILENT_MS = 5_000;
/** Or send so many bytes. */
const MAX_BYTES = 64 * 1_048_576;
/** While the listener closes: both times. Its other connections have 8 s. */
const STOPPING_MS = 1_000;
const STOPPING_SILENT_MS = 200;
const LOOK_MS = 100;

/** What is still read after its answer, of one listener. */
export interface Lingering {
  /** Sends this last text and the end of our side, and reads on. What comes from now on is no request any more. */
  end(connection: Duplex, text?: string): void;
  /**
   * Bounds what is still to come of a request that has its answer already. Its connection is kept if it comes whole,
   * and closed otherwise.
   */
  drain(request: IncomingMessage): void;
  has(connection: Duplex): boolean;
  /** The listener closes: nobody is waited for who has the answer and sends nothing. */
  stop(): void;
  /** Closes all of them. */
  closeAll(): void;
}

/** Nothing lingers yet. */
export function lingering(): Lingering {
  const watched = new Map<Duplex, { readonly timer: NodeJS.Timeout; readonly leave: () => void }>();
  const ended = new WeakSet<Duplex>();
  let stopping = false;

  const watch = (connection: Duplex, isOver: () => boolean): void => {
    forget(connection);
    const began = performance.now();
    const before = bytesOf(connection);
    let bytes = before;
    let heardAt = began;
    const look = (): void => {
      const now = performance.now();
      const latest = bytesOf(connection);
      if (latest !== bytes) heardAt = now;
      bytes = latest;
      const late =
        now - began > (stopping ? STOPPING_MS : SENDING_MS) ||
        now - heardAt > (stopping ? STOPPING_SILENT_MS : SILENT_MS) ||
        bytes - before > MAX_BYTES;
      if (late) connection.destroy();
      if (late || connection.destroyed || isOver()) forget(connection);
    };
    const leave = (): void => forget(connection);
    watched.set(connection, { timer: setInterval(look, LOOK_MS).unref(), leave });
    connection.once('close', leave);
  };
  /** Leaves nothing on a connection that is kept: it may carry thousands of requests. */
  const forget = (connection: Duplex): void => {
    const watching = watched.get(connection);
    if (watching === undefined) return;
    clearInterval(watching.timer);
    connection.off('close', watching.leave);
    watched.delete(connection);
  };

  return {
    end(connection, text) {
      if (connection.destroyed || ended.has(connection)) return;
      ended.add(connection);
      // Not to the parser any more: no request that comes now may be begun, and none that is late be finished.
      connection.removeAllListeners('data');
      connection.on('data', () => undefined);
      // The parser has read past the stream, and may have stopped: an empty piece ends the reading that the stream
      // believes to be under way, so that it begins anew.
      connection.push('');
      connection.resume();
      if (text === undefined) connection.end();
      else connection.end(text);
      watch(connection, () => false);
    },
    drain(request) {
      if (!ended.has(request.socket) && !request.socket.destroyed) watch(request.socket, () => request.complete);
    },
    has: (connection) => ended.has(connection),
    stop() {
      stopping = true;
    },
    closeAll() {
      for (const connection of watched.keys()) connection.destroy();
    },
  };
}

/** What has come on a connection; those that the server hands out are all sockets. */
const bytesOf = (connection: Duplex): number => (connection as Socket).bytesRead;
