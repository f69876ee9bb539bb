/** `gift audit check`: offline, without a data folder and without a service. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { giftStream } from '../../domain/gift/events.js';
import { makeFolder } from '../../lib/files/folders.js';
import {
  checkBundle,
  type CheckedBundle,
  cosignatureVerifier,
  formatTlogProof,
  MalformedEvidenceError,
  type NoteVerifier,
  noteVerifier,
  parseBundle,
  type ProofBundle,
  type ShownData,
  type TrustedKeys,
  UnprovenEventError,
  UntrustedNoteError,
} from '../../ops/evidence/index.js';
import { inputFile, nameOf, notStandard, readInputText } from '../fileNames.js';
import { examples, jsonText, printable, tableLines } from '../output.js';
import { repeatable } from '../repeatable.js';
import { CommandFailure, type Terminal, usageFailure, writeLines } from '../terminal.js';

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
  const keys: TrustedKeys = {
    log: flags.key.map((key) => refusingKey('--key', key, noteVerifier)),
    witnesses: flags.witness.map((key) => refusingKey('--witness', key, cosignatureVerifier)),
  };
  const { bundle, checked } = checkedOrFailed(await readInputText(terminal, file), nameOf(file), keys, flags.gift);
  if (flags.tlogProofs !== undefined) await writeProofs(bundle, flags.tlogProofs);
  await writeLines(terminal.stdout, flags.json === true ? [jsonText(jsonOf(checked))] : inWords(checked, flags.gift));
}

function refusingKey(option: string, key: string, verifierOf: (key: string) => NoteVerifier): NoteVerifier {
  try {
    return verifierOf(key);
  } catch (error) {
    if (error instanceof MalformedEvidenceError) throw usageFailure(`${option}: ${error.message}`);
    throw error;
  }
}

function checkedOrFailed(
  text: string,
  file: string,
  keys: TrustedKeys,
  giftId: string | undefined,
): { readonly bundle: ProofBundle; readonly checked: CheckedBundle } {
  try {
    const bundle = parseBundle(text);
    return { bundle, checked: checkBundle(bundle, keys, giftId === undefined ? undefined : giftStream(giftId)) };
  } catch (error) {
    const isKnown =
      error instanceof MalformedEvidenceError ||
      error instanceof UntrustedNoteError ||
      error instanceof UnprovenEventError;
    throw isKnown ? new CommandFailure(`${file} proves nothing: ${error.message}`) : error;
  }
}

async function writeProofs({ checkpoint, events }: ProofBundle, folder: string): Promise<void> {
  try {
    makeFolder(folder);
    for (const { index, inclusion } of events)
      await writeFile(join(folder, `${index}.tlog-proof`), formatTlogProof({ index, inclusion, checkpoint }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`${folder} can't be written (${code ?? message}): name another folder`);
  }
}

function jsonOf({ checkpoint, signedBy, cosigned, events }: CheckedBundle): object {
  const { origin, size, root } = checkpoint;
  return {
    checkpoint: { origin, size, root: root.toString('base64'), signed_by: signedBy, cosigned },
    events: events.map(({ index, id, stream, revision, type, at, data, metadata }) => ({
      index,
      id,
      stream,
      revision,
      type,
      at,
      data: shown(data),
      metadata: 'hash' in metadata ? null : metadata.value,
      not_shown: keptIn(data),
    })),
    missing_revisions: missingRevisions(events),
  };
}

function inWords(checked: CheckedBundle, giftId: string | undefined): string[] {
  const { checkpoint, signedBy, cosigned, events } = checked;
  return [
    `log ${checkpoint.origin}, ${checkpoint.size} events, root ${checkpoint.root.toString('base64')}`,
    `signed by ${signedBy}`,
    ...cosigned.map(({ name, at }) => `cosigned by ${name} at ${at}`),
    '',
    ...tableLines(
      ['index', 'time', 'stream', 'revision', 'type', 'data', 'not shown'],
      events.map(({ index, at, stream, revision, type, data }) => [
        index,
        at,
        stream,
        revision,
        type,
        JSON.stringify(shown(data)),
        keptIn(data).join(' '),
      ]),
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
    ...missingRevisions(events).map((gap) => printable(`not in this file: ${gap}`)),
    ...(cosigned.length > 0
      ? []
      : ["no witness was asked for (--witness): the log's operator alone vouches that others see the same log"]),
  ];
}

/** Data without the withheld fields; null: all fields are withheld. */
function shown(data: ShownData): object | null {
  if ('hash' in data) return null;
  const values = new Map(data.shown.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    Object.entries(data.value).flatMap(([name, value]) =>
      values.has(name) ? [[name, values.get(name)]] : data.apart.includes(name) ? [] : [[name, value]],
    ),
  );
}

const keptIn = (data: ShownData): readonly string[] =>
  'hash' in data ? ['all'] : data.apart.filter((name) => !data.shown.some((field) => field.name === name));

/** How many events of each stream are missing before the latest one shown. */
function missingRevisions(events: CheckedBundle['events']): string[] {
  const streams = new Map<string, Set<number>>();
  for (const { stream, revision } of events)
    streams.set(stream, (streams.get(stream) ?? new Set<number>()).add(revision));
  return Array.from(streams).flatMap(([stream, revisions]) => {
    const missing = Math.max(...revisions) + 1 - revisions.size;
    return missing === 0 ? [] : [`${missing} earlier events of ${stream}`];
  });
}
