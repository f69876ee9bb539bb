import { Command } from 'commander';
import { type Person, personOf } from '../../domain/erasure.js';
import { lookupOf, phoneSubject } from '../../domain/personalFields.js';
import { keyedHash } from '../../domain/keyedHash.js';
import { normalisePhoneNumber } from '../../domain/phoneNumber.js';
import { Refusal } from '../../domain/refusal.js';
import { erasePerson, ErasureWaitsError } from '../../ops/people/erasure/erasePerson.js';
import { erasureView } from '../../ops/people/erasure/erasureView.js';
import { erasureDeps } from '../../ops/people/erasure/erasureDeps.js';
import { findHashKey } from '../../service/keys.js';
import { refuseUnlessKeysFit } from '../../service/keysCheck.js';
import { commandLineContext } from '../caller.js';
import { type OpenedStores, withStores } from '../engines.js';
import { neededReason, outputOptions } from '../exports.js';
import { examples, jsonLine } from '../output.js';
import { refusalInWords } from '../refusals.js';
import { CommandFailure, readStandardInput, type Terminal, usageFailure, writeLines } from '../terminal.js';

interface EraseFlags {
  readonly phone?: string;
  readonly reason?: string;
  readonly json?: true;
}

const MAX_NUMBER_BYTES = 1_000;

export function eraseCommand(terminal: Terminal): Command {
  return outputOptions(
    new Command('erase')
      .summary('erase a person for good')
      .description(
        `Destroys what opens the personal data of a user, or of a number that is no user's, then everything derived from it. It can't be undone.
Logins end at once. Gifts stay: what was redeemed stays in history and totals, the others are redeemed by their shortcodes. Messages go, both to and from the person.
Needs a running projector. An erasure that was interrupted is finished by the same command.`,
      )
      .argument('[user]', "the user's id")
      .option('--phone <number>', 'a number that is no user’s; - reads it from standard input')
      .option('--reason <text>', 'why; kept with what is recorded'),
    { csv: false },
  )
    .addHelpText(
      'after',
      examples(
        'gift people erase u42 --reason "asked for it by letter of 2 May"',
        'gift people erase --phone - --reason "asked for it by letter of 2 May"',
      ),
    )
    .action(async (user: string | undefined, flags: EraseFlags) => runErase(terminal, user, flags));
}

async function runErase(terminal: Terminal, user: string | undefined, flags: EraseFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'erase');
  if ((user === undefined) === (flags.phone === undefined)) throw usageFailure('give a user or --phone');
  const number =
    flags.phone === '-'
      ? ((await readStandardInput(terminal, MAX_NUMBER_BYTES))?.toString('utf8') ?? '').trim()
      : flags.phone;
  const outcome = await withStores(terminal, async (opened) => {
    await refuseUnlessKeysFit(opened, () => findHashKey(opened.config));
    const person = number === undefined ? personOf(user ?? '') : await personWith(opened, number);
    return erasePerson(erasureDeps({ ...opened, hash: hashOf(opened) }), person, commandLineContext(), reason);
  }).catch((error: unknown) => {
    if (error instanceof ErasureWaitsError)
      throw new CommandFailure(
        `the erasure has begun and waits for ${error.waitsFor.join(', ')}: repeat it once that is settled`,
      );
    throw refusalInWords(error);
  });
  const view = erasureView(outcome);
  await writeLines(terminal.stdout, [
    flags.json === true
      ? jsonLine(view)
      : `${view.person}: ${view.already ? 'was erased' : 'erased'} at ${view.erased_at}; complete at ${view.complete_at}, when no backup of the key store holds the keys any more`,
  ]);
}

function hashOf({ config }: OpenedStores): ReturnType<typeof keyedHash> {
  const key = findHashKey(config);
  if (key === undefined) throw new Refusal('person_not_found');
  return keyedHash(key);
}

async function personWith(opened: OpenedStores, text: string): Promise<Person> {
  const number = normalisePhoneNumber(text);
  if (number === undefined) throw new Refusal('invalid_phone_number');
  const lookup = lookupOf(hashOf(opened), phoneSubject(number));
  const row = (await opened.keys.byLookup([lookup])).get(lookup);
  if (row === undefined) throw new Refusal('person_not_found');
  return { kind: 'number', phoneId: row.id };
}
