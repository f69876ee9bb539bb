/**
 * Where log lines go. Lines are collected and written many at once beside the event loop: a slow reader of the log must
 * not slow requests down, and one write a line would cost more than making the line.
 */
import { write, writeSync } from 'node:fs';
import { currentTime } from '../clock.js';

/** What log lines are handed to. */
export interface LogDestination {
  /** Takes one line with its end. Never throws, never waits. */
  write(line: string): void;
  /**
   * Writes at once what is waiting; returns when it has been handed to the operating system. For the end of the
   * process.
   */
  flushSync(): void;
}

/** Characters that are collected before they are written ... */
const ENOUGH = 65_536;
/** ... or how long, in milliseconds, the first of them waits. */
const WAIT_MS = 100;
/** A reader that falls behind further than so many characters loses lines; how many is told in the log. */
const MOST = 16_777_216;
/** How long a full pipe is left alone, in milliseconds. */
const FULL_MS = 10;
/** How often `flushSync` tries a full pipe again: about a second. */
const FULL_TRIES = 100;
/**
 * Nobody will ever read what is written there. After anything else, a full disk above all, lines can be written another
 * time.
 */
const OVER: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EBADF']);
/** How long a place that could not be written to is left alone, in milliseconds. */
const TROUBLE_MS = 1_000;

/**
 * Lines to a file descriptor. What is waiting when the process exits is written then; only a kill loses it.
 * Where `process.exit` comes in the middle of a write, those lines may stand twice rather than not at all.
 */
export function openLogDestination(fd: number): LogDestination {
  let waiting = '';
  let dropped = 0;
  /** What is being written, from `from` on. */
  let current: Buffer | undefined;
  let from = 0;
  /** Nobody reads any more: there is nowhere to say so either. */
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let trying: NodeJS.Timeout | undefined;

  function take(): void {
    if (dropped > 0)
      waiting += `${JSON.stringify({ level: 'warn', time: currentTime(), dropped, msg: 'log lines were dropped: the reader was too slow, or the disk full' })}\n`;
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
    write(fd, current, from, current.length - from, null, (error, written) => {
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

  function flushSync(): void {
    let tries = 0;
    while (!closed && (current !== undefined || waiting !== '')) {
      if (current === undefined) take();
      if (current === undefined) return;
      try {
        from += writeSync(fd, current, from);
        if (from >= current.length) current = undefined;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return failed(error as NodeJS.ErrnoException);
        if (tries++ >= FULL_TRIES) return close();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_MS);
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
