/** Runs command lines within the test's process. */
import { Readable, Writable } from 'node:stream';
import { run } from '../../../src/cli/program.js';
import type { Terminal } from '../../../src/cli/terminal.js';

/** What a command line came to, and what it said. */
export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What a command line came to. */
export interface Ran extends Said {
  /** Each line of `out` as JSON. */
  records(): Record<string, unknown>[];
}

/** Its code and words alone: to be compared. */
export const saidBy = ({ code, out, err }: Ran): Said => ({ code, out, err });

/** Takes what is written. */
export function sink(tty = false): { readonly stream: Writable & { isTTY?: boolean }; text(): string } {
  let text = '';
  const stream: Writable & { isTTY?: boolean } = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  if (tty) stream.isTTY = true;
  return { stream, text: () => text };
}

/** Runs `gift …` on a data folder (or with the settings given). `tty`: standard error is a terminal. */
export async function gift(
  dataDir: string | Readonly<Record<string, string>>,
  args: readonly string[],
  more: Partial<Terminal> & { readonly tty?: boolean } = {},
): Promise<Ran> {
  const { tty, ...terminal } = more;
  const out = sink();
  const err = sink(tty);
  const env = typeof dataDir === 'string' ? { DATA_DIR: dataDir } : dataDir;
  const code = await run(
    {
      stdin: Readable.from([]),
      stdout: out.stream,
      stderr: err.stream,
      env,
      signal: new AbortController().signal,
      ...terminal,
    },
    args,
  );
  return {
    code,
    out: out.text(),
    err: err.text(),
    records: () =>
      out
        .text()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}
