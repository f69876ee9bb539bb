/**
 * Ends connections so that their last answer arrives (RFC 9112 9.6). Closing a connection while the other side still
 * sends resets it, and the reset discards an unread answer. So the last answer is followed by the end of our side
 * alone. What still comes is read and forgotten, within bounds; then the connection is closed.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** After its answer the other side may send for this long, ms, */
const SENDING_MS = 15_000;
/** or stay silent for this long without closing, */
const SILENT_MS = 5_000;
/** or send this many bytes. */
const MAX_BYTES = 64 * 1_048_576;
/** Both times while the listener closes. Its other connections have 8 s. */
const STOPPING_MS = 1_000;
const STOPPING_SILENT_MS = 200;
const LOOK_MS = 100;

/** Connections of one listener that are read on after their last answer. */
export interface Lingering {
  /** Sends this last text and the end of our side, and reads on. Nothing that comes afterwards is a request. */
  end(connection: Duplex, text?: string): void;
  /**
   * Bounds the rest of a request that has its answer. Its connection is kept if the request comes whole, and closed
   * otherwise.
   */
  drain(request: IncomingMessage): void;
  has(connection: Duplex): boolean;
  /** The listener closes: a silent connection that has its answer is not waited for. */
  stop(): void;
  closeAll(): void;
}

export function lingering(): Lingering {
  const watched = new Map<Duplex, { readonly timer: NodeJS.Timeout; readonly leave: () => void }>();
  const ended = new WeakSet<Duplex>();
  let stopping = false;

  const watch = (connection: Duplex, isOver: () => boolean): void => {
    forget(connection);
    const startedAt = performance.now();
    const before = bytesOf(connection);
    let bytes = before;
    let heardAt = startedAt;
    const look = (): void => {
      const now = performance.now();
      const latest = bytesOf(connection);
      if (latest !== bytes) heardAt = now;
      bytes = latest;
      const late =
        now - startedAt > (stopping ? STOPPING_MS : SENDING_MS) ||
        now - heardAt > (stopping ? STOPPING_SILENT_MS : SILENT_MS) ||
        bytes - before > MAX_BYTES;
      if (late) connection.destroy();
      if (late || connection.destroyed || isOver()) forget(connection);
    };
    const leave = (): void => forget(connection);
    watched.set(connection, { timer: setInterval(look, LOOK_MS).unref(), leave });
    connection.once('close', leave);
  };
  /** Leaves no listener behind: a kept connection may carry thousands of requests. */
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
      // Not to the parser: no request may start now, and none that is late may end.
      connection.removeAllListeners('data');
      connection.on('data', () => undefined);
      // The parser reads past the stream, and may have stopped. An empty chunk ends the read that the stream believes
      // to be pending.
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

const bytesOf = (connection: Duplex): number => (connection as Socket).bytesRead;
