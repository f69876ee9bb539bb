/** The person that a subcommand is about. */
import type { Command } from 'commander';
import { type Person, personOf } from '../../domain/erasure.js';
import { type KeyedHash, keyedHash } from '../../domain/keyedHash.js';
import { Refusal } from '../../domain/refusal.js';
import { openPeople, type PersonRecord } from '../../ops/people/index.js';
import { findHashKey } from '../../service/keys.js';
import type { OpenedLog } from '../engines.js';
import { textLines } from '../output.js';
import { orStandardInput, type Terminal, usageFailure } from '../terminal.js';

export interface PersonFlags {
  readonly phone?: string;
  readonly reason?: string;
  readonly json?: true;
}

export function personOptions(command: Command): Command {
  return command
    .argument('[user]', "the user's id, or phone:… as gift people find names a number")
    .option('--phone <number>', 'a number that is no user’s; - reads it from standard input')
    .option('--reason <text>', 'why; kept with what is recorded');
}

/**
 * Reads the user's id or the number; the returned function finds the person once the log is open.
 * @throws CommandFailure where both or none are given
 */
export async function requestedPerson(
  terminal: Terminal,
  user: string | undefined,
  { phone }: PersonFlags,
): Promise<(opened: OpenedLog) => Promise<Person>> {
  if ((user === undefined) === (phone === undefined)) throw usageFailure('give a user or --phone');
  if (phone === undefined) return async () => personOf(user ?? '');
  const text = await orStandardInput(terminal, phone);
  return async (opened) => {
    // Without a HASH_KEY there is no person: the search for one would make a key.
    hashOf(opened);
    return openPeople(opened).withNumber(text);
  };
}

/** Hash under the installation's HASH_KEY. @throws Refusal `person_not_found` without one: no person was ever stored */
export function hashOf({ config }: Pick<OpenedLog, 'config'>): KeyedHash {
  const key = findHashKey(config);
  if (key === undefined) throw new Refusal('person_not_found');
  return keyedHash(key);
}

/** A line for the person, and one for each part. */
export function recordLines({ person, erased_at, parts }: PersonRecord, columns: number | undefined): string[] {
  return [
    `${person}${erased_at === null ? '' : `: erased at ${erased_at}`}`,
    ...parts.flatMap(({ part, where, why, until, records }) =>
      textLines(`${part}: ${records.length} in ${where}; ${why}; kept ${until}`, columns),
    ),
  ];
}
