import { type SupportAction, supportGift } from '../../ops/gifts/supportActions.js';
import type { SupportedGift } from '../../ops/history/supportedGift.js';
import { TICKET_ID } from '../../commands/blockGift.js';
import { foundGift } from '../../commands/loadGift.js';
import type { NewReceiver } from '../../commands/reassignGift.js';
import { giftStream, RECEIVER_KINDS } from '../../domain/gift/events.js';
import { isGiftId } from '../../domain/giftIds.js';
import { Refusal } from '../../domain/refusal.js';
import { giftsProjection } from '../../projections/gifts.js';
import {
  choiceSchema,
  dataSchema,
  entity,
  flagSchema,
  jsonAnswer,
  listSchema,
  orNull,
  record,
  textSchema,
} from '../pipeline/schemas.js';
import type { ErrorCode } from '../../domain/errors.js';
import { HttpError } from '../pipeline/errors.js';
import { GIFT_PARAM } from '../gifts/deps.js';
import { waitUntilProjected } from '../pipeline/positions.js';
import type { Call, EarlyCall, Schema } from '../pipeline/route.js';
import type { OpsDeps } from './deps.js';
import { eventExample, eventSchema } from './eventSchemas.js';
import { type OpsRoute, reasonProperty, supportContextOf } from './frame.js';

const supportedGiftSchema = entity('SupportedGift', {
  gift_id: textSchema(),
  transaction_id: textSchema(),
  gift_status: choiceSchema(['pending', 'sent', 'redeemed', 'cancelled']),
  receiver: choiceSchema(
    RECEIVER_KINDS,
    'A user, the owner of a phone number, or (`nobody`) the first user to claim it.',
  ),
  receiver_id: orNull(textSchema('The user, also one who claimed it.')),
  expiry_date: textSchema('The last valid day (UTC).', { format: 'date' }),
  blocked_by: listSchema(
    textSchema(),
    'What blocks it: `support`, `support:{ticket}`, `dispute:{id}`. An erased ticket is shown as an id, by which it is unblocked.',
  ),
  replaced_by: orNull(textSchema('The gift that support gave in its place.')),
  events: listSchema(eventSchema, 'The recorded events, with caller and reason; empty: nothing had to change.'),
});
const example: SupportedGift = {
  gift_id: '5f2c9d6a1b7e4c80d3a1',
  transaction_id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  gift_status: 'sent',
  receiver: 'user',
  receiver_id: 'u42',
  expiry_date: '2027-05-04',
  blocked_by: [],
  replaced_by: null,
  events: [],
};
const exampleWith = (type: string, data: object, more: Partial<SupportedGift> = {}): object => ({
  data: {
    ...example,
    ...more,
    events: [{ ...eventExample, type, by: { user: 'sue', client: 'desk', roles: ['support'] }, data }],
  },
});

/** Fields of the bodies of actions. */
export const ACTION_PROPERTIES = {
  user_id: textSchema('The new receiver.', { minLength: 1, maxLength: 64 }),
  phone_number: textSchema("The new receiver's mobile number; without a country code a British one.", {
    maxLength: 64,
  }),
  expiry_date: textSchema('The new last valid day, `YYYY-MM-DD`.', {
    format: 'date',
    'x-errors': { format: 'expiry_date must be a date such as 2027-05-04' },
  }),
  ticket: textSchema('The ticket of this block. Each ticket is a separate cause, which the same ticket removes.', {
    pattern: TICKET_ID.source,
    'x-errors': { pattern: 'ticket must be 1 to 64 of A-Z, a-z, 0-9, ., _, # and -' },
  }),
  voided: flagSchema(
    'The issuer has made the code of its voucher worthless; without it a gift with a voucher is refused.',
  ),
} as const satisfies Readonly<Record<string, Schema>>;

const { user_id, phone_number, expiry_date, ticket, voided } = ACTION_PROPERTIES;

interface DescribedAction extends Pick<OpsRoute, 'summary' | 'description' | 'unrecorded' | 'outward' | 'daily'> {
  readonly name: SupportAction['name'];
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly bodyExample: object;
  readonly answered: string;
  readonly example: object;
  readonly errors: readonly ErrorCode[];
  readonly action: (body: Call['body']) => SupportAction;
}

