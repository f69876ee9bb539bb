/** Finds persons, and shows what is stored about them (docs/support.md#finding-people). */
import { Command } from 'commander';
import { type FoundPerson, openPeople, type PersonRecord, SEARCH } from '../../ops/people/index.js';
import { refuseOtherKeys, withLog, withStores } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { throwDescribed } from '../refusals.js';
import { CommandFailure, orStandardInput, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { type PersonFlags, personOptions, recordLines, requestedPerson } from './person.js';

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
  const given = { ...flags, message_id: flags.messageId };
  const [by, ...others] = SEARCH.peopleBy.filter((one) => given[one] !== undefined);
  if (by === undefined || others.length > 0)
    throw usageFailure('give exactly one of --phone, --username, --name, --charge, --message-id');
  const text = await orStandardInput(terminal, given[by] ?? '');
  const shortest = by === 'name' ? SEARCH.shortestName : 1;
  if (text.length < shortest) throw usageFailure(`give at least ${shortest} characters of it`);
  const { people, has_more } = await withLog(terminal, async (opened) => {
    await refuseOtherKeys(opened);
    const found = await openPeople(opened).find(by, text);
    // The searched text is personal itself, so it is not recorded.
    await cliAccess(opened.events).shown(
      'gift people find',
      { by, found: found.people.map(({ person }) => person) },
      { personal: true, reason },
      found.people.length,
    );
    return found;
  }).catch(throwDescribed);
  if (people.length === 0) throw new CommandFailure('no person was found');
  await writeLines(terminal.stdout, people.map(flags.json === true ? jsonLine : foundLine));
  if (has_more) terminal.stderr.write(`there are more than ${SEARCH.mostPeople}\n`);
}

function foundLine({ person, kind, role, transaction_id, gift_id }: FoundPerson): string {
  const about = [role, transaction_id && `transaction ${transaction_id}`, gift_id && `gift ${gift_id}`];
  return [`${person}: a ${kind}`, ...about.filter((one) => one !== undefined && one !== '')].join(', ');
}

export function showCommand(terminal: Terminal): Command {
  return outputOptions(
    personOptions(
      new Command('show')
        .summary('what is kept of a person')
        .description('Each part with where, why and how long it is kept, and how many records it has.'),
    ),
    { csv: false },
  )
    .addHelpText('after', examples('gift people show u42 --reason "asked by letter of 2 May"'))
    .action(async (user: string | undefined, flags: PersonFlags) => {
      const record = await recordOf(terminal, 'show', user, flags);
      const parts = record.parts.map(({ records, ...part }) => ({ ...part, count: records.length }));
      await writeLines(terminal.stdout, flags.json === true ? [jsonLine({ ...record, parts })] : recordLines(record));
    });
}

export function exportCommand(terminal: Terminal): Command {
  return personOptions(
    new Command('export')
      .summary('everything that is kept of a person, as JSON')
      .description('To be handed to the person (GDPR art. 15): each part with where, why and how long it is kept.'),
  )
    .addHelpText('after', examples('gift people export u42 --reason "asked by letter of 2 May" > u42.json'))
    .action(async (user: string | undefined, flags: PersonFlags) => {
      const record = await recordOf(terminal, 'export', user, flags);
      await writeLines(terminal.stdout, [JSON.stringify(record, undefined, 2)]);
    });
}

async function recordOf(
  terminal: Terminal,
  what: 'show' | 'export',
  user: string | undefined,
  flags: PersonFlags,
): Promise<PersonRecord> {
  const reason = neededReason(flags.reason, what);
  const personIn = await requestedPerson(terminal, user, flags);
  return withStores(
    terminal,
    async (opened) => {
      await refuseOtherKeys(opened);
      const record = await openPeople(opened).record(await personIn(opened), opened.store.records);
      const viewing = { personal: true, reason };
      await cliAccess(opened.events).shown(`gift people ${what}`, { person: record.person }, viewing, 1);
      return record;
    },
    { onlyReads: true },
  ).catch(throwDescribed);
}
