/** `gift audit verify` (docs/evidence.md#verifying-a-log). */
import { Command } from 'commander';
import { appendEvent } from '../../commands/transact.js';
import { type LogVerified, verificationStream } from '../../domain/logVerified.js';
import {
  EvidenceError,
  noteVerifier,
  openTileFolder,
  verifyLog,
  type VerifyProgress,
} from '../../ops/evidence/index.js';
import { currentTime } from '../../lib/clock.js';
import type { EventStore } from '../../ports/eventStore.js';
import { findSealKeys } from '../../service/keys.js';
import { treeDir } from '../../service/tree.js';
import { commandLineCaller, outputOptions, recordIfPossible } from '../exports.js';
import { withLog } from '../engines.js';
import { inputFiles, notStandard } from '../fileNames.js';
import { retainedHeads, verifierOf, witnessesOf } from './heads.js';
import { examples, jsonLine } from '../output.js';
import { progressBar } from '../progress.js';
import { repeatable } from '../repeatable.js';
import { CommandFailure, interrupted, type Terminal, writeLines, usageFailure } from '../terminal.js';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { rmSync } from 'node:fs';
import { textOf } from '../../lib/files/storedText.js';
import { replaceFile } from '../../lib/files/replaceFile.js';

interface VerifyFlags {
  readonly checkpoint: readonly string[];
  readonly key: readonly string[];
  readonly progress?: string;
  readonly json?: true;
}

export function auditVerifyCommand(terminal: Terminal): Command {
  return outputOptions(
    new Command('verify')
      .summary('hold every event of the log against every head that was signed over it')
      .description(
        `Reads the whole log, also while the service goes on, and changes no event. Every head that was signed over the log must be of these events: those in the log, the last in SEAL_DIR, the last word of each witness of SEAL_WITNESSES, the last of the log that this one was copied from, and those given.
Names the first event that was altered, removed, inserted, exchanged or cut off at the end. Exit code 1 where anything is not as it was signed. A log that is as it was signed gets a record of who verified it.
A thief with access to the log and SEAL_KEY can sign another one: only a head that was kept elsewhere, or a witness' last word, finds that.`,
      )
      .option(
        '--checkpoint <file>',
        'a signed head that was kept elsewhere, or - for standard input; may be repeated',
        inputFiles,
        [],
      )
      .option(
        '--key <key>',
        "what verifies a signer's key, as name+hash+base64, beside those of SEAL_KEY; may be repeated",
        repeatable,
        [],
      )
      .option(
        '--progress <file>',
        'keep in this file how far it is, and go on from there where an earlier call was interrupted',
        notStandard('It is read by the next call: name a file'),
      ),
  )
    .addHelpText('after', examples('gift audit verify', 'gift audit verify --checkpoint /safe/head-2026-05-01.txt'))
    .action(async (flags: VerifyFlags) => runVerify(terminal, flags));
}

async function runVerify(terminal: Terminal, { checkpoint, key, progress, json }: VerifyFlags): Promise<void> {
  const retained = await retainedHeads(terminal, checkpoint);
  const verifiers = key.map((one) => verifierOf('--key', one, noteVerifier));
  const { report, fault, lines } = await withLog(terminal, async ({ config, events, stored }) => {
    const keys = findSealKeys(config);
    if (keys === undefined && verifiers.length === 0)
      await writeLines(terminal.stderr, ['gift: neither SEAL_KEY nor --key is there: signatures are not verified']);
    const bar = progressBar(terminal.stderr, { doing: 'verifying the log', unit: 'events' });
    const file = progress === undefined ? undefined : progressFile(progress, stored.logId, [...(keys ?? []), ...key]);
    const unusable = (why: string): void =>
      void terminal.stderr.write(`gift: ${progress}: ${why}; all of the log is read again\n`);
    if (file?.unusable !== undefined) unusable(file.unusable);
    const trees = treeDir(config);
    try {
      const verified = await verifyLog(
        { stored, folder: openTileFolder(trees, stored.logId), keys: keys ?? [] },
        {
          signal: terminal.signal,
          onProgress: bar,
          verifiers,
          retained,
          witnesses: witnessesOf(config, terminal),
          trees,
          progress: file && { ...file, save: (one) => file.save(one, currentTime()), unusable },
          thread: true,
        },
      );
      file?.remove();
      if (verified.report.agrees) await recordVerified(terminal, events, verified.report);
      return verified;
    } catch (error) {
      if (terminal.signal.aborted)
        throw interrupted(
          file === undefined
            ? 'interrupted; nothing was found out'
            : 'interrupted; the same call goes on from there, unless something was found wrong',
        );
      if (error instanceof EvidenceError)
        throw new CommandFailure(`${error.message}: docs/runbook.md says what to do with it (Altered log)`);
      throw error;
    } finally {
      bar.clear();
    }
  });
  await writeLines(terminal.stdout, json === true ? [jsonLine(report)] : lines);
  if (!report.agrees) throw new CommandFailure(failureOf(report, fault));
}

