/** Writes log lines, many per write and off the event loop: a slow reader must not slow requests down. */
import { write, writeSync } from 'node:fs';
import { blockThread } from '../async/blockThread.js';
import { systemTime } from '../clock.js';

export interface LogDestination {
  /** Adds a line to the waiting ones. Never throws, never waits. */
  write(line: string): void;
  /** Writes all waiting lines synchronously, for the end of the process. */
  flushSync(): void;
}

const ENOUGH = 65_536;
const NEWLINE = 10;
/** Bytes that a pipe accepts without mixing them with a concurrent write of another thread (PIPE_BUF). */
const WHOLE = 4_096;
const WAIT_MS = 100;
/** Characters that wait to be written at most; further lines are dropped, and their number is logged. */
const MOST = 16_777_216;
const FULL_MS = 10;
/** Tries of the last write while a pipe is full, 10 ms apart: about a second. */
const FULL_TRIES = 100;
/** Error codes that show that no reader is left. After other errors, such as a full disk, later writes may succeed. */
const OVER: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EBADF']);
const TROUBLE_MS = 1_000;

/**
 * Opens a destination that also writes waiting lines when the process exits; only a kill loses lines. `process.exit`
 * during a write may repeat lines, and split one of the repeated lines.
 */
export function openLogDestination(fd: number): LogDestination {
  let waiting = '';
  let dropped = 0;
  let current: Buffer | undefined;
  let from = 0;
  /** Whether another thread is writing `current`, from the offset `from` on. */
  let writing = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let trying: NodeJS.Timeout | undefined;

  function take(): void {
    if (dropped > 0)
      waiting += `${JSON.stringify({ level: 'warn', time: systemTime(), dropped, msg: 'log lines were dropped: the reader was too slow, or the disk full' })}\n`;
    dropped = 0;
    current = Buffer.from(waiting);
    from = 0;
    waiting = '';
  }

  function proceed(): void {
    clearTimeout(timer);
    timer = undefined;
    if (closed || current !== undefined || waiting === '') return;
    take();
    step();
  }

  function step(): void {
    if (current === undefined) return;
    writing = true;
    write(fd, current, from, current.length - from, null, (error, written) => {
      writing = false;
      if (error?.code === 'EAGAIN') return void setTimeout(step, FULL_MS);
      if (error !== null) return failed(error);
      from += written;
      if (current !== undefined && from < current.length) return step();
      current = undefined;
      if (waiting.length >= ENOUGH) proceed();
      else if (waiting !== '') later();
    });
  }

  function later(): void {
    timer ??= setTimeout(proceed, WAIT_MS).unref();
  }

  function failed({ code }: NodeJS.ErrnoException): void {
    if (OVER.has(code)) return close();
    trying ??= setTimeout(() => {
      trying = undefined;
      step();
    }, TROUBLE_MS).unref();
  }

  function close(): void {
    closed = true;
    waiting = '';
    current = undefined;
  }

  /** Starts the line in progress again on a new line, since the other thread may have written a part of it. */
  function startLineAgain(): void {
    if (!writing || current === undefined) return;
    writing = false;
    const start = from === 0 ? 0 : current.lastIndexOf(NEWLINE, from - 1) + 1;
    current = Buffer.concat([Buffer.from('\n'), current.subarray(start)]);
    from = 0;
  }

  /** End offset of the next piece to write: the whole lines that fit into `WHOLE` bytes, or a part of a longer line. */
  function pieceEnd(lines: Buffer): number {
    const most = from + WHOLE;
    if (most >= lines.length) return lines.length;
    const end = lines.lastIndexOf(NEWLINE, most - 1) + 1;
    return end > from ? end : most;
  }

  function flushSync(): void {
    let tries = 0;
    startLineAgain();
    while (!closed && (current !== undefined || waiting !== '')) {
      if (current === undefined) take();
      if (current === undefined) return;
      try {
        from += writeSync(fd, current, from, pieceEnd(current) - from);
        if (from >= current.length) current = undefined;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return failed(error as NodeJS.ErrnoException);
        if (tries++ >= FULL_TRIES) return close();
        blockThread(FULL_MS);
      }
    }
  }

  process.on('exit', flushSync);
  return {
    write(line) {
      if (closed) return;
      if (waiting.length > MOST) {
        dropped += 1;
        return;
      }
      waiting += line;
      if (waiting.length >= ENOUGH) proceed();
      else later();
    },
    flushSync,
  };
}
