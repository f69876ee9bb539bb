/** The support actions of `/ops/gifts/{id}`. */
import { Command } from 'commander';
import { type SupportAction, supportGift } from '../ops/gifts/supportActions.js';
import type { SupportedGift } from '../ops/history/supportedGift.js';
import { TICKET_ID } from '../commands/blockGift.js';
import type { NewReceiver, ReassignDeps } from '../commands/reassignGift.js';
import { isGiftId, isShortcode } from '../domain/giftIds.js';
import { Refusal } from '../domain/refusal.js';
import { commandLineContext, neededReason, outputOptions } from './exports.js';
import { refuseOtherKeys, withStores } from './engines.js';
import { findGiftsCommand } from './foundGifts.js';
import { giftNamed, giftsNamed } from './giftNamed.js';
import { type ManyFlags, manyOptions, rowsOfFile, runMany } from './many.js';
import { examples, jsonLine } from './output.js';
import { describeRefusal, throwDescribed } from './refusals.js';
import { refuseWhileHeld } from './outward.js';
import { CommandFailure, orStandardInput, type Terminal, usageFailure, writeLines } from './terminal.js';
import { startOfDay } from '../lib/writtenTime.js';

interface SupportFlags extends ManyFlags {
  readonly reason?: string;
  readonly toUser?: string;
  readonly toPhone?: string;
  readonly until?: string;
  readonly ticket?: string;
  readonly voided?: true;
}

interface ActionCommand {
  readonly name: SupportAction['name'];
  /** Whether a running service then notifies the receiver. */
  readonly notifies?: true;
  readonly summary: string;
  readonly description: string;
  readonly options: readonly (readonly [flags: string, description: string])[];
  readonly examples: readonly string[];
  /** @throws CommandFailure for contradictory flags */
  readonly check?: (flags: SupportFlags) => void;
  readonly action: (flags: SupportFlags) => SupportAction;
  readonly done: (view: SupportedGift) => string;
  readonly already: (view: SupportedGift) => string;
}

const GIFT = '5f2c9d6a1b7e4c80d3a1';
const TRANSACTION_ID = /^[0-9a-f]{32}$/;
const TICKET = ['--ticket <id>', 'the ticket that asks for it: a cause of its own; the same ticket frees it'] as const;

