import type { Socket } from 'node:net';
import { encodeFrame, type Frame, frameReader } from './frames.js';
import type { Peer } from './router.js';

/** Disconnects a peer that reads nothing for this long, so that it delays no other. */
const STALL_MS = 5_000;

export interface Connection extends Peer {
  end(): Promise<void>;
}

interface ConnectionEvents {
  readonly onFrame: (frame: Frame) => void;
  readonly onClose: () => void;
  readonly onError: (error: Error) => void;
}

export function openConnection(
  socket: Socket,
  { onFrame, onClose, onError }: ConnectionEvents,
  stallMs = STALL_MS,
): Connection {
  const reader = frameReader(onError);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let draining: Promise<void> | undefined;
  let corked = false;
  let holds = 0;

  socket.on('data', (chunk: Buffer) => {
    try {
      for (const frame of reader.read(chunk)) onFrame(frame);
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  socket.on('error', onError);
  void closed.then(onClose);

  /** Sends the frames of one turn in one system call. */
  const gather = (): void => {
    if (corked) return;
    corked = true;
    socket.cork();
    process.nextTick(() => {
      corked = false;
      socket.uncork();
    });
  };

  return {
    send(frame) {
      if (socket.destroyed || socket.writableEnded) return;
      gather();
      socket.write(encodeFrame(frame));
    },

    congested() {
      if (!socket.writableNeedDrain || socket.destroyed) return undefined;
      draining ??= new Promise<void>((resolve) => {
        const stalled = setTimeout(() => socket.destroy(new Error('a process on the bus takes no messages')), stallMs);
        const done = (): void => {
          clearTimeout(stalled);
          socket.off('drain', done);
          socket.off('close', done);
          draining = undefined;
          resolve();
        };
        socket.once('drain', done);
        socket.once('close', done);
      });
      return draining;
    },

    hold(until) {
      holds++;
      socket.pause();
      void until.then(() => {
        if (--holds === 0) socket.resume();
      });
    },

    async end() {
      socket.end();
      const late = setTimeout(() => socket.destroy(), 1_000);
      await closed;
      clearTimeout(late);
    },
  };
}
