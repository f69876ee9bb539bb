import { Command } from 'commander';
import { findPeople, type FoundPerson, KNOWN, type Known, MAX_FOUND, shortest } from '../../ops/people/index.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { withLog } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { throwInWords } from '../refusals.js';
import { CommandFailure, orStandardInput, type Terminal, usageFailure, writeLines } from '../terminal.js';

interface FindFlags {
  readonly phone?: string;
  readonly username?: string;
  readonly name?: string;
  readonly charge?: string;
  readonly messageId?: string;
  readonly reason?: string;
  readonly json?: true;
}

export function findCommand(terminal: Terminal): Command {
  return outputOptions(
    new Command('find')
      .summary('find a person by what is known of them')
      .description('By exactly one of these. Names, charges and messages take one reading of the log.')
      .option('--phone <number>', 'a mobile number; - reads it from standard input')
      .option('--username <name>', 'the whole username; - reads it from standard input')
      .option('--name <text>', 'a part of the name; - reads it from standard input')
      .option('--charge <id>', "the payment provider's id of a charge")
      .option('--message-id <id>', "the message provider's id of a message")
      .option('--reason <text>', 'why; kept with the record of who saw what'),
    { csv: false },
  )
    .addHelpText('after', examples('gift people find --phone - --reason "asked by letter of 2 May"'))
    .action(async (flags: FindFlags) => runFind(terminal, flags));
}

async function runFind(terminal: Terminal, flags: FindFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'find');
  const { phone, username, name, charge, messageId: message_id } = flags;
  const given: Readonly<Record<Known, string | undefined>> = { phone, username, name, charge, message_id };
  const [known, ...others] = KNOWN.filter((one) => given[one] !== undefined);
  if (known === undefined || others.length > 0)
    throw usageFailure('give exactly one of --phone, --username, --name, --charge, --message-id');
  const text = await orStandardInput(terminal, given[known] ?? '');
  if (text.length < shortest(known)) throw usageFailure(`give at least ${shortest(known)} characters of it`);
  const { people, has_more } = await withLog(terminal, async (opened) => {
    await refuseUnlessKeysFit(opened, () => findHashKey(opened.config));
    const found = await findPeople(opened, known, text);
    // The searched text is personal itself, so it is not recorded.
    await cliAccess(opened.events).shown(
      'gift people find',
      { by: known, found: found.people.map(({ person }) => person) },
      { personal: true, reason },
      found.people.length,
    );
    return found;
  }).catch(throwInWords);
  if (people.length === 0) throw new CommandFailure('no person was found');
  await writeLines(terminal.stdout, flags.json === true ? people.map(jsonLine) : people.map(inWords));
  if (has_more) terminal.stderr.write(`there are more than ${MAX_FOUND}\n`);
}

function inWords({ person, kind, role, transaction_id, gift_id }: FoundPerson): string {
  const about = [role, transaction_id && `transaction ${transaction_id}`, gift_id && `gift ${gift_id}`];
  return [`${person}: a ${kind}`, ...about.filter((one) => one !== undefined && one !== '')].join(', ');
}
