import { Command } from 'commander';
import { examples, jsonLine } from '../output.js';
import { type Terminal, writeLines, CommandFailure } from '../terminal.js';
import { eraseAgainCommand } from './eraseAgain.js';
import { eraseCommand, erasuresCommand, withdrawErasureCommand } from './erasures.js';
import { verifyErasureCommand } from './verifyErasure.js';
import { openPeople, type PersonRecord, findGifts, type FoundPerson, SEARCH } from '../../ops/people/index.js';
import { refuseOtherKeys, readStores } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { throwDescribed } from '../refusals.js';
import { type PersonFlags, personOptions, recordLines, requestedPerson } from './person.js';
import { personOf } from '../../domain/erasure.js';
import { giftTable, nextCommands, type FoundGifts } from '../foundGifts.js';
import { nobodyFound, requestedSearch, type SearchFlags, searchOptions } from './search.js';

export function peopleCommand(terminal: Terminal): Command {
  const group = new Command('people')
    .summary('persons: find, show, export, erase')
    .description('What support does for persons whose data is kept.')
    .addHelpText('after', examples('gift people find --phone - --reason "asked by letter of 2 May"'));
  for (const make of [
    findCommand,
    showCommand,
    exportCommand,
    eraseCommand,
    verifyErasureCommand,
    erasuresCommand,
    withdrawErasureCommand,
    eraseAgainCommand,
  ])
    group.addCommand(make(terminal));
  return group;
}

/** Shows what is stored about persons (docs/support.md#finding-people). */
function showCommand(terminal: Terminal): Command {
  return outputOptions(
    personOptions(
      new Command('show')
        .summary('what is kept of a person')
        .description('Each part with where, why and how long it is kept, and how many records it has.'),
    ),
  )
    .addHelpText('after', examples('gift people show u42 --reason "asked by letter of 2 May"'))
    .action(async (user: string | undefined, flags: PersonFlags) => {
      const record = await recordOf(terminal, 'show', user, flags);
      const parts = record.parts.map(({ records, ...part }) => ({ ...part, count: records.length }));
      await writeLines(
        terminal.stdout,
        flags.json === true ? [jsonLine({ ...record, parts })] : recordLines(record, terminal.stdout.columns),
      );
    });
}

function exportCommand(terminal: Terminal): Command {
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
  return readStores(terminal, async (opened) => {
    await refuseOtherKeys(opened);
    const record = await openPeople(opened).record(await personIn(opened), opened.store.records);
    const viewing = { personal: true, reason };
    await cliAccess(opened.events).shown(`gift people ${what}`, { person: record.person }, viewing, 1);
    return record;
  }).catch(throwDescribed);
}

interface FindFlags extends SearchFlags {
  readonly reason?: string;
  readonly json?: true;
}

/** What support does next where several persons may be found. */
const NEXT = 'next: gift gifts find --person PERSON --reason … lists the gifts of one';
/** Most gifts that are shown of a person. */
const MOST_GIFTS = 20;

/** `gift people find`: finds persons, and shows the gifts of one (docs/support.md#finding-people). */
function findCommand(terminal: Terminal): Command {
  const command = searchOptions(
    new Command('find')
      .summary('find a person by what is known of them')
      .description(
        `By exactly one of these. A search for a number or a username also shows the person's latest gifts; with --json only persons. All but these searches take one reading of the log.`,
      ),
    SEARCH.peopleBy,
  ).option('--reason <text>', 'why; kept with the record of who saw what');
  return outputOptions(command)
    .addHelpText('after', examples('gift people find --phone - --reason "asked by letter of 2 May"'))
    .action(async (flags: FindFlags) => runFind(terminal, flags));
}

async function runFind(terminal: Terminal, flags: FindFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'find');
  const { by, text } = await requestedSearch(terminal, SEARCH.peopleBy, flags);
  const showsGifts = flags.json !== true && (by === 'phone_number' || by === 'username');
  const { people, has_more, gifts } = await readStores(terminal, async (opened) => {
    await refuseOtherKeys(opened);
    const found = await openPeople(opened).find(by, text);
    const [first] = found.people;
    const theirs =
      showsGifts && first !== undefined
        ? await findGifts({ ...opened, withoutBuilds: true }, { person: personOf(first.person) }, { limit: MOST_GIFTS })
        : undefined;
    // The searched text is personal itself, so it is not recorded.
    await cliAccess(opened.events).shown(
      'gift people find',
      { by, found: found.people.map(({ person }) => person) },
      { personal: true, reason },
      found.people.length + (theirs?.gifts.length ?? 0),
    );
    return { ...found, gifts: theirs };
  }).catch(throwDescribed);
  if (people.length === 0) throw new CommandFailure(nobodyFound(by));
  const next = gifts === undefined ? ['', NEXT] : giftsOf(people[0]?.person ?? '', gifts, terminal.stdout.columns);
  await writeLines(terminal.stdout, flags.json === true ? people.map(jsonLine) : [...people.map(foundLine), ...next]);
  if (has_more) terminal.stderr.write(`there are more than ${SEARCH.mostPeople}\n`);
}

function foundLine({ person, kind, role, transaction_id, gift_id }: FoundPerson): string {
  const about = [role, transaction_id && `transaction ${transaction_id}`, gift_id && `gift ${gift_id}`];
  return [`${person}: a ${kind}`, ...about.filter((one) => one !== undefined && one !== '')].join(', ');
}

function giftsOf(person: string, { gifts, count }: FoundGifts, columns: number | undefined): string[] {
  if (gifts.length === 0) return ['no gifts'];
  const more = count - gifts.length;
  const earlier = more === 0 ? [] : [`${more} earlier ones: gift gifts find --person ${person} --reason …`];
  return [...giftTable(gifts, columns), ...earlier, '', ...nextCommands(columns)];
}