export const ACTIONS: readonly DescribedAction[] = [
  {
    name: 'resend',
    outward: true,
    summary: 'Notify the receiver of a gift again',
    description:
      "One notification for each request, by SMS or push as the receiver can be reached now. Refused while a notification is under way, and for a gift that can't be used.",
    properties: {},
    bodyExample: { reason: 'deleted the message' },
    answered: 'Requested; the history shows the outcome.',
    example: exampleWith('NotificationRequested', {
      transaction_id: example.transaction_id,
      attempt: 2,
      gift_revision: 0,
      reason: 'deleted the message',
    }),
    errors: [
      'gift_not_paid',
      'gift_cancelled',
      'gift_already_redeemed',
      'gift_expired',
      'gift_blocked',
      'gift_has_no_receiver',
      'notification_pending',
    ],
    action: () => ({ name: 'resend' }),
  },
  {
    name: 'reassign',
    outward: true,
    summary: 'Give a gift to another receiver',
    description:
      "To a user, or to the owner of a phone number, who is notified. The previous receiver may no longer redeem it. Refused for a staff account, also by its number, while a notification is under way, and once a voucher's code is issued.",
    properties: { user_id, phone_number },
    unrecorded: ['phone_number'],
    bodyExample: { user_id: 'u42', reason: 'sent to an old number' },
    answered: "It is the new receiver's.",
    example: exampleWith('GiftReassigned', {
      transaction_id: example.transaction_id,
      receiver: { user_id: 'u42' },
      phone_number: null,
      reason: 'sent to an old number',
    }),
    errors: [
      'receiver_not_found',
      'staff_receives_no_gifts',
      'invalid_phone_number',
      'gift_not_paid',
      'gift_cancelled',
      'gift_already_redeemed',
      'gift_has_voucher',
      'gift_expired',
      'notification_pending',
    ],
    action: (body) => ({ name: 'reassign', receiver: receiverIn(body) }),
  },
  {
    name: 'extend',
    summary: 'Let a gift be valid for longer',
    description:
      'To the end of a later day (UTC), at most ten years ahead; its voucher with it. An expired gift is valid again.',
    properties: { expiry_date },
    required: ['expiry_date'],
    bodyExample: { expiry_date: '2027-05-04', reason: 'the shop was closed' },
    answered: 'It is valid until then.',
    example: exampleWith('GiftExtended', {
      expires_on: '2027-05-04',
      voucher_expires_at: null,
      reason: 'the shop was closed',
    }),
    errors: ['gift_not_paid', 'gift_cancelled', 'invalid_expiry_date'],
    action: (body) => ({ name: 'extend', expiryDate: body['expiry_date'] as string }),
  },
  {
    name: 'unredeem',
    daily: 'support-reversals',
    summary: 'Reverse the redemption of a gift',
    description:
      "Reverses the gift's redemption, whoever made it, at whichever merchant. The gift can be redeemed again, until its last valid day. Totals and events show the reversal as support's.",
    properties: {},
    bodyExample: { reason: 'redeemed by somebody else' },
    answered: 'It is not redeemed any more.',
    example: exampleWith('GiftUnredeemed', {
      redemption_id: '5f2c9d6a1b7e4c80d3a1-4be1a8c7d0f9e2b35a66',
      location_id: 'bean-soho',
      merchant_id: 'bean',
      by_support: true,
      reason: 'redeemed by somebody else',
    }),
    errors: ['gift_not_paid', 'gift_cancelled', 'gift_not_redeemed'],
    action: () => ({ name: 'unredeem' }),
  },
  {
    name: 'replace',
    outward: true,
    daily: 'support-replacements',
    summary: 'Give another gift at no charge in place of one',
    description:
      'The old gift is given up for good; a redemption of it stays. The new one has its product, price, owner, message and last valid day, and its receiver is notified. Once for each gift; a replacement is neither replaced nor refunded. `replaced_by` names the new gift.',
    properties: { voided },
    bodyExample: { reason: 'redeemed by somebody else' },
    answered: 'It is replaced.',
    example: exampleWith(
      'GiftReplaced',
      {
        replaced_by: { gift_id: '7c1e0b94d2a85f36e0b7', transaction_id: 'b3a1f04c9d7e4865a2c0f19b7d3e5a61' },
        reason: 'redeemed by somebody else',
      },
      { gift_status: 'cancelled', replaced_by: '7c1e0b94d2a85f36e0b7' },
    ),
    errors: [
      'gift_not_paid',
      'gift_cancelled',
      'gift_already_replaced',
      'gift_is_replacement',
      'gift_disputed',
      'money_went_back',
      'gift_code_out',
      'gift_expired',
      'notification_pending',
      'receiver_not_found',
    ],
    action: (body) => ({ name: 'replace', voided: body['voided'] === true }),
  },
  {
    name: 'block',
    summary: 'Block a gift',
    description:
      "It can't be redeemed, claimed or given a voucher until every cause of a block is removed. An issued code still works at tills that do not ask this service.",
    properties: { ticket },
    unrecorded: ['ticket'],
    bodyExample: { reason: 'reported as stolen', ticket: 'T-1042' },
    answered: 'Blocked; a cancelled gift stays unchanged.',
    example: exampleWith(
      'GiftBlocked',
      { cause: 'support:3f0b8a1de29c4f7d5a6b', reason: 'reported as stolen', ticket: 'T-1042' },
      { blocked_by: ['support:T-1042'] },
    ),
    errors: ['gift_not_paid'],
    action: (body) => ({ name: 'block', ticket: body['ticket'] as string | undefined }),
  },
  {
    name: 'unblock',
    summary: 'Unblock a gift that support has blocked',
    description:
      "Removes support's own block, or that of a ticket; `blocked_by` lists the remaining causes. A dispute's block ends only with the dispute.",
    properties: { ticket },
    unrecorded: ['ticket'],
    bodyExample: { reason: 'found again', ticket: 'T-1042' },
    answered: 'This cause is removed.',
    example: exampleWith('GiftUnblocked', {
      cause: 'support:3f0b8a1de29c4f7d5a6b',
      reason: 'found again',
      ticket: 'T-1042',
      transaction_id: example.transaction_id,
    }),
    errors: [],
    action: (body) => ({ name: 'unblock', ticket: body['ticket'] as string | undefined }),
  },
];

