import { Command } from 'commander';
import { withdrawErasure } from '../../ops/people/index.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { commandLineContext } from '../caller.js';
import { withLog } from '../engines.js';
import { neededReason } from '../exports.js';
import { examples } from '../output.js';
import { throwInWords } from '../refusals.js';
import { type Terminal, writeLines } from '../terminal.js';
import { personAsked, type PersonFlags, personOptions } from './personAsked.js';

export function withdrawErasureCommand(terminal: Terminal): Command {
  return personOptions(
    new Command('withdraw-erasure')
      .summary('withdraw an erasure that support has requested')
      .description('Until it has started. gift people erasures lists them: those with due_at and without an end.'),
  )
    .addHelpText('after', examples('gift people withdraw-erasure u42 --reason "the letter was not theirs"'))
    .action(async (user: string | undefined, flags: PersonFlags) => {
      const reason = neededReason(flags.reason, 'withdraw-erasure');
      const asked = await personAsked(terminal, user, flags);
      const { id } = await withLog(terminal, async (opened) => {
        await refuseUnlessKeysFit(opened, () => findHashKey(opened.config));
        return withdrawErasure(opened, await asked(opened), commandLineContext(), reason);
      }).catch(throwInWords);
      await writeLines(terminal.stdout, [`erasure ${id} is withdrawn`]);
    });
}
