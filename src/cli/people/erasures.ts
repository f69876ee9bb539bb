/** Erases persons, withdraws requested erasures, and lists all erasures (docs/personal-data.md#erasure). */
import { Command } from 'commander';
import type { Person } from '../../domain/erasure.js';
import { ErasureWaitsError, openErasures, openPeople } from '../../ops/people/index.js';
import { commandLineContext, cliAccess, neededReason, outputOptions } from '../exports.js';
import { type OpenedStores, refuseOtherKeys, withLog, withStores } from '../engines.js';
import { examples, jsonLine } from '../output.js';
import { describeRefusal, throwDescribed } from '../refusals.js';
import { CommandFailure, isAnsweredYes, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { hashOf, type PersonFlags, personOptions, recordLines, requestedPerson } from './person.js';

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
  const personIn = await requestedPerson(terminal, user, flags);
  const { view } = await withStores(terminal, async (opened) => {
    await refuseOtherKeys(opened);
    const person = await personIn(opened);
    if (asks) await confirm(terminal, opened, person, reason);
    const { store, models } = opened;
    const erasures = openErasures(opened, { store, models, hash: hashOf(opened) });
    return erasures.erase(person, commandLineContext(), reason);
  }).catch((error: unknown) => {
    if (error instanceof ErasureWaitsError)
      throw new CommandFailure(
        `the erasure has started and waits for ${error.waitsFor.join(', ')}: repeat it once that is settled`,
      );
    throw describeRefusal(error);
  });
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
async function confirm(terminal: Terminal, opened: OpenedStores, person: Person, reason: string): Promise<void> {
  const record = await openPeople(opened).record(person, opened.store.records);
  await cliAccess(opened.events).shown('gift people erase', { person: record.person }, { personal: false, reason }, 1);
  await writeLines(terminal.stderr, recordLines(record, terminal.stderr.columns));
  if (!(await isAnsweredYes(terminal, `erase ${record.person} for good? It can't be undone.`)))
    throw new CommandFailure('not confirmed: nothing was done');
}

export function withdrawErasureCommand(terminal: Terminal): Command {
  return personOptions(
    new Command('withdraw-erasure')
      .summary('withdraw an erasure that support has requested')
      .description('Until it has started. gift people erasures lists them: those with due_at and without an end.'),
  )
    .addHelpText('after', examples('gift people withdraw-erasure u42 --reason "the letter was not theirs"'))
    .action(async (user: string | undefined, flags: PersonFlags) => {
      const reason = neededReason(flags.reason, 'withdraw-erasure');
      const personIn = await requestedPerson(terminal, user, flags);
      const { view } = await withLog(terminal, async (opened) => {
        await refuseOtherKeys(opened);
        return openErasures(opened).withdraw(await personIn(opened), commandLineContext(), reason);
      }).catch(throwDescribed);
      await writeLines(terminal.stdout, [`erasure ${view.id} is withdrawn`]);
    });
}

export function erasuresCommand(terminal: Terminal): Command {
  return new Command('erasures')
    .summary('list all erasures, to be kept elsewhere')
    .description(
      `One JSON object a line, with who was erased (ids alone), by whom, why and when. Keep the list where no backup of the log or the key store is restored over it: where both are restored, only gift people erase-again with this list knows of later erasures.`,
    )
    .addHelpText('after', examples('gift people erasures > /elsewhere/erasures.jsonl'))
    .action(async () => runErasures(terminal));
}

async function runErasures(terminal: Terminal): Promise<void> {
  await withLog(terminal, async (log) => {
    await refuseOtherKeys(log);
    const lines: string[] = [];
    for await (const erasure of openErasures(log).stored()) lines.push(JSON.stringify(erasure));
    await cliAccess(log.events).shown('gift people erasures', {}, { personal: false, reason: null }, lines.length);
    await writeLines(terminal.stdout, lines);
  });
}
