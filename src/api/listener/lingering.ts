/**
 * Ends connections so that their last answer arrives (RFC 9112 9.6). Closing while the other side sends resets the
 * connection, which discards an unread answer. So only this side ends; further bytes are discarded, within bounds,
 * before the connection is closed.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { endTimer, every, ticks, type Timer } from '../../lib/world.js';

/** How long the other side may go on sending after its answer, ms. */
const SENDING_MS = 15_000;
/** How long the other side may stay silent without closing, ms. */
const SILENT_MS = 5_000;
const MAX_BYTES = 64 * 1_048_576;
/** The same two times while the listener stops, ms; its other connections have 8 s. */
const STOPPING_MS = 1_000;
const STOPPING_SILENT_MS = 200;
const POLL_MS = 100;

export interface Lingering {
  /**
   * Sends a last text, ends this side and discards further bytes, which are no request. `briefly`: only for the times
   * of a listener that stops.
   */
  end(connection: Duplex, text?: string, briefly?: boolean): void;
  /**
   * Limits time and bytes for the rest of an answered request. Its connection stays open if the request arrives
   * completely, otherwise it is closed.
   */
  drain(request: IncomingMessage): void;
  has(connection: Duplex): boolean;
  /** Shortens the waits of all connections, because the listener stops. */
  stop(): void;
  closeAll(): void;
}

export function lingering(): Lingering {
  const watched = new Map<Duplex, { readonly timer: Timer; readonly leave: () => void }>();
  const ended = new WeakSet<Duplex>();
  let stopping = false;

  const watch = (connection: Duplex, isOver: () => boolean, briefly = false): void => {
    forget(connection);
    const startedAt = ticks();
    const before = bytesOf(connection);
    let bytes = before;
    let heardAt = startedAt;
    const poll = (): void => {
      const now = ticks();
      const latest = bytesOf(connection);
      if (latest !== bytes) heardAt = now;
      bytes = latest;
      const soon = stopping || briefly;
      const late =
        now - startedAt > (soon ? STOPPING_MS : SENDING_MS) ||
        now - heardAt > (soon ? STOPPING_SILENT_MS : SILENT_MS) ||
        bytes - before > MAX_BYTES;
      if (late) connection.destroy();
      if (late || connection.destroyed || isOver()) forget(connection);
    };
    const leave = (): void => forget(connection);
    watched.set(connection, { timer: every(POLL_MS, poll).unref(), leave });
    connection.once('close', leave);
  };
  /**
   * Ends the watch of a connection. Its event listener is removed, too: a connection that stays open may carry
   * thousands of requests.
   */
  const forget = (connection: Duplex): void => {
    const watching = watched.get(connection);
    if (watching === undefined) return;
    endTimer(watching.timer);
    connection.off('close', watching.leave);
    watched.delete(connection);
  };

  return {
    end(connection, text, briefly) {
      if (connection.destroyed || ended.has(connection)) return;
      ended.add(connection);
      // Detaches the parser: no request may start or end now.
      connection.removeAllListeners('data');
      connection.on('data', () => undefined);
      // The parser reads past the stream, and may have stopped. An empty chunk ends the stream's pending read.
      connection.push('');
      connection.resume();
      if (text === undefined) connection.end();
      else connection.end(text);
      watch(connection, () => false, briefly);
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
