/** `gift audit check`: offline, without a data folder and without a service. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { giftStream } from '../../domain/gift/events.js';
import { makeFolder } from '../../lib/files/folders.js';
import { checkProof, cosignatureVerifier, EvidenceError, noteVerifier } from '../../ops/evidence/index.js';
import { inputFile, nameOf, notStandard, readInputText } from '../fileNames.js';
import { examples, jsonText, printable, tableLines } from '../output.js';
import { repeatable } from '../repeatable.js';
import { CommandFailure, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { verifierOf } from './heads.js';

interface CheckFlags {
  readonly key: readonly string[];
  readonly witness: readonly string[];
  readonly gift?: string;
  readonly tlogProofs?: string;
  readonly json?: true;
}

export function auditCheckCommand(terminal: Terminal): Command {
  return new Command('check')
    .summary('check a file of proofs, offline')
    .description(
      `Checks what \`gift audit prove\` or a proof's address wrote, and shows what was proven: that each event stands in the log of a signed checkpoint.
It reads that file alone. Trust what it shows, not how the file looks; scripts/check-proof.mjs does the same in a page of code.`,
    )
    .argument('<file>', 'the file, or - for standard input', inputFile)
    .option(
      '--key <vkey>',
      "the log's key, got from elsewhere than the file; several while it is changed",
      repeatable,
      [],
    )
    .option('--witness <vkey>', 'the key of a witness that must have cosigned; several: each of them', repeatable, [])
    .option('--gift <id>', 'the gift of which the file must have every event up to the latest one shown')
    .option(
      '--tlog-proofs <folder>',
      'write each proof as c2sp.org/tlog-proof, for the checkers of others',
      notStandard('Each proof is a file of its own: name a folder'),
    )
    .option('--json', 'write JSON')
    .addHelpText(
      'after',
      examples("gift audit check gift.json --key 'gifts.example/log/…+1c1a2b3c+A…' --gift 5f2c9d6a1b7e4c80d3a1"),
    )
    .action(async (file: string, flags: CheckFlags) => runCheck(terminal, file, flags));
}

async function runCheck(terminal: Terminal, file: string, flags: CheckFlags): Promise<void> {
  if (flags.key.length === 0) throw usageFailure("--key is missing: the log's key, which the file can't vouch for");
  const keys = {
    log: flags.key.map((key) => verifierOf('--key', key, noteVerifier)),
    witnesses: flags.witness.map((key) => verifierOf('--witness', key, cosignatureVerifier)),
  };
  const text = await readInputText(terminal, file);
  const { proof, tlogProofs } = checkedOrFailed(nameOf(file), () =>
    checkProof(text, keys, flags.gift === undefined ? undefined : giftStream(flags.gift)),
  );
  if (flags.tlogProofs !== undefined) await writeProofs(tlogProofs(), flags.tlogProofs);
  await writeLines(
    terminal.stdout,
    flags.json === true ? [jsonText(proof)] : linesOf(proof, flags.gift, terminal.stdout.columns),
  );
}

function checkedOrFailed<T>(file: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof EvidenceError ? new CommandFailure(`${file} proves nothing: ${error.message}`) : error;
  }
}

async function writeProofs(
  proofs: ReturnType<ReturnType<typeof checkProof>['tlogProofs']>,
  folder: string,
): Promise<void> {
  try {
    makeFolder(folder);
    for (const { index, text } of proofs) await writeFile(join(folder, `${index}.tlog-proof`), text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`${folder} can't be written (${code ?? message}): name another folder`);
  }
}

function linesOf(
  { checkpoint, events, missing_revisions }: ReturnType<typeof checkProof>['proof'],
  giftId: string | undefined,
  columns: number | undefined,
): string[] {
  const { origin, size, root, signed_by, cosigned } = checkpoint;
  return [
    `log ${origin}, ${size} events, root ${root}`,
    `signed by ${signed_by}`,
    ...cosigned.map(({ name, at }) => `cosigned by ${name} at ${at}`),
    '',
    ...tableLines(
      ['index', 'time', 'stream', 'revision', 'type', 'data', 'not shown'],
      events.map(({ index, at, stream, revision, type, data, not_shown }) => [
        index,
        at,
        stream,
        revision,
        type,
        JSON.stringify(data),
        not_shown.join(' '),
      ]),
      columns,
    ),
    '',
    `${events.length} events are in the log as they are shown`,
    ...(giftId === undefined
      ? []
      : [
          printable(
            `every event of the gift ${giftId} is there up to the latest one shown; later ones may be left out`,
          ),
        ]),
    ...missing_revisions.map((gap) => printable(`not in this file: ${gap}`)),
    ...(cosigned.length > 0
      ? []
      : ["no witness was asked for (--witness): the log's operator alone vouches that others see the same log"]),
  ];
}
