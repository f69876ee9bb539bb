/** `gift people find`: finds persons, and shows the gifts of one (docs/support.md#finding-people). */
import { Command } from 'commander';
import { personOf } from '../../domain/erasure.js';
import { findGifts, type FoundPerson, openPeople, SEARCH } from '../../ops/people/index.js';
import { refuseOtherKeys, withStores } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { giftTable, nextCommands, type FoundGifts } from '../foundGifts.js';
import { examples, jsonLine } from '../output.js';
import { throwDescribed } from '../refusals.js';
import { CommandFailure, type Terminal, writeLines } from '../terminal.js';
import { nobodyFound, requestedSearch, type SearchFlags, searchOptions } from './search.js';

interface FindFlags extends SearchFlags {
  readonly reason?: string;
  readonly json?: true;
}

/** What support does next where several persons may be found. */
const NEXT = 'next: gift gifts find --person PERSON --reason … lists the gifts of one';
/** Most gifts that are shown of a person. */
const MOST_GIFTS = 20;

export function findCommand(terminal: Terminal): Command {
  const command = searchOptions(
    new Command('find')
      .summary('find a person by what is known of them')
      .description(
        `By exactly one of these. A search for a number or a username also shows the person's latest gifts; with --json only persons. All but these searches take one reading of the log.`,
      ),
    SEARCH.peopleBy,
  ).option('--reason <text>', 'why; kept with the record of who saw what');
  return outputOptions(command, { csv: false })
    .addHelpText('after', examples('gift people find --phone - --reason "asked by letter of 2 May"'))
    .action(async (flags: FindFlags) => runFind(terminal, flags));
}

async function runFind(terminal: Terminal, flags: FindFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'find');
  const { by, text } = await requestedSearch(terminal, SEARCH.peopleBy, flags);
  const showsGifts = flags.json !== true && (by === 'phone_number' || by === 'username');
  const { people, has_more, gifts } = await withStores(
    terminal,
    async (opened) => {
      await refuseOtherKeys(opened);
      const found = await openPeople(opened).find(by, text);
      const [first] = found.people;
      const theirs =
        showsGifts && first !== undefined
          ? await findGifts(
              { ...opened, withoutBuilds: true },
              { person: personOf(first.person) },
              { limit: MOST_GIFTS },
            )
          : undefined;
      // The searched text is personal itself, so it is not recorded.
      await cliAccess(opened.events).shown(
        'gift people find',
        { by, found: found.people.map(({ person }) => person) },
        { personal: true, reason },
        found.people.length + (theirs?.gifts.length ?? 0),
      );
      return { ...found, gifts: theirs };
    },
    { onlyReads: true },
  ).catch(throwDescribed);
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
