import { Command } from 'commander';
import { ErasureWaitsError } from '../../ops/people/erasure/endPerson.js';
import { erasePerson } from '../../ops/people/erasure/erasePerson.js';
import { erasureView } from '../../ops/people/erasure/erasureView.js';
import { erasureDeps } from '../../ops/people/erasure/erasureDeps.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { commandLineContext } from '../caller.js';
import { withStores } from '../engines.js';
import { neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { refusalInWords } from '../refusals.js';
import { CommandFailure, type Terminal, writeLines } from '../terminal.js';
import { hashOf, personAsked, type PersonFlags, personOptions } from './personAsked.js';

export function eraseCommand(terminal: Terminal): Command {
  return outputOptions(
    personOptions(
      new Command('erase').summary('erase a person for good').description(
        `Destroys what opens the personal data of a user, or of a number that is no user's, then everything derived from it. It can't be undone.
Logins end at once. Gifts stay: what was redeemed stays in history and totals, the others are redeemed by their shortcodes. Messages go, both to and from the person.
Needs a running projector. An erasure that was interrupted is finished by the same command.`,
      ),
    ),
    { csv: false },
  )
    .addHelpText(
      'after',
      examples(
        'gift people erase u42 --reason "asked for it by letter of 2 May"',
        'gift people erase --phone - --reason "asked for it by letter of 2 May"',
      ),
    )
    .action(async (user: string | undefined, flags: PersonFlags) => runErase(terminal, user, flags));
}

async function runErase(terminal: Terminal, user: string | undefined, flags: PersonFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'erase');
  const asked = await personAsked(terminal, user, flags);
  const outcome = await withStores(terminal, async (opened) => {
    await refuseUnlessKeysFit(opened, () => findHashKey(opened.config));
    const deps = erasureDeps({ ...opened, hash: hashOf(opened) });
    return erasePerson(deps, await asked(opened), commandLineContext(), reason);
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
