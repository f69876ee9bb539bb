import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import pino from 'pino';
import { hasReadStore } from '../../adapters/embedded/readStore/file.js';
import { trimmed } from '../../lib/invisible.js';
import { TEMPORARY_FOLDERS } from '../../lib/files/folders.js';
import { verifyErasure } from '../../ops/people/index.js';
import { type Config, loadConfig } from '../../service/config.js';
import { openReadStore } from '../../service/engines.js';
import { withLog } from '../engines.js';
import { outputOptions, recordTaking } from '../exports.js';
import { notStandard } from '../fileNames.js';
import { examples, jsonLine } from '../output.js';
import {
  CommandFailure,
  interrupted,
  readStandardInput,
  type Terminal,
  textOf,
  usageFailure,
  writeLines,
} from '../terminal.js';

interface VerifyFlags {
  readonly also?: readonly string[];
  readonly json?: true;
}

interface Value {
  /** Number of the value's line in standard input, from 1. */
  readonly line: number;
  readonly text: string;
}

const SHORTEST = 3;
const MAX_VALUES = 1_000;
const MAX_BYTES = 4_000_000;
const folderOrFile = notStandard('Standard input has the values: name a folder or file');

export function verifyErasureCommand(terminal: Terminal): Command {
  return outputOptions(
    new Command('verify-erasure')
      .summary('look for clear values in everything that is stored')
      .description(
        `Reads values from standard input, one a line: numbers (+447700900123), usernames, names, messages. Looks for them in the event log as it is stored, the read store, the key store, every file of DATA_DIR, what killed commands left in the folder for temporary files, and in the folders given.
Says what it looked at, and in which place which line was found; never the value. Exit code 1 where any was found. Values of a few characters may be found by chance.
Values are read as gift people find reads them: in any capitals, with blanks or invisible characters around them, numbers as they are dialled. It looks for text as it is, in UTF-16, escaped in JSON and URLs, and in base64. What is compressed or encrypted is not looked into: unpack logs first.`,
      )
      .option(
        '--also <folder>',
        'a folder or file beside these, such as logs and exports; may be repeated',
        (folder: string, before: readonly string[] | undefined) => [...(before ?? []), folderOrFile(folder)],
      ),
  )
    .addHelpText('after', examples('gift people verify-erasure --also /var/log/gift < values.txt'))
    .action(async (flags: VerifyFlags) => runVerify(terminal, flags));
}

async function runVerify(terminal: Terminal, { also = [], json }: VerifyFlags): Promise<void> {
  const { signal } = terminal;
  const values = await valuesOf(terminal);
  const missing = also.find((path) => !existsSync(path));
  if (missing !== undefined) throw usageFailure(`--also ${missing}: there is no such folder or file`);
  const found = new Set<number>();
  let unreadable = 0;
  const print = async (record: object, text: string): Promise<void> =>
    writeLines(terminal.stdout, [json === true ? jsonLine(record) : text]);
  const verification = verifyErasure(
    values.map(({ text }) => text),
    {
      signal,
      async onFinding({ value, in: where, location: place }) {
        const { line } = values[value] as Value;
        found.add(line);
        await print({ found: { line, in: where, place } }, `line ${line} is in the ${where}: ${place}`);
      },
      async onUnreadable(place) {
        unreadable += 1;
        await print({ unread: { place } }, `${place} was altered: it could not be looked into`);
      },
    },
  );
  try {
    await scanStores(terminal, verification.stores, { values: values.length, also });
    // Files are read only after the stores are closed: reading the files of an open store would drop its locks.
    for (const path of [...(await ownFolders(loadConfig(terminal.env))), ...also]) await verification.files(path);
  } catch (error) {
    throw signal.aborted ? interrupted('interrupted; not everything was looked at') : error;
  }
  const { events, read_store, keys, erasures, files, bytes } = verification.scanned;
  await print(
    { looked_at: verification.scanned, found: found.size, unread: unreadable },
    `looked at ${events} events, ${read_store} rows of the read store, ${keys} rows of the key store, ${erasures} erasures, ${files} files with ${bytes} bytes`,
  );
  if (found.size > 0)
    throw new CommandFailure(
      `${found.size} of ${values.length} values ${found.size === 1 ? 'was' : 'were'} found: erase the person again, and remove backups, exports and logs that hold them`,
    );
}

/** @throws CommandFailure */
async function valuesOf(terminal: Terminal): Promise<readonly Value[]> {
  const input = await readStandardInput(terminal, MAX_BYTES);
  if (input === undefined) throw usageFailure(`standard input has more than ${MAX_BYTES} bytes`);
  const values = textOf(input)
    .split(/\r?\n/)
    .map((text, index) => ({ line: index + 1, text: trimmed(text) }))
    .filter(({ text }) => text !== '');
  if (values.length === 0) throw usageFailure('standard input is empty: give values to look for, one a line');
  if (values.length > MAX_VALUES)
    throw usageFailure(`standard input has ${values.length} values, at most ${MAX_VALUES}`);
  const short = values.find(({ text }) => Array.from(text).length < SHORTEST);
  if (short !== undefined)
    throw usageFailure(`line ${short.line} has fewer than ${SHORTEST} characters: it would be found by chance`);
  return values;
}

async function scanStores(
  terminal: Terminal,
  scan: ReturnType<typeof verifyErasure>['stores'],
  request: { readonly values: number; readonly also: readonly string[] },
): Promise<void> {
  await withLog(
    terminal,
    async ({ config, open, events, keys, master }) => {
      await recordTaking(terminal, events, 'gift people verify-erasure', request, null);
      // A missing read store is not made.
      const store =
        config.mongodbUrl !== undefined || hasReadStore(config.dataDir)
          ? open.add(await openReadStore(config, events, pino({ level: 'silent' })))
          : undefined;
      await scan({ events, store, keys, master });
    },
    { asStored: true },
  );
}

async function ownFolders({ dataDir }: Config): Promise<readonly string[]> {
  const temporary = (await readdir(tmpdir())).filter((name) =>
    TEMPORARY_FOLDERS.some((prefix) => name.startsWith(prefix)),
  );
  return [...(existsSync(dataDir) ? [dataDir] : []), ...temporary.map((name) => join(tmpdir(), name))];
}
