/**
 * Writes log lines, many per write and off the event loop: a slow reader must not slow requests down. Pino's own
 * destination is not used: at `process.exit` it may lose the lines that another thread is writing, and it waits for
 * ever for a full pipe.
 */
import { write, writeSync } from 'node:fs';
import { blockThread } from '../async/blockThread.js';
import { systemTime } from '../clock.js';

interface LogDestination {
  /** Adds a line to the waiting ones. Never throws, never waits. */
  write(line: string): void;
  /** Writes all waiting lines synchronously, for the end of the process. */
  flushSync(): void;
}

const ENOUGH = 65_536;
const NEWLINE = 10;
/** Bytes that a pipe accepts without mixing them with a concurrent write of another thread or process (PIPE_BUF). */
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

/** The lines of one destination that are not written yet. */
interface Lines {
  readonly fd: number;
  /** Whether other processes write to the same destination. */
  readonly shared: boolean;
  /** Lines after those of `current`. */
  waiting: string;
  /** Lines that were dropped since the last write. */
  dropped: number;
  /** The lines that are being written; `undefined`: none are. */
  current: Buffer | undefined;
  /** Bytes of `current` that are written. */
  written: number;
  /** Whether another thread is writing `current`, from the offset `written` on. */
  writing: boolean;
  /** Whether no reader is left. */
  closed: boolean;
  /** Starts the write of few lines. */
  timer: NodeJS.Timeout | undefined;
  /** Repeats a write that failed. */
  retry: NodeJS.Timeout | undefined;
}

/**
 * Opens a destination that also writes waiting lines when the process exits; only a kill loses lines. `process.exit`
 * during a write may repeat lines, and split one of the repeated lines.
 * @param shared other processes write there, too: no line of up to 4,096 bytes is mixed with theirs
 */
export function openLogDestination(fd: number, { shared = false } = {}): LogDestination {
  const lines: Lines = {
    fd,
    shared,
    waiting: '',
    dropped: 0,
    current: undefined,
    written: 0,
    writing: false,
    closed: false,
    timer: undefined,
    retry: undefined,
  };
  const flush = (): void => flushSync(lines);
  process.on('exit', flush);
  return { write: (line) => add(lines, line), flushSync: flush };
}

function add(lines: Lines, line: string): void {
  if (lines.closed) return;
  if (lines.waiting.length > MOST) {
    lines.dropped += 1;
    return;
  }
  lines.waiting += line;
  startSoon(lines);
}

/** Starts the write of the waiting lines: at once when they are many, else a little later. */
function startSoon(lines: Lines): void {
  if (lines.waiting.length >= ENOUGH) start(lines);
  else lines.timer ??= setTimeout(start, WAIT_MS, lines).unref();
}

function start(lines: Lines): void {
  clearTimeout(lines.timer);
  lines.timer = undefined;
  if (lines.closed || lines.current !== undefined || lines.waiting === '') return;
  take(lines);
  writeRest(lines);
}

/** Makes the waiting lines, and the number of dropped ones, those that are written. */
function take(lines: Lines): Buffer {
  const { dropped } = lines;
  if (dropped > 0)
    lines.waiting += `${JSON.stringify({ level: 'warn', time: systemTime(), dropped, msg: 'log lines were dropped: the reader was too slow, or the disk full' })}\n`;
  const taken = Buffer.from(lines.waiting);
  lines.dropped = 0;
  lines.current = taken;
  lines.written = 0;
  lines.waiting = '';
  return taken;
}

function writeRest(lines: Lines): void {
  const { fd, shared, current, written: from } = lines;
  if (current === undefined) return;
  lines.writing = true;
  const end = shared ? pieceEnd(current, from) : current.length;
  write(fd, current, from, end - from, null, (error, written) => {
    lines.writing = false;
    if (error?.code === 'EAGAIN') return void setTimeout(writeRest, FULL_MS, lines);
    if (error !== null) return failed(lines, error);
    lines.written += written;
    if (lines.current !== undefined && lines.written < lines.current.length) return writeRest(lines);
    lines.current = undefined;
    if (lines.waiting !== '') startSoon(lines);
  });
}

function failed(lines: Lines, { code }: NodeJS.ErrnoException): void {
  if (OVER.has(code)) return close(lines);
  lines.retry ??= setTimeout(() => {
    lines.retry = undefined;
    writeRest(lines);
  }, TROUBLE_MS).unref();
}

function close(lines: Lines): void {
  lines.closed = true;
  lines.waiting = '';
  lines.current = undefined;
}

function flushSync(lines: Lines): void {
  let tries = 0;
  startLineAgain(lines);
  while (!lines.closed && (lines.current !== undefined || lines.waiting !== '')) {
    const current = lines.current ?? take(lines);
    try {
      lines.written += writeSync(lines.fd, current, lines.written, pieceEnd(current, lines.written) - lines.written);
      if (lines.written >= current.length) lines.current = undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return failed(lines, error as NodeJS.ErrnoException);
      if (tries++ >= FULL_TRIES) return close(lines);
      blockThread(FULL_MS);
    }
  }
}

/** Starts the line in progress again on a new line, since the other thread may have written a part of it. */
function startLineAgain(lines: Lines): void {
  const { writing, current, written } = lines;
  if (!writing || current === undefined) return;
  const start = written === 0 ? 0 : current.lastIndexOf(NEWLINE, written - 1) + 1;
  lines.writing = false;
  lines.current = Buffer.concat([Buffer.from('\n'), current.subarray(start)]);
  lines.written = 0;
}

/** End offset of the next piece to write: the whole lines that fit into `WHOLE` bytes, or a part of a longer line. */
function pieceEnd(lines: Buffer, from: number): number {
  const most = from + WHOLE;
  if (most >= lines.length) return lines.length;
  const end = lines.lastIndexOf(NEWLINE, most - 1) + 1;
  return end > from ? end : most;
}
