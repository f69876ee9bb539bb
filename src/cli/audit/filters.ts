import { type Command, Option } from 'commander';
import {
  REDEMPTION_FILTERS,
  type RedemptionFilter,
  type RedemptionFilterName,
  unknownTo,
} from '../../ops/redemptions/redemptionHistory.js';
import type { OpenedLog } from '../engines.js';
import { giftNamed } from '../giftNamed.js';
import { CommandFailure, usageFailure } from '../terminal.js';

/** Adds an option for each filter, and a hidden one for each column of the CSV that shows its values. */
export function filterOptions(command: Command, names: readonly RedemptionFilterName[]): Command {
  const columns = names.flatMap((name) => REDEMPTION_FILTERS[name].columns.map((column) => ({ column, name })));
  for (const name of names) command.option(`--${name} <id>`, `only ${REDEMPTION_FILTERS[name].chosen}`);
  for (const { column } of columns) command.addOption(new Option(`--${dashed(column)} <id>`).hideHelp());
  return command.addHelpText(
    'after',
    `\nFilters by the names of columns: ${columns.map(({ column, name }) => `--${dashed(column)} is --${name}`).join(', ')}.`,
  );
}

/** @throws CommandFailure for a filter given twice, or an id that the log does not know; UnavailableError */
export async function requestedFilter(
  opened: OpenedLog,
  flags: object,
  names: readonly RedemptionFilterName[],
): Promise<RedemptionFilter> {
  const given = flags as Readonly<Record<string, string | undefined>>;
  const requested: RedemptionFilter = Object.fromEntries(
    names.map((name) => {
      const [id, second] = [name, ...REDEMPTION_FILTERS[name].columns.map(flagOf)].flatMap((flag) => given[flag] ?? []);
      if (second !== undefined) throw usageFailure(`--${name} must be given only once`);
      return [name, id];
    }),
  );
  const filter: RedemptionFilter =
    requested.gift === undefined ? requested : { ...requested, gift: await giftNamed(opened, requested.gift) };
  const unknown = await unknownTo(opened.events, filter);
  if (unknown !== undefined) throw new CommandFailure(`--${unknown.name}: ${unknown.words}`);
  return filter;
}

const dashed = (column: string): string => column.replaceAll('_', '-');
/** Commander's name of the option's value, such as `merchantId`. */
const flagOf = (column: string): string => column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