async function recordVerified(
  terminal: Terminal,
  log: EventStore,
  { events, verified_heads }: Verified['report'],
): Promise<void> {
  const event: LogVerified = { type: 'LogVerified', data: { events, verified_heads } };
  const context = { by: commandLineCaller(), now: currentTime() };
  await recordIfPossible(terminal, 'verification', async () =>
    appendEvent(log, verificationStream(log.logId), event, 'any', context),
  );
}

type Verified = Awaited<ReturnType<typeof verifyLog>>;

function failureOf({ heads }: Verified['report'], fault: Verified['fault']): string {
  if (fault === undefined)
    return heads === 0
      ? 'nothing was signed over this log: repeat it once the service has signed a head, or give one that was kept elsewhere with --checkpoint'
      : 'no signature was verified: give the key that signed the heads with --key';
  switch (fault.what) {
    case 'cut off':
    case 'difference':
    case 'unsequenced event':
      return `the log is not what was signed: ${fault.message}`;
    case 'missing event':
      return 'events are missing from the log, or stand elsewhere: see above';
    case 'unknown signer':
      return `${fault.message}: give the key that signed them with --key`;
    case 'wrong head':
      return `a signed head is not what it was: ${fault.message}`;
    case 'corrupted tiles':
      return fault.message;
    default:
      return fault.what satisfies never;
  }
}

const FORMAT = 'gift-verify-progress/v1';

/** The file of `gift audit verify --progress`: how far an interrupted verification has come. */
interface ProgressFile {
  /** Time of the stored progress, ISO 8601; `undefined`: none is stored. */
  readonly at: string | undefined;
  readonly kept: VerifyProgress | undefined;
  /** Why the file's progress can't be used. */
  readonly unusable: string | undefined;
  /** @throws CommandFailure */
  save(progress: VerifyProgress, at: string): void;
  remove(): void;
}

/**
 * @param keys the keys that verify signatures: a progress can't be forged without the texts of SEAL_KEY, and a progress
 * of other keys is not continued. Without any key only damage is found
 * @throws CommandFailure where it is a file of another kind; the file system's errors
 */
export function progressFile(path: string, logId: string, keys: readonly string[]): ProgressFile {
  const mac = (body: string): Buffer =>
    createHmac('sha256', JSON.stringify([FORMAT, ...keys]))
      .update(`${logId}\n${body}`)
      .digest();
  const file = {
    save(progress: VerifyProgress, at: string) {
      const body = JSON.stringify({ at, progress });
      try {
        replaceFile(path, `${FORMAT}\n${logId}\n${mac(body).toString('base64')}\n${body}\n`);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        throw new CommandFailure(`--progress ${path} can't be written (${code ?? message}): name another file`);
      }
    },
    remove: () => rmSync(path, { force: true }),
  };
  const none = { at: undefined, kept: undefined, unusable: undefined, ...file };
  const text = textOf(path);
  if (text === undefined) return none;
  const [format, of = '', seal = '', body = ''] = text.split('\n');
  // A file of another kind is not overwritten.
  if (format !== FORMAT) throw usageFailure(`--progress ${path}: it is a file of another kind`);
  if (of !== logId) return { ...none, unusable: `it is of another log, ${of}` };
  const given = Buffer.from(seal, 'base64');
  const own = mac(body);
  if (given.length !== own.length || !timingSafeEqual(given, own))
    return { ...none, unusable: 'it was altered, or is of other keys' };
  const { at, progress } = JSON.parse(body) as { readonly at: string; readonly progress: VerifyProgress };
  return { at, kept: progress, unusable: undefined, ...file };
}
