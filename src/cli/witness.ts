/** `gift witness`: what a merchant or an accountant runs, so that this service can't rewrite its log unnoticed. */
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { openFileLock } from '../adapters/embedded/fileLock.js';
import { type Resources, resources } from '../lib/async/resources.js';
import { makeFolder } from '../lib/files/folders.js';
import { createLogger } from '../lib/logging/logger.js';
import { EvidenceError, noteVerifier, openWitness, type Witness } from '../ops/evidence/index.js';
import { verifierOf } from './audit/heads.js';
import { notStandard } from './fileNames.js';
import { examples } from './output.js';
import { repeatable } from './repeatable.js';
import { CommandFailure, type Terminal, usageFailure, writeLines } from './terminal.js';

interface WitnessFlags {
  readonly dir: string;
  readonly name?: string;
  readonly log: readonly string[];
  readonly port: string;
  readonly host: string;
  readonly printKey?: true;
}

const KEY_FILE = 'witness.key';
const BOOK_FILE = 'witness.jsonl';

export function witnessCommand(terminal: Terminal): Command {
  return new Command('witness')
    .summary('cosign the checkpoints of logs, as a witness')
    .description(
      `Answers logs over HTTP (c2sp.org/tlog-witness): cosigns a checkpoint that continues the latest one it has cosigned, and no other.
It needs no data folder of the service, and is to run where the service's operators can't reach: its folder is all that it keeps.`,
    )
    .requiredOption(
      '--dir <folder>',
      `where it keeps its key (${KEY_FILE}) and one line a log (${BOOK_FILE})`,
      notStandard('It has two files: name a folder'),
    )
    .option('--name <name>', 'name of a new key, such as accountant.example/witness')
    .option('--log <vkey>', "a log's key; several, for several logs or keys", repeatable, [])
    .option('--port <port>', 'where it listens', '8090')
    .option('--host <host>', 'the address it listens on', '127.0.0.1')
    .option('--print-key', "only write the key by which cosignatures are checked; it is made where it isn't there")
    .addHelpText(
      'after',
      `
A lost or older ${BOOK_FILE} would make it cosign what it has refused: never put one back.
${examples(
  'gift witness --dir /srv/witness --name accountant.example/witness --print-key',
  "gift witness --dir /srv/witness --log 'gifts.example/log/…+1c1a2b3c+A…'",
)}`,
    )
    .action(async (flags: WitnessFlags) => runWitness(terminal, flags));
}

async function runWitness(terminal: Terminal, flags: WitnessFlags): Promise<void> {
  const port = /^\d{1,5}$/.test(flags.port) ? Number(flags.port) : Number.NaN;
  if (!(port <= 65_535)) throw usageFailure('--port is a number from 0 to 65535');
  const dir = resolve(flags.dir);
  makeFolder(dir);
  const identity = identityIn(dir, flags.name);
  await writeLines(terminal.stdout, [identity.verifierKey]);
  if (flags.printKey === true) return;
  const logs = flags.log.map((key) => verifierOf('--log', key, noteVerifier));
  if (logs.length === 0) throw usageFailure('--log is missing: the key of a log that this witness cosigns');

  const open = resources();
  try {
    const lock = open.add(openFileLock(join(dir, 'witness.lock')));
    if (!lock.claim()) throw new CommandFailure(`another witness runs on ${dir}: stop it first`);
    const book = join(dir, BOOK_FILE);
    const witness = orFailure(
      () => identity.open(book, logs),
      (fault) => `${book}: ${fault}; it was left as it is, and nothing is cosigned`,
    );
    await serve(terminal, { port, host: flags.host }, open, witness);
  } finally {
    await open.close();
  }
}

/** @throws CommandFailure for a malformed key, or a key of another name */
function identityIn(dir: string, name: string | undefined): NonNullable<ReturnType<typeof openWitness>> {
  const file = join(dir, KEY_FILE);
  const identity = orFailure(
    () => openWitness(file, name),
    (fault) => `${file}: ${fault}`,
  );
  if (identity === undefined)
    throw usageFailure(`${dir} has no ${KEY_FILE} yet: give the name of a new key with --name`);
  if (name !== undefined && identity.name !== name)
    throw new CommandFailure(`the key in ${dir} is that of ${identity.name}: leave out --name, or give another folder`);
  return identity;
}

/** @throws CommandFailure in place of an EvidenceError */
function orFailure<T>(work: () => T, messageOf: (fault: string) => string): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof EvidenceError ? new CommandFailure(messageOf(error.message)) : error;
  }
}

/** Serves the witness until Ctrl-C. */
async function serve(
  { stdout, stderr, signal }: Terminal,
  at: { readonly port: number; readonly host: string },
  open: Resources,
  witness: Witness,
): Promise<void> {
  // The module is imported only here, so that other commands don't load it.
  const { serveWitness } = await import('../service/witness.js');
  const logger = createLogger({ level: 'info', destination: { write: (line) => void stderr.write(line) } });
  await writeLines(stdout, [`cosigning at ${await serveWitness(witness, at, logger, open)}`]);
  if (!signal.aborted) await once(signal, 'abort');
}
