/** Shows what is stored about persons (docs/support.md#finding-people). */
import { Command } from 'commander';
import { openPeople, type PersonRecord } from '../../ops/people/index.js';
import { refuseOtherKeys, withStores } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { throwDescribed } from '../refusals.js';
import { type Terminal, writeLines } from '../terminal.js';
import { type PersonFlags, personOptions, recordLines, requestedPerson } from './person.js';

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
      await writeLines(
        terminal.stdout,
        flags.json === true ? [jsonLine({ ...record, parts })] : recordLines(record, terminal.stdout.columns),
      );
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
