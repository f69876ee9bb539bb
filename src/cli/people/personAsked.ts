/** The person that a subcommand is about. */
import type { Command } from 'commander';
import { type Person, personOf } from '../../domain/erasure.js';
import { type KeyedHash, keyedHash } from '../../domain/keyedHash.js';
import { lookupOf, phoneSubject } from '../../domain/personalFields.js';
import { readPhoneNumber } from '../../domain/phoneNumber.js';
import { Refusal } from '../../domain/refusal.js';
import { findHashKey } from '../../service/keys.js';
import type { OpenedLog } from '../engines.js';
import { orStandardInput, type Terminal, usageFailure } from '../terminal.js';

export interface PersonFlags {
  readonly phone?: string;
  readonly reason?: string;
  readonly json?: true;
}

export function personOptions(command: Command): Command {
  return command
    .argument('[user]', "the user's id")
    .option('--phone <number>', 'a number that is no user’s; - reads it from standard input')
    .option('--reason <text>', 'why; kept with what is recorded');
}

/**
 * Reads the user's id or the number; the returned function finds the person once the log is open.
 * @throws CommandFailure where both or none are given
 */
export async function personAsked(
  terminal: Terminal,
  user: string | undefined,
  { phone }: PersonFlags,
): Promise<(opened: OpenedLog) => Promise<Person>> {
  if ((user === undefined) === (phone === undefined)) throw usageFailure('give a user or --phone');
  if (phone === undefined) return async () => personOf(user ?? '');
  const text = await orStandardInput(terminal, phone);
  return async (opened) => {
    const number = readPhoneNumber(text);
    if (number === undefined) throw new Refusal('invalid_phone_number');
    // Unlike `subjects.find`, this also finds a number that an erasure has fenced, so that the erasure can be repeated.
    const lookup = lookupOf(hashOf(opened), phoneSubject(number));
    const row = (await opened.keys.byLookup([lookup])).get(lookup);
    if (row === undefined) throw new Refusal('person_not_found');
    return { kind: 'number', phoneId: row.id };
  };
}

/** @throws Refusal `person_not_found` without a HASH_KEY: nothing was ever stored of anybody */
export function hashOf({ config }: Pick<OpenedLog, 'config'>): KeyedHash {
  const key = findHashKey(config);
  if (key === undefined) throw new Refusal('person_not_found');
  return keyedHash(key);
}