export function supportActionRoutes({ engines: { events }, models, gifts }: OpsDeps): OpsRoute[] {
  const deps = { events, gifts: models.gifts, accounts: models.accounts, subjects: gifts.subjects };

  return ACTIONS.map(
    ({ name, properties, required = [], answered, example: answer, errors, action, ...described }) => ({
      ...described,
      method: 'POST',
      path: `/ops/gifts/:giftId/${name}`,
      operation: `${name}Gift`,
      tag: 'Support',
      roles: ['support'],
      params: GIFT_PARAM,
      body: record({ ...properties, reason: reasonProperty }, [...required, 'reason']),
      answers: [jsonAnswer(answered, dataSchema(supportedGiftSchema), answer)],
      errors: ['gift_not_found', ...errors, ...(name === 'unblock' ? [] : (['supported_too_often'] as const))],
      exists: async (call) => {
        const giftId = named(call);
        await foundGift(deps, giftId, await events.read(giftStream(giftId)));
      },
      async handle(call) {
        const giftId = named(call);
        const reason = (call.body['reason'] as string).trim();
        const context = supportContextOf(call, gifts.now());
        const { own, replayed, gift } = await supportGift(deps, giftId, context, action(call.body), reason);
        const position = own.at(-1)?.position;
        if (position !== undefined && own.some(({ type }) => giftsProjection.types.includes(type)))
          await waitUntilProjected(position, [models.gifts]);
        return {
          body: { data: gift },
          replayed,
          // Answers with reasons and tickets must not be stored. Where nothing was appended the answer is stored, since
          // a repeat would decide again.
          unstored: own.length > 0,
          shown: 1,
          position,
        };
      },
    }),
  );
}

/** @throws Refusal `gift_not_found` for a malformed id */
function named({ params }: EarlyCall): string {
  const { giftId = '' } = params;
  if (!isGiftId(giftId)) throw new Refusal('gift_not_found');
  return giftId;
}

/** @throws HttpError unless there is one receiver */
export function receiverIn({ user_id: id, phone_number: number }: Call['body']): NewReceiver {
  if ((id === undefined) === (number === undefined))
    throw new HttpError('schema', { message: 'give one of user_id or phone_number' });
  return id === undefined ? { phone_number: number as string } : { user_id: id as string };
}