const ACTIONS: readonly ActionCommand[] = [
  {
    name: 'resend',
    notifies: true,
    summary: 'notify the receiver again',
    description:
      "Notifies the receiver once more, by SMS or push as they can be reached now; a running service does it. Refused while a notification is under way, and of a gift that can't be used.",
    options: [],
    examples: [`gift gifts resend ${GIFT} --reason "deleted the message"`],
    action: () => ({ name: 'resend' }),
    done: () => 'a running service notifies its receiver again; gift history shows what comes of it',
    already: () => 'nothing was to be done',
  },
  {
    name: 'reassign',
    notifies: true,
    summary: 'give a gift to another receiver',
    description:
      "Gives a gift to a user, or to the owner of a phone number; a running service notifies them. The previous receiver may not redeem it any more. Refused once a voucher's code is out. A file has the columns gift_id, and user_id or phone_number.",
    options: [
      ['--to-user <id>', 'the new receiver, a user'],
      [
        '--to-phone <number>',
        "the new receiver's mobile number; -: it is read from standard input, so that no list of processes shows it",
      ],
    ],
    examples: [
      `gift gifts reassign ${GIFT} --to-phone "07700 900102" --reason "sent to an old number"`,
      'gift gifts reassign --file receivers.csv --dry-run --reason "sent to old numbers"',
    ],
    check({ toUser, toPhone, file }) {
      if (file !== undefined && (toUser ?? toPhone) !== undefined)
        throw usageFailure('--file names the receivers: give no --to-user and no --to-phone beside it');
      if (file === undefined && (toUser === undefined) === (toPhone === undefined))
        throw usageFailure('give one of --to-user and --to-phone');
    },
    action: ({ toUser, toPhone = '' }) => ({
      name: 'reassign',
      receiver: toUser === undefined ? { phone_number: toPhone } : { user_id: toUser },
    }),
    done: ({ receiver, receiver_id }) =>
      `it is now for ${receiver_id === null ? `the owner of the ${receiver}` : `user ${receiver_id}`}, whom a running service notifies`,
    already: () => 'it has been for this receiver all along',
  },
  {
    name: 'extend',
    summary: 'let a gift be valid for longer',
    description:
      'Lets a gift be valid to the end of a later day (UTC), at most ten years ahead; its voucher with it. An expired gift is valid again.',
    options: [['--until <day>', 'the new last valid day, such as 2027-05-04']],
    examples: [`gift gifts extend ${GIFT} --until 2027-05-04 --reason "the shop was closed"`],
    check({ until }) {
      if (until === undefined) throw usageFailure('extend wants --until, the new last valid day, such as 2027-05-04');
      if (startOfDay(until) === undefined)
        throw usageFailure(`--until ${JSON.stringify(until.slice(0, 40))} is not a day: give one such as 2027-05-04`);
    },
    action: ({ until = '' }) => ({ name: 'extend', expiryDate: until }),
    done: ({ expiry_date, gift_status }) =>
      `it is valid to the end of ${expiry_date} (UTC)${gift_status === 'redeemed' ? '; it is redeemed, so that helps only once the redemption is reversed' : ''}`,
    already: ({ expiry_date }) => `it is valid to the end of ${expiry_date} (UTC) already`,
  },
  {
    name: 'unredeem',
    summary: 'reverse the redemption of a gift',
    description:
      "Reverses the gift's redemption, whoever made it, at whichever merchant. The gift can be redeemed again, until its last valid day. Totals and events show the reversal as support's.",
    options: [],
    examples: [`gift gifts unredeem ${GIFT} --reason "redeemed by somebody else"`],
    action: () => ({ name: 'unredeem' }),
    done: ({ expiry_date, blocked_by }) =>
      blocked_by.length > 0
        ? `its redemption is reversed; ${blockedBy({ blocked_by })}`
        : `its redemption is reversed; it can be redeemed to the end of ${expiry_date} (UTC)`,
    already: () => 'nothing was to be done',
  },
  {
    name: 'replace',
    notifies: true,
    summary: 'give another gift at no charge in place of one',
    description:
      'Gives the gift up for good and issues another one at no charge: same product, price, owner, message and last valid day; a running service notifies the receiver. A redemption stays. Once for each gift; a replacement is neither replaced nor refunded. For a redemption that was a mistake unredeem is enough.',
    options: [['--voided', "the issuer has made the code of the gift's voucher worthless"]],
    examples: [`gift gifts replace ${GIFT} --reason "redeemed by somebody else"`],
    action: ({ voided }) => ({ name: 'replace', voided: voided === true }),
    done: ({ replaced_by }) =>
      `it is replaced by gift ${replaced_by ?? ''}, of whose issue a running service notifies the receiver`,
    already: () => 'nothing was to be done',
  },
  {
    name: 'block',
    summary: 'block a gift',
    description:
      "Blocks a gift: it can't be redeemed, claimed or given a voucher until everything that blocks it has been freed. A code that is out can still be used where it is honoured without asking here.",
    options: [TICKET],
    examples: [
      `gift gifts block ${GIFT} --reason "reported as stolen"`,
      `gift gifts block ${GIFT} --ticket T-1042 --reason "reported as stolen"`,
    ],
    check: checkTicket,
    action: ({ ticket }) => ({ name: 'block', ticket }),
    done: (view) => `${blockedBy(view)}; it can't be redeemed, claimed or given a voucher`,
    already: (view) =>
      view.gift_status === 'cancelled' ? "it is cancelled: it can't be used anyway" : blockedBy(view),
  },
  {
    name: 'unblock',
    summary: 'free a gift that support has blocked',
    description:
      "Frees a gift of support's own block, or of that of a ticket; what else blocks it goes on doing so. A disputed payment is freed by its end alone.",
    options: [TICKET],
    examples: [`gift gifts unblock ${GIFT} --reason "found again"`],
    check: checkTicket,
    action: ({ ticket }) => ({ name: 'unblock', ticket }),
    done: blockedBy,
    already: (view) => `this does not block it; ${blockedBy(view)}`,
  },
];

export function giftsCommand(terminal: Terminal): Command {
  const group = new Command('gifts')
    .summary('single gifts: find, resend, reassign, extend, unredeem, replace, block, unblock')
    .description("What support does for single gifts. The gift's history shows who did it and why.")
    .addHelpText(
      'after',
      examples('gift gifts find --phone - --reason "lost the message"', ACTIONS[0]?.examples[0] ?? ''),
    )
    .addCommand(findGiftsCommand(terminal));
  for (const command of ACTIONS) group.addCommand(subcommand(terminal, command));
  return group;
}

