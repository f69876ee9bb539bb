/** `gift gifts find`: finds gifts by what a caller at the support desk knows (docs/support.md#finding-gifts). */
import { Command } from 'commander';
import { personOf } from '../domain/erasure.js';
import { pounds } from '../domain/money.js';
import { findGifts, SEARCH } from '../ops/people/index.js';
import { refuseOtherKeys, readStores } from './engines.js';
import { cliAccess, neededReason, outputOptions } from './exports.js';
import { examples, jsonLine, tableLines, textLines } from './output.js';
import { nobodyFound, requestedSearch, type SearchFlags, searchOptions } from './people/search.js';
import { throwDescribed } from './refusals.js';
import { CommandFailure, type Terminal, writeLines } from './terminal.js';

export type FoundGifts = Awaited<ReturnType<typeof findGifts>>;

interface FindFlags extends SearchFlags {
  readonly reason?: string;
  readonly json?: true;
}

/** Most gifts of a table, which is for people. */
const MOST_LINES = 100;

export function findGiftsCommand(terminal: Terminal): Command {
  const command = searchOptions(
    new Command('find')
      .summary('find gifts by their person, a transaction, a charge, a message or a redemption')
      .description(
        `By exactly one of these: what the person bought, got, claimed or had reassigned to them; the gifts of a transaction or a charge; the gift of a message or a redemption. The latest come first. A table has at most ${MOST_LINES}, JSON all. A charge and a message take one reading of the log.`,
      ),
    SEARCH.giftsBy,
  ).option('--reason <text>', 'why; kept with the record of who saw what');
  return outputOptions(command)
    .addHelpText('after', examples('gift gifts find --phone - --reason "lost the message"'))
    .action(async (flags: FindFlags) => runFind(terminal, flags));
}

async function runFind(terminal: Terminal, flags: FindFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'find');
  const { by, text } = await requestedSearch(terminal, SEARCH.giftsBy, flags);
  const limit = flags.json === true ? Number.POSITIVE_INFINITY : MOST_LINES;
  const found = await readStores(terminal, async (opened) => {
    await refuseOtherKeys(opened);
    const search = by === 'person' ? { person: personOf(text) } : { by, text };
    const gifts = await findGifts({ ...opened, withoutBuilds: true }, search, { limit });
    await cliAccess(opened.events).shown(
      'gift gifts find',
      { by, ...aboutFound(gifts) },
      { personal: true, reason },
      gifts.gifts.length,
    );
    return gifts;
  }).catch(throwDescribed);
  const { gifts, count, people } = found;
  if (people.length === 0 && (by === 'phone_number' || by === 'username')) throw new CommandFailure(nobodyFound(by));
  if (gifts.length === 0) throw new CommandFailure('no gift was found');
  const lines =
    flags.json === true
      ? gifts.map(jsonLine)
      : [...giftTable(gifts, terminal.stdout.columns), '', ...nextCommands(terminal.stdout.columns)];
  await writeLines(terminal.stdout, lines);
  if (count > gifts.length) terminal.stderr.write(`there are ${count - gifts.length} earlier ones: --json has all\n`);
}

/** The persons that were found, or the one purchase that the gifts are of. */
const aboutFound = ({ people, gifts }: FoundGifts): object =>
  people.length > 0 ? { found: people } : { transactionId: gifts[0]?.transaction_id };

/** What support does next with a gift of a list. */
export const nextCommands = (columns: number | undefined): string[] =>
  textLines(
    'times are UTC, values are pounds; next: gift history GIFT; gift gifts resend GIFT --reason … (reassign, extend, unredeem, replace, block)',
    columns,
  );

export function giftTable(gifts: FoundGifts['gifts'], columns: number | undefined): string[] {
  const rows = gifts.map((gift) => [
    gift.gift_id,
    gift.as ?? '',
    gift.product_id,
    pounds(gift.value),
    gift.blocked ? `${gift.gift_status}, blocked` : gift.gift_status,
    gift.expiry_date,
    gift.last_event,
    gift.last_event_at,
  ]);
  return tableLines(['gift', 'as', 'product', 'value', 'status', 'valid to', 'last event', 'at'], rows, columns);
}
