/** A command's environment, which tests can replace (docs/commands.md#settings-output-and-exit-codes). */
import { createInterface } from 'node:readline';
import { addAbortSignal, type Readable, type Writable } from 'node:stream';

/** Exit codes: 0 done; 1 refused, failed or found wrong; 2 wrong usage; 130 interrupted. */
export const EXIT = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Lowers the priority for long work. Absent where the process is not the command's own. */
  readonly yieldProcessor?: () => void;
  /** Signal that Ctrl-C aborts. */
  readonly signal: AbortSignal;
}

/** Ends a command. The message is one line for standard error that says what to do. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: number;
  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const usageFailure = (message: string): CommandFailure => new CommandFailure(message, EXIT.usage);

/** `message` says what to do. */
export const interrupted = (message: string): CommandFailure => new CommandFailure(message, EXIT.interrupted);

/** Writes lines at the reader's pace. When the reader has left (`| head`), the rest is dropped. */
export async function writeLines(out: Writable, lines: Iterable<string>): Promise<void> {
  for (const line of lines) if (!(await writeText(out, `${line}\n`))) return;
}

/** @returns false once the reader has left */
export async function writeText(out: Writable, text: string): Promise<boolean> {
  if (out.destroyed || out.errored !== null) return false;
  if (!out.write(text)) await drained(out);
  return !out.destroyed && out.errored === null;
}

/** Waits until the output takes more text; a closed pipe ends the wait, too. */
async function drained(out: Writable): Promise<void> {
  await new Promise<void>((resolve) => {
    const events = ['drain', 'close', 'error'];
    const go = (): void => {
      for (const event of events) out.off(event, go);
      resolve();
    };
    for (const event of events) out.on(event, go);
  });
}

/**
 * Reads standard input to its end; `undefined`: it has more than `maxBytes`.
 * @throws CommandFailure when interrupted
 */
export async function readStandardInput({ stdin, signal }: Terminal, maxBytes: number): Promise<Buffer | undefined> {
  return readAtMost(stdin, maxBytes, signal);
}

/**
 * The text of an argument; `-` stands for the text of standard input, since other users see a command line. Empty where
 * standard input is too long.
 * @throws CommandFailure for input that is not UTF-8
 */
export async function orStandardInput(terminal: Terminal, text: string): Promise<string> {
  if (text !== '-') return text;
  return textOf((await readStandardInput(terminal, MAX_TEXT_BYTES)) ?? Buffer.alloc(0)).trim();
}

/** Text of standard input, without a byte order mark. @throws CommandFailure for what is not UTF-8 */
export function textOf(input: Uint8Array): string {
  const wide = (input[0] === 0xff && input[1] === 0xfe) || (input[0] === 0xfe && input[1] === 0xff);
  if (wide || input.includes(0))
    throw usageFailure('standard input is UTF-16: give UTF-8 (in PowerShell: Set-Content -Encoding utf8)');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(input);
  } catch {
    throw usageFailure('standard input is not UTF-8 text');
  }
}

const MAX_TEXT_BYTES = 1_000;

/**
 * Puts a question to the person at the terminal.
 * @returns whether the answer is `yes`; the end of input is another answer
 * @throws CommandFailure when interrupted
 */
export async function isAnsweredYes({ stdin, stderr, signal }: Terminal, question: string): Promise<boolean> {
  stderr.write(`${question} Type yes to go on: `);
  const lines = createInterface({ input: stdin, signal });
  try {
    for await (const line of lines) return line.trim() === 'yes';
    if (signal.aborted) throw interrupted('interrupted; nothing was done');
    return false;
  } finally {
    lines.close();
  }
}

/**
 * Reads a stream to its end; `undefined`: it has more than `maxBytes`, and the rest is not read.
 * @throws CommandFailure when interrupted; the stream's own error
 */
export async function readAtMost(stream: Readable, maxBytes: number, signal: AbortSignal): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of addAbortSignal(signal, stream)) {
      bytes += (chunk as Uint8Array).length;
      if (bytes > maxBytes) return undefined;
      chunks.push(Buffer.from(chunk as Uint8Array));
    }
  } catch (error) {
    if (signal.aborted)
      throw new CommandFailure('interrupted before anything was read; nothing was done', EXIT.interrupted);
    throw error;
  }
  return Buffer.concat(chunks);
}
