/** `gift witness`: what a merchant or an accountant runs, so that this service can't rewrite its log unnoticed. */
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { openFileLock } from '../adapters/embedded/fileLock.js';
import { type Resources, resources } from '../lib/async/resources.js';
import { makeFolder } from '../lib/files/folders.js';
import { createLogger } from '../lib/logging/logger.js';
import {
  answerAddCheckpoint,
  cosigner,
  formatVerifierKey,
  MalformedEvidenceError,
  type NoteVerifier,
  noteVerifier,
  openWitnessBook,
  parseSignerKey,
  type Witness,
  type WitnessBook,
  witnessKey,
} from '../ops/evidence/index.js';
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
  const key = keyIn(dir, flags.name);
  await writeLines(terminal.stdout, [formatVerifierKey(parseSignerKey(key).key)]);
  if (flags.printKey === true) return;
  const logs = logsOf(flags.log);
  if (logs.size === 0) throw usageFailure('--log is missing: the key of a log that this witness cosigns');

  const open = resources();
  try {
    const lock = open.add(openFileLock(join(dir, 'witness.lock')));
    if (!lock.claim()) throw new CommandFailure(`another witness runs on ${dir}: stop it first`);
    const book = bookIn(dir);
    const cosigners = [cosigner(key, () => Math.floor(Date.now() / 1_000))];
    await serve(terminal, { port, host: flags.host }, open, {
      latest: (originHash) => book.ofHash(originHash),
      add(body) {
        const answer = answerAddCheckpoint(body, {
          verifiers: (origin) => logs.get(origin),
          latest: (origin) => book.latest(origin),
          cosigners,
        });
        if (answer.status === 200) book.keep(answer.keep);
        return answer;
      },
    });
  } finally {
    await open.close();
  }
}

/** @throws CommandFailure for a malformed key, or a key of another name */
function keyIn(dir: string, name: string | undefined): string {
  try {
    const key = witnessKey(join(dir, KEY_FILE), name);
    if (key === undefined) throw usageFailure(`${dir} has no ${KEY_FILE} yet: give the name of a new key with --name`);
    const made = cosigner(key, () => 0).name;
    if (name !== undefined && made !== name)
      throw new CommandFailure(`the key in ${dir} is that of ${made}: leave out --name, or give another folder`);
    return key;
  } catch (error) {
    if (error instanceof MalformedEvidenceError) throw new CommandFailure(`${join(dir, KEY_FILE)}: ${error.message}`);
    throw error;
  }
}

/** Verifiers of the logs by origin, which is the name of a log's keys. */
function logsOf(keys: readonly string[]): ReadonlyMap<string, readonly NoteVerifier[]> {
  const logs = new Map<string, NoteVerifier[]>();
  for (const key of keys) {
    const verifier = verifierOf(key);
    logs.set(verifier.name, [...(logs.get(verifier.name) ?? []), verifier]);
  }
  return logs;
}

function verifierOf(key: string): NoteVerifier {
  try {
    return noteVerifier(key);
  } catch (error) {
    if (error instanceof MalformedEvidenceError) throw usageFailure(`--log: ${error.message}`);
    throw error;
  }
}

function bookIn(dir: string): WitnessBook {
  const file = join(dir, BOOK_FILE);
  try {
    return openWitnessBook(file);
  } catch (error) {
    if (error instanceof MalformedEvidenceError)
      throw new CommandFailure(`${file}: ${error.message}; it was left as it is, and nothing is cosigned`);
    throw error;
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
