/** A runbook as a test takes it: chapters with commands, each with what it is to show. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEADLINE_MS } from '../assertions/until.js';

/** A command of the runbook. */
export interface RunbookCommand {
  readonly line: number;
  readonly command: string;
  /** Lines that its output holds, in this order; `…` stands for anything. */
  readonly expected: readonly string[];
  readonly exitCode: number;
}

/**
 * Commands by chapter, in order; those before the first chapter are under `''`. @throws Error for a block that is no
 * console's
 */
export function readRunbook(file: string): Map<string, RunbookCommand[]> {
  const chapters = new Map<string, RunbookCommand[]>();
  let chapter = '';
  let fence: string | undefined;
  for (const [index, text] of readFileSync(file, 'utf8').split('\n').entries()) {
    const commands = chapters.get(chapter) ?? [];
    chapters.set(chapter, commands);
    const [, opened] = /^```(\w*)$/.exec(text) ?? [];
    if (opened !== undefined) {
      if (fence === undefined && opened !== 'console')
        throw new Error(
          `line ${index + 1}: a block of ${opened === '' ? 'no kind' : opened}: commands stand in blocks of console`,
        );
      fence = fence === undefined ? opened : undefined;
    } else if (fence === undefined) {
      chapter = /^## (.+)$/.exec(text)?.[1] ?? chapter;
    } else if (text.startsWith('$ ')) {
      commands.push({ line: index + 1, command: text.slice(2), expected: [], exitCode: 0 });
    } else {
      const last = commands.pop();
      if (last === undefined) throw new Error(`line ${index + 1}: output of no command`);
      const [, code] = /^\(exit code (\d+)\)$/.exec(text) ?? [];
      commands.push(
        code === undefined ? { ...last, expected: [...last.expected, text] } : { ...last, exitCode: Number(code) },
      );
    }
  }
  return chapters;
}

/** What a command came to; standard error and output together, as a console shows them. */
export interface Ran {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a command as typed, in `sh`. */
async function runTyped(command: string, env: Readonly<Record<string, string>>): Promise<Ran> {
  const child = spawn('sh', ['-c', command], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  return { code, output };
}

/** The first expected line that the output does not hold, in order; `undefined`: it holds all. */
export function missingIn(
  output: string,
  { expected, exitCode }: Pick<RunbookCommand, 'expected' | 'exitCode'>,
  code: number | null,
): string | undefined {
  if (code !== exitCode) return `exit code ${exitCode}, not ${code}`;
  const lines = output.split('\n');
  let from = 0;
  for (const wanted of expected) {
    const pattern = new RegExp(
      `^${wanted
        .split('…')
        .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        .join('.*')}$`,
    );
    const found = lines.findIndex((line, index) => index >= from && pattern.test(line));
    if (found < 0) return wanted;
    from = found + 1;
  }
  return undefined;
}

/**
 * Runs a command until it shows what it is to show: at once where it changes something, within 20 s where it only
 * looks. @throws Error with what it showed
 */
export async function runCommand(command: RunbookCommand, env: Readonly<Record<string, string>>): Promise<string> {
  const looks =
    !/^gift .*(rebuild|repair|rollback|retry|discard|backup|restore|refund|resend|extend|reassign|unredeem|replace|block|erase)\b/.test(
      command.command,
    );
  for (const until = performance.now() + DEADLINE_MS; ; await sleep(100)) {
    const { code, output } = await runTyped(command.command, env);
    const missing = missingIn(output, command, code);
    if (missing === undefined) return output;
    if (!looks || performance.now() > until)
      throw new Error(
        `docs/runbook.md, line ${command.line}: ${command.command}\nshows no: ${missing}\nbut: ${output}`,
      );
  }
}
