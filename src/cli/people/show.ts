import { Command } from 'commander';
import { type PersonRecord, personRecord } from '../../ops/people/index.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { withStores } from '../engines.js';
import { cliAccess, neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { throwInWords } from '../refusals.js';
import { type Terminal, writeLines } from '../terminal.js';
import { personAsked, type PersonFlags, personOptions } from './personAsked.js';

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
      const kept = await record(terminal, 'show', user, flags);
      const counted = {
        ...kept,
        parts: kept.parts.map(({ records, ...part }) => ({ ...part, count: records.length })),
      };
      await writeLines(terminal.stdout, flags.json === true ? [jsonLine(counted)] : recordLines(kept));
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
      const kept = await record(terminal, 'export', user, flags);
      await writeLines(terminal.stdout, [JSON.stringify(kept, undefined, 2)]);
    });
}

async function record(
  terminal: Terminal,
  what: 'show' | 'export',
  user: string | undefined,
  flags: PersonFlags,
): Promise<PersonRecord> {
  const reason = neededReason(flags.reason, what);
  const asked = await personAsked(terminal, user, flags);
  return withStores(
    terminal,
    async (opened) => {
      await refuseUnlessKeysFit(opened, () => findHashKey(opened.config));
      const { events, subjects, store } = opened;
      const kept = await personRecord({ events, subjects, records: store.records }, await asked(opened));
      const viewing = { personal: true, reason };
      await cliAccess(events).shown(`gift people ${what}`, { person: kept.person }, viewing, 1);
      return kept;
    },
    { onlyReads: true },
  ).catch(throwInWords);
}

/** A line for the person, and one for each part. */
export function recordLines({ person, erased_at, parts }: PersonRecord): string[] {
  return [
    `${person}${erased_at === null ? '' : `: erased at ${erased_at}`}`,
    ...parts.map(
      ({ part, where, why, until, records }) => `${part}: ${records.length} in ${where}; ${why}; kept ${until}`,
    ),
  ];
}
