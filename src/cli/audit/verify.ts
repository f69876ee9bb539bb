/** `gift audit verify` (docs/evidence.md#verifying-a-log). */
import { Command } from 'commander';
import {
  continuedHeads,
  differenceInWords,
  eventInWords,
  faultInWords,
  type Findings,
  findReadableRules,
  firstFault,
  leavesOf,
  MalformedEvidenceError,
  NOT_NEXT,
  openLeafThread,
  type OtherSignedLog,
  otherSignedLogs,
  type PlacedEvent,
  strayInWords,
  type Verification,
  verifiersOf,
  verifyLog,
} from '../../ops/evidence/index.js';
import { shownStream } from '../../domain/streamName.js';
import { currentTime } from '../../lib/clock.js';
import { MASK } from '../../lib/mask.js';
import { findSealKeys } from '../../service/keys.js';
import { treeDir, treeFolder } from '../../service/tree.js';
import { withLog } from '../engines.js';
import { outputOptions } from '../exports.js';
import { inputFiles, notStandard } from '../fileNames.js';
import { givenVerifier, keptHeads, lastWords } from './heads.js';
import { examples, jsonLine } from '../output.js';
import { progressBar } from '../progress.js';
import { progressFile } from './progressFile.js';
import { repeatable } from '../repeatable.js';
import { CommandFailure, interrupted, type Terminal, writeLines } from '../terminal.js';

/** Number of events from which a second thread saves more time than it takes to start. */
const LARGE_LOG = 20_000;

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
Names the first event that was altered, removed, inserted, exchanged or cut off at the end. Exit code 1 where anything is not as it was signed.
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
    { csv: false },
  )
    .addHelpText('after', examples('gift audit verify', 'gift audit verify --checkpoint /safe/head-2026-05-01.txt'))
    .action(async (flags: VerifyFlags) => runVerify(terminal, flags));
}

async function runVerify(terminal: Terminal, { checkpoint, key, progress, json }: VerifyFlags): Promise<void> {
  const kept = await keptHeads(terminal, checkpoint);
  const given = key.map(givenVerifier);
  const verification = await withLog(terminal, async ({ config, stored, open }) => {
    const keys = findSealKeys(config);
    if (keys === undefined && given.length === 0)
      await writeLines(terminal.stderr, ['gift: neither SEAL_KEY nor --key is there: signatures are not verified']);
    const bar = progressBar(terminal.stderr, { doing: 'verifying the log', unit: 'events' });
    // A position of the embedded log is the number of its event.
    const end = stored.engine === 'embedded' ? Number((await stored.end()) ?? 0) : undefined;
    const rules = await findReadableRules(stored);
    const thread = rules === undefined || (end ?? 0) < LARGE_LOG ? undefined : open.add(openLeafThread(rules));
    const known = verifiersOf(keys ?? [], given);
    const file = progress === undefined ? undefined : progressFile(progress, stored.logId, [...(keys ?? []), ...key]);
    const anew = (why: string): void =>
      void terminal.stderr.write(`gift: ${progress}: ${why}; all of the log is read again\n`);
    if (file?.unusable !== undefined) anew(file.unusable);
    const trees = treeDir(config);
    const folder = treeFolder(trees, stored.logId);
    const continued = await continuedHeads(stored, known);
    try {
      const found = await verifyLog(
        {
          stored,
          leaves: rules === undefined ? undefined : leavesOf(rules),
          thread,
          folder,
          verifiersOf: known,
          kept,
          witnessed: [...(await lastWords(terminal, config.sealWitnesses, stored, known)), ...continued],
        },
        {
          signal: terminal.signal,
          onProgress: (events) => bar(events, end),
          progress: file && { kept: file.kept, save: (one) => file.save(one, currentTime()), unusable: anew },
        },
      );
      file?.remove();
      return {
        ...found,
        agrees: found.agrees && isVouchedFor(found),
        other_logs: await otherSignedLogs(trees, stored.logId, continued, known),
        continued_at: found.continued_from === 0 ? null : (file?.at ?? null),
      };
    } catch (error) {
      if (terminal.signal.aborted)
        throw interrupted(
          file === undefined
            ? 'interrupted; nothing was found out'
            : 'interrupted; the same call goes on from there, unless something was found wrong',
        );
      if (error instanceof MalformedEvidenceError)
        throw new CommandFailure(`${error.message}: docs/runbook.md says what to do with it (Altered log)`);
      throw error;
    } finally {
      bar.clear();
    }
  });
  await writeLines(terminal.stdout, json === true ? [jsonLine(shown(verification))] : inWords(verification));
  if (!verification.agrees) throw new CommandFailure(failureOf(verification));
}

