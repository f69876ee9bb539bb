/**
 * The names of files on the command line: `-` is never the name of a file (docs/commands.md#file-names). Every
 * argument and option that names a file has one of these functions as its parser.
 */
import { constants } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { InvalidArgumentError } from 'commander';
import { CommandFailure, readAtMost, readStandardInput, type Terminal } from './terminal.js';

const STANDARD = '-';

/** A file that is read once, from its beginning to its end. */
export const inputFile = (file: string): string => file;

/** Input files of an option that may be given several times, with `[]` as its default. */
export function inputFiles(file: string, before: readonly string[]): readonly string[] {
  if (file === STANDARD && before.includes(STANDARD))
    throw new InvalidArgumentError('Standard input is read once: name files for the others.');
  return [...before, file];
}

/** A file or folder that neither standard input nor standard output can be. */
export const notStandard =
  (why: string) =>
  (file: string): string => {
    if (file === STANDARD) throw new InvalidArgumentError(`${why}; ./- is one of that name.`);
    return file;
  };

/** Name of the file for messages. */
export const nameOf = (file: string): string => (file === STANDARD ? 'standard input' : file);

/**
 * The bytes of an `inputFile`. `undefined`: more than `MAX_INPUT_BYTES`.
 * @throws the file system's errors; CommandFailure when interrupted
 */
export async function readInput(terminal: Terminal, file: string): Promise<Buffer | undefined> {
  if (file === STANDARD) return readStandardInput(terminal, MAX_INPUT_BYTES);
  const found = await stat(file);
  if (!found.isFile()) return readAtMost(createReadStream(file), MAX_INPUT_BYTES, terminal.signal);
  return found.size > MAX_INPUT_BYTES ? undefined : readFile(file);
}

/** The text of an `inputFile`, without a byte order mark: editors and PowerShell write one. @throws CommandFailure */
export async function readInputText(terminal: Terminal, file: string): Promise<string> {
  const bytes = await readInput(terminal, file).catch((error: NodeJS.ErrnoException) => {
    throw error instanceof CommandFailure
      ? error
      : new CommandFailure(`${nameOf(file)} can't be read (${error.code ?? error.message})`);
  });
  if (bytes === undefined) throw new CommandFailure(`${nameOf(file)} has more than ${MAX_INPUT_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}

export const MAX_INPUT_BYTES = constants.MAX_STRING_LENGTH;
