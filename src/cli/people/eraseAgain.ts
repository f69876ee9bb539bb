/** Erasures that a restore has undone, repeated before a service opens on what was restored. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { KEY_STORE_FILE } from '../../adapters/embedded/keyStore/file.js';
import { personId } from '../../domain/erasure.js';
import { currentTime } from '../../lib/clock.js';
import { type Erasures, ErasureWaitsError, openErasures, parseErasureLine } from '../../ops/people/index.js';
import { loadConfig } from '../../service/config.js';
import { findHashKey } from '../../service/keys.js';
import { isEmbedded } from '../../service/personal.js';
import { hasEventLog } from '../dataFolder.js';
import { refuseOtherKeys, withLog } from '../engines.js';
import { inputFile, nameOf, readInputText } from '../fileNames.js';
import { examples } from '../output.js';
import { describeRefusal } from '../refusals.js';
import { CommandFailure, type Terminal, writeLines } from '../terminal.js';
import { hashOf } from './person.js';

/** Erasures repeated after a restore, for its report. */
interface ErasedAgain {
  /** Number of persons that were erased again. */
  readonly again: number;
  /** Persons whose erasure waits or failed, and why, with what finishes it. */
  readonly open: readonly { readonly person: string; readonly why: string }[];
  /** Whether any erasure failed. */
  readonly failed: boolean;
}

export const NONE_ERASED: ErasedAgain = { again: 0, open: [], failed: false };

/** Advice for the restore of a log or a key store. */
export const IF_BOTH_ARE_OLDER =
  'where log and key store are both from backups, erasures after the older one are known to neither: gift people erase-again repeats them from a list of gift people erasures';

/**
 * Repeats the erasures of a log or key store that was just restored. Without a log, or its HASH_KEY, there are none to
 * repeat.
 * @throws UnavailableError
 */
export async function eraseAgain(terminal: Terminal): Promise<ErasedAgain> {
  const config = loadConfig(terminal.env);
  const { dataDir, eventStoreUrl } = config;
  if (eventStoreUrl === undefined && !hasEventLog(dataDir)) return NONE_ERASED;
  // A missing key store is not made for this.
  if (isEmbedded(config) && !existsSync(join(dataDir, KEY_STORE_FILE))) return NONE_ERASED;
  return withLog(terminal, async (opened) =>
    findHashKey(opened.config) === undefined
      ? NONE_ERASED
      : erasedAgain(await openErasures(opened).repeat({ now: currentTime() })),
  );
}

function erasedAgain({ again, open }: Awaited<ReturnType<Erasures['repeat']>>): ErasedAgain {
  return {
    again,
    open: open.map(({ erasure, error }) => ({ person: personId(erasure.person), why: whyOpen(error) })),
    failed: open.some(({ error }) => !(error instanceof ErasureWaitsError)),
  };
}

function whyOpen(error: Error): string {
  if (error instanceof ErasureWaitsError)
    return `it waits for ${error.waitsFor.join(', ')}; a service with the role processor finishes it once that is settled`;
  const inWords = describeRefusal(error);
  if (inWords instanceof CommandFailure) return inWords.message;
  return `it failed (${error.message}); a service with the role processor tries it again, and /readyz says while it fails`;
}

export const openLines = ({ open }: ErasedAgain): string[] =>
  open.map(({ person, why }) => `${person} is not erased again: ${why}`);

/** Fails the command where an erasure failed; called after the report. @throws CommandFailure */
export function refuseFailed({ failed }: ErasedAgain): void {
  if (failed) throw new CommandFailure('not all erasures were repeated; everything else is done');
}

export function eraseAgainCommand(terminal: Terminal): Command {
  return new Command('erase-again')
    .summary('repeat erasures that a restored log and key store both do not know')
    .description(
      `Reads a list that gift people erasures has written, and erases again whom the log or the key store shows as before. Run it after both are restored, before the service starts, which finishes the rest. Repeating it does no harm.`,
    )
    .argument('<file>', 'the list, or - for standard input', inputFile)
    .addHelpText('after', examples('gift people erase-again /elsewhere/erasures.jsonl'))
    .action(async (file: string) => runEraseAgain(terminal, file));
}

async function runEraseAgain(terminal: Terminal, file: string): Promise<void> {
  const text = await readInputText(terminal, file);
  const listed = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const erasure = parseErasureLine(line);
    if (erasure === undefined)
      throw new CommandFailure(
        `line ${index + 1} of ${nameOf(file)} is not an erasure of gift people erasures; nothing was done`,
      );
    return [erasure];
  });
  const erased = await withLog(terminal, async (opened) => {
    await refuseOtherKeys(opened);
    // Without a HASH_KEY no person is erased again: the search for rows would make one.
    hashOf(opened);
    return erasedAgain(await openErasures(opened).repeat({ now: currentTime(), listed }));
  });
  await writeLines(terminal.stdout, [`${erased.again} persons were erased again`, ...openLines(erased)]);
  refuseFailed(erased);
}
