import { Command } from 'commander';
import type { Person } from '../../domain/erasure.js';
import { erasePerson, erasureDeps, erasureView, ErasureWaitsError, personRecord } from '../../ops/people/index.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { commandLineContext } from '../caller.js';
import { type OpenedStores, withStores } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { refusalInWords } from '../refusals.js';
import { CommandFailure, isAnsweredYes, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { hashOf, personAsked, type PersonFlags, personOptions } from './personAsked.js';
import { recordLines } from './show.js';

interface EraseFlags extends PersonFlags {
  readonly yes?: true;
}

export function eraseCommand(terminal: Terminal): Command {
  return outputOptions(
    personOptions(
      new Command('erase').summary('erase a person for good').description(
        `Destroys what opens the personal data of a user, or of a number that is no user's, then everything derived from it. It can't be undone.
Logins end at once. Gifts stay: what was redeemed stays in history and totals, the others are redeemed by their shortcodes. Messages go, both to and from the person.
On a terminal it shows what is stored of the person, and asks. Needs a running projector. An erasure that was interrupted is finished by the same command.`,
      ),
    ).option('--yes', 'without the question: for scripts'),
    { csv: false },
  )
    .addHelpText(
      'after',
      examples(
        'gift people erase u42 --reason "asked for it by letter of 2 May"',
        'gift people erase --phone - --yes --reason "asked for it by letter of 2 May"',
      ),
    )
    .action(async (user: string | undefined, flags: EraseFlags) => runErase(terminal, user, flags));
}

async function runErase(terminal: Terminal, user: string | undefined, flags: EraseFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'erase');
  const asks = flags.yes !== true;
  if (asks && terminal.stdin.isTTY !== true)
    throw usageFailure('erase asks first, and there is no terminal: look with gift people show, then give --yes');
  if (asks && flags.phone === '-')
    throw usageFailure('--phone - takes standard input, so that erase can not ask: give --yes');
  const asked = await personAsked(terminal, user, flags);
  const outcome = await withStores(terminal, async (opened) => {
    await refuseUnlessKeysFit(opened, () => findHashKey(opened.config));
    const person = await asked(opened);
    if (asks) await confirm(terminal, opened, person, reason);
    const deps = erasureDeps({ ...opened, hash: hashOf(opened) });
    return erasePerson(deps, person, commandLineContext(), reason);
  }).catch((error: unknown) => {
    if (error instanceof ErasureWaitsError)
      throw new CommandFailure(
        `the erasure has started and waits for ${error.waitsFor.join(', ')}: repeat it once that is settled`,
      );
    throw refusalInWords(error);
  });
  const view = erasureView(outcome);
  await writeLines(terminal.stdout, [
    flags.json === true
      ? jsonLine(view)
      : `${view.person}: ${view.already ? 'was erased' : 'erased'} at ${view.erased_at}; complete at ${view.complete_at}, when no backup of the key store holds the keys any more`,
  ]);
  if (view.unread.length > 0)
    terminal.stderr.write(
      `gift: altered in the key store, and not read: ${view.unread.join(', ')}. Counters, stored answers and claims of messages with these names end within 48 hours\n`,
    );
}

/** Shows what is stored of the person, and how long. @throws CommandFailure unless the answer is yes */
async function confirm(
  terminal: Terminal,
  { events, subjects, store }: OpenedStores,
  person: Person,
  reason: string,
): Promise<void> {
  const kept = await personRecord({ events, subjects, records: store.records }, person);
  await cliAccess(events).shown('gift people erase', { person: kept.person }, { personal: false, reason }, 1);
  await writeLines(terminal.stderr, recordLines(kept));
  if (!(await isAnsweredYes(terminal, `erase ${kept.person} for good? It can't be undone.`)))
    throw new CommandFailure('not confirmed: nothing was done');
}