function subcommand(terminal: Terminal, own: ActionCommand): Command {
  const { name, summary, description, options } = own;
  const command = new Command(name)
    .summary(summary)
    .description(description)
    .argument('[gift]', "the gift's id or shortcode");
  for (const [flags, meaning] of options) command.option(flags, meaning);
  manyOptions(command);
  return outputOptions(command.option('--reason <text>', 'why; kept with what is recorded'))
    .addHelpText('after', examples(...own.examples))
    .action(async (gift: string | undefined, flags: SupportFlags) =>
      flags.file === undefined
        ? runAction(terminal, own, oneNamed(gift, flags), flags)
        : runFile(terminal, own, gift, flags, flags.file),
    );
}

function oneNamed(gift: string | undefined, { dryRun }: SupportFlags): string {
  if (gift === undefined) throw usageFailure('name a gift, or a file with --file');
  if (dryRun === true) throw usageFailure('--dry-run is for many: give --file');
  return gift;
}

async function runFile(
  terminal: Terminal,
  { name, notifies, check, action }: ActionCommand,
  gift: string | undefined,
  flags: SupportFlags,
  file: string,
): Promise<void> {
  const reason = neededReason(flags.reason, name);
  check?.(flags);
  if (gift !== undefined) throw usageFailure('name a gift or a file, not both');
  const rows = await rowsOfFile(terminal, file, 'gift_id');
  const single = action(flags);
  const request = { action: single.name === 'reassign' ? ({ name: single.name } as const) : single, reason };
  await withStores(terminal, async (opened) => {
    if (notifies === true && flags.dryRun !== true) await refuseWhileHeld(opened.events);
    // A gift has one command, by whichever of its names.
    const ids = await giftsNamed(
      opened,
      rows.map(({ gift_id = '' }) => gift_id),
    );
    const items = rows.map((row, index) => ({
      id: ids[index] ?? '',
      ...(name === 'reassign' ? { receiver: receiverIn(row) } : {}),
    }));
    await runMany(terminal, opened, items, request, flags);
  }).catch(throwDescribed);
}

/** @throws CommandFailure unless the row has one receiver */
function receiverIn({ gift_id = '', user_id = '', phone_number = '' }: Readonly<Record<string, string>>): NewReceiver {
  if ((user_id === '') === (phone_number === ''))
    throw new CommandFailure(`${gift_id} wants one receiver: a user_id or a phone_number`);
  return user_id === '' ? { phone_number } : { user_id };
}

async function runAction(
  terminal: Terminal,
  { name, notifies, check, action, done, already }: ActionCommand,
  gift: string,
  given: SupportFlags,
): Promise<void> {
  const reason = neededReason(given.reason, name);
  check?.(given);
  if (TRANSACTION_ID.test(gift))
    throw new CommandFailure(`${gift} is a transaction's id: gift gifts find --transaction shows its gifts`);
  if (!isGiftId(gift) && !isShortcode(gift)) throw describeRefusal(new Refusal('gift_not_found'));
  const { toPhone } = given;
  const flags = toPhone === undefined ? given : { ...given, toPhone: await orStandardInput(terminal, toPhone) };
  const view = await withStores(terminal, async (opened) => {
    const { events, models, subjects } = opened;
    if (notifies === true) await refuseWhileHeld(events);
    await refuseOtherKeys(opened);
    const giftId = await giftNamed(opened, gift);
    const deps: ReassignDeps = { events, gifts: models.gifts, accounts: models.accounts, subjects };
    return (await supportGift(deps, giftId, commandLineContext(), action(flags), reason)).gift;
  }).catch(throwDescribed);
  await writeLines(terminal.stdout, [
    flags.json === true
      ? jsonLine(view)
      : `gift ${view.gift_id}: ${view.events.length > 0 ? done(view) : already(view)}`,
  ]);
}

function checkTicket({ ticket }: SupportFlags): void {
  if (ticket !== undefined && !TICKET_ID.test(ticket))
    throw usageFailure('--ticket must be 1 to 64 of A-Z, a-z, 0-9, ., _, # and -');
}

function blockedBy({ blocked_by }: Pick<SupportedGift, 'blocked_by'>): string {
  return blocked_by.length === 0 ? 'nothing blocks it' : `it is blocked by ${blocked_by.join(', ')}`;
}
