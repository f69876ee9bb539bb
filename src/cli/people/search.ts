/** What persons and gifts are searched by (docs/support.md#finding-people). */
import type { Command } from 'commander';
import { SEARCH } from '../../ops/people/index.js';
import { orStandardInput, type Terminal, usageFailure } from '../terminal.js';

type SearchBy = (typeof SEARCH.peopleBy | typeof SEARCH.giftsBy)[number];

/** The option of each kind of search, and its meaning. */
const OPTIONS: Readonly<Record<SearchBy, readonly [flags: string, meaning: string]>> = {
  person: ['--person <id>', 'a person as gift people find names them: a user’s id, or phone:…'],
  phone_number: ['--phone <number>', 'a mobile number; - reads it from standard input'],
  username: ['--username <name>', 'the whole username; - reads it from standard input'],
  name: ['--name <text>', 'a part of the name; - reads it from standard input'],
  transaction: ['--transaction <id>', "a transaction's id, as gift purchases list shows it"],
  redemption: ['--redemption <id>', "a redemption's id, also of a reversed one"],
  charge: ['--charge <id>', "the payment provider's id of a charge"],
  message_id: ['--message-id <id>', "the message provider's id of a message"],
};

export interface SearchFlags extends Partial<
  Readonly<Record<Exclude<SearchBy, 'message_id' | 'phone_number'>, string>>
> {
  readonly messageId?: string;
  readonly phone?: string;
}

export function searchOptions(command: Command, kinds: readonly SearchBy[]): Command {
  for (const kind of kinds) command.option(...OPTIONS[kind]);
  return command;
}

/**
 * The one search that is requested. @throws CommandFailure where none or several are, or the text is too short
 */
export async function requestedSearch<K extends SearchBy>(
  terminal: Terminal,
  kinds: readonly K[],
  { messageId, phone, ...flags }: SearchFlags,
): Promise<{ readonly by: K; readonly text: string }> {
  const given: Partial<Readonly<Record<SearchBy, string>>> = {
    ...flags,
    ...(messageId === undefined ? {} : { message_id: messageId }),
    ...(phone === undefined ? {} : { phone_number: phone }),
  };
  const [by, ...others] = kinds.filter((one) => given[one] !== undefined);
  if (by === undefined || others.length > 0)
    throw usageFailure(`give exactly one of ${kinds.map((kind) => OPTIONS[kind][0].split(' ')[0]).join(', ')}`);
  const text = await orStandardInput(terminal, given[by] ?? '');
  const shortest = by === 'name' ? SEARCH.shortestName : 1;
  if (text.length < shortest) throw usageFailure(`give at least ${shortest} characters of it`);
  return { by, text };
}

/** Failure of a search that found nobody. An erased person is not told from one that there never was. */
export const nobodyFound = (by: SearchBy): string =>
  by === 'phone_number'
    ? 'no person was found: no user has this number, and no gift was sent to it'
    : by === 'username'
      ? 'no person was found: no user has this username'
      : 'no person was found';