interface Verified extends Verification {
  /** Time when the earlier call was interrupted that this one continues; null: this call has read the whole log. */
  readonly continued_at: string | null;
  /** Logs whose heads SEAL_DIR holds, and which this log does not continue. */
  readonly other_logs: readonly OtherSignedLog[];
}

/** Whether a signature vouches for the log: heads without a verified signature may be forged. */
const isVouchedFor = ({ events, verified_heads }: Verification): boolean => events === 0 || verified_heads > 0;

/** The verification, with keyed hashes in the names of streams masked. */
function shown({ difference, gaps, stream_gaps, strays, ...verification }: Verified): object {
  const place = <E extends PlacedEvent>(event: E | null): E | null =>
    event === null ? null : { ...event, stream: shownStream(event.stream, MASK) };
  const placed = <G extends { readonly event: PlacedEvent }>({ found, first }: Findings<G>): object => ({
    found,
    first: first.map((gap) => ({ ...gap, event: place(gap.event) })),
  });
  return {
    ...verification,
    difference:
      difference === null ? null : { ...difference, event: place(difference.event), before: place(difference.before) },
    gaps: placed(gaps),
    stream_gaps: placed(stream_gaps),
    strays: placed(strays),
  };
}

function* inWords({ agrees, events, position, root, heads, agreed_size, ...found }: Verified): Generator<string> {
  if (found.continued_at !== null)
    yield `the first ${found.continued_from} events were read by a call that was interrupted at ${found.continued_at}, and are not read again`;
  yield `${events} events, up to position ${position ?? 'none'}; root ${root}`;
  yield `${heads} signed heads; the last that the log agrees with is of ${agreed_size} events, ${events - agreed_size} stand behind it`;
  if (found.unverified_heads > 0)
    yield `${found.unverified_heads} of the heads are not signed by a known key: their signatures are not verified`;
  if (agrees) yield 'all is as it was signed';
  for (const { log_id, events: size, folder } of found.other_logs)
    yield `${folder} has a signed head of another log, ${log_id}, of ${size} events, which this log does not continue: that is so after a restore from an older backup; else this log may be that one, altered and with another id`;
  if (found.difference !== null) yield differenceInWords(found.difference);
  for (const { from, size, why } of found.wrong_heads.first) yield `${from}, of ${size} events: ${why}`;
  yield* further(found.wrong_heads, 'heads');
  for (const stray of found.strays.first) yield strayInWords(stray);
  yield* further(found.strays, 'events there');
  for (const { after, event } of found.gaps.first)
    yield `events are missing between position ${after ?? 'none'} and ${eventInWords(event)}`;
  yield* further(found.gaps, 'gaps');
  for (const { event } of found.stream_gaps.first) yield `${NOT_NEXT}${eventInWords(event)}`;
  yield* further(found.stream_gaps, 'gaps in streams');
  if (found.spoilt_tiles)
    yield 'tiles in SEAL_DIR are not those that were signed: remove them, and the service makes them anew from the log';
}

function* further({ found, first }: Findings<unknown>, what: string): Generator<string> {
  if (found > first.length) yield `and ${found - first.length} further ${what}`;
}

function failureOf(found: Verification): string {
  const fault = firstFault(found);
  if (fault === undefined && found.heads === 0)
    return 'nothing was signed over this log: repeat it once the service has signed a head, or give one that was kept elsewhere with --checkpoint';
  if (fault === undefined && !isVouchedFor(found))
    return 'no signature was verified: give the key that signed the heads with --key';
  switch (fault?.what) {
    case 'difference':
    case 'stray':
      return `the log is not what was signed: ${faultInWords(fault)}`;
    case 'missing event':
      return 'events are missing from the log, or stand elsewhere: see above';
    case 'unknown signer':
      return `${fault.words}: give the key that signed them with --key`;
    case 'wrong head':
      return 'a signed head is not what it was: see above';
    default:
      return 'tiles are not what was signed; the log is';
  }
}
