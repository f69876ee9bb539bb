/**
 * What is said on the bus between the process managers and the workers: subjects, messages, and what makes a message
 * acceptable.
 */
import { Ajv, type Schema, type ValidateFunction } from 'ajv';
import type { Channel } from '../domain/notification.js';
import { OWN_SCHEMAS } from '../lib/schemaOptions.js';

/** Subjects of requests. */
export const SUBJECTS = {
  charge: 'payments.charge',
  lookUpCharge: 'payments.lookup',
  cancelCharge: 'payments.cancel',
  paymentAction: 'payments.action',
  findPayment: 'payments.find',
  refund: 'payments.refund',
  lookUpRefund: 'payments.lookupRefund',
  send: 'notifications.send',
  lookUpNotification: 'notifications.lookup',
} as const;

/** Queue groups: of all workers of one group one gets each request. */
export const QUEUES = { payments: 'payments', notifications: 'notifications' } as const;

/**
 * No answer yet, and nothing done: ask again, not before `after_ms` (milliseconds); `held`: a limit of our own holds it
 * back, however long. Or `impossible`: what is asked can never be done, for a cause that a person must see to.
 */
export type Trouble =
  | { readonly outcome: 'later'; readonly after_ms: number; readonly held: boolean; readonly cause: string }
  | { readonly outcome: 'impossible'; readonly cause: string };

/** Whether there is no answer in it. */
export function isTrouble(reply: { readonly outcome: string }): reply is Trouble {
  return reply.outcome === 'later' || reply.outcome === 'impossible';
}

/**
 * Take `amount` (pence) from the payment method, once for ever for this transaction. `customer`: the card processor's
 * customer id. `started_at` (ISO 8601, UTC): when this was first asked for; providers forget a day later that it was.
 */
export interface ChargeRequest {
  readonly transaction_id: string;
  readonly amount: number;
  readonly payment_reference: string;
  readonly customer: string | null;
  readonly started_at: string;
}

/**
 * The provider's final answer. `amount`: what it says that it took, pence; absent: it does not say. `simulated`:
 * nobody's money was moved.
 */
export type ChargeReply =
  | {
      readonly outcome: 'charged';
      readonly provider: string;
      readonly charge_id: string;
      readonly amount?: number;
      readonly simulated: boolean;
    }
  | { readonly outcome: 'declined'; readonly provider: string; readonly code: string; readonly simulated: boolean };

/**
 * The provider's answer for now: the buyer has to prove who they are (`action`: the provider's word for how) before it
 * takes the money. `payment_id`: the provider's name of the payment.
 */
export interface AuthenticationReply {
  readonly outcome: 'authentication';
  readonly provider: string;
  readonly payment_id: string;
  readonly action: string;
  readonly simulated: boolean;
}

/** What became of a transaction's charge? `payment_id` null: the provider's name of it is not known. */
export interface ChargeLookup {
  readonly transaction_id: string;
  readonly payment_id: string | null;
}

/** `unknown`: the provider knows nothing (any more) of it. */
export type ChargeLookupReply = ChargeReply | AuthenticationReply | { readonly outcome: 'unknown' };

/**
 * Cancel a payment that waits for its buyer. Answered with `charged` where it was too late for that, else with
 * `declined` and this `code`.
 */
export interface ChargeCancellation {
  readonly transaction_id: string;
  readonly payment_id: string;
  readonly code: string;
}

/** What does a buyer need to prove who they are? */
export interface PaymentActionRequest {
  readonly transaction_id: string;
  readonly payment_id: string;
}

/**
 * Secret: `client_secret`; it is shown to the buyer and kept nowhere. `waiting`: the payment still waits for its buyer.
 * `unknown`: the provider does not know the payment (any more).
 */
export type PaymentActionReply =
  | { readonly outcome: 'action'; readonly client_secret: string; readonly waiting: boolean }
  | { readonly outcome: 'unknown' };

/** Whose is a payment that the provider names? */
export interface PaymentSearch {
  readonly payment_id: string;
}

/** `unknown`: no purchase of anybody's here. */
export type PaymentSearchReply =
  { readonly outcome: 'found'; readonly transaction_id: string } | { readonly outcome: 'unknown' };

/**
 * Give `amount` (pence, at least 1) of a charge back, once for ever for this refund and attempt. A further attempt is
 * made only after the one before was refused, or is certain never to have reached the provider. `provider` and
 * `charge_id`: as the charge's reply named them. `started_at` (ISO 8601, UTC): when this attempt was first asked for.
 */
export interface RefundRequest {
  readonly refund_id: string;
  /** From 1. */
  readonly attempt: number;
  readonly transaction_id: string;
  readonly amount: number;
  readonly provider: string;
  readonly charge_id: string;
  readonly payment_reference: string;
  readonly started_at: string;
}

/**
 * The provider's final answer: it gives the money back (`refund_ref`: its own id of that), or never will under this
 * attempt. `simulated`: nobody's money was moved.
 */
export type RefundReply =
  | {
      readonly outcome: 'refunded';
      readonly provider: string;
      readonly refund_ref: string;
      readonly simulated: boolean;
    }
  | { readonly outcome: 'refused'; readonly provider: string; readonly code: string; readonly simulated: boolean };

/** What became of an attempt at a refund? `started_at` (ISO 8601, UTC): when it was first asked for. */
export interface RefundLookup {
  readonly refund_id: string;
  readonly attempt: number;
  readonly provider: string;
  readonly charge_id: string;
  readonly started_at?: string;
}

/**
 * `never`: the provider has never been asked for this attempt. `others`: pence of the charge that were given back there
 * since it was first asked for, and not by us; absent: none.
 */
export type RefundLookupReply = RefundReply | { readonly outcome: 'never'; readonly others?: number };

/**
 * Tell the receiver of a gift, once for ever for this gift and attempt. Personal: `to` (a phone number in E.164, or
 * device tokens), `message`, `sender_name`. `locale` null: English.
 */
export interface SendRequest {
  readonly gift_id: string;
  /** Which telling it is, from 1; absent: the first. A further one is deliberate, and its `launch_url` differs. */
  readonly attempt?: number;
  /** Its purchase and who bought: what a purchase sends counts as one where a limit holds. */
  readonly transaction_id: string;
  readonly buyer_id: string;
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly sender_name: string;
  readonly product_name: string;
  readonly message: string;
  readonly launch_url: string;
  readonly locale: string | null;
}

/** The provider's answer: it took the message, or never will. */
export type SendReply =
  | { readonly outcome: 'sent'; readonly provider: string; readonly message_id: string; readonly simulated: boolean }
  | { readonly outcome: 'failed'; readonly cause: string; readonly simulated: boolean };

/**
 * What became of telling a gift's receiver? `started_at` (ISO 8601, UTC): nobody can have sent it before. Personal:
 * `to`, where they would be told now (empty: nowhere any more).
 */
export interface SendLookup {
  readonly gift_id: string;
  /** As in the request to send. */
  readonly attempt?: number;
  readonly started_at: string;
  readonly channel: Channel;
  readonly to: readonly string[];
  readonly launch_url: string;
}

/** `never`: no worker has begun to send it, so sending it is safe; `unknown`: it may or may not have been sent. */
export type SendLookupReply = SendReply | { readonly outcome: 'never' | 'unknown' };

/** What tells one telling from all others: the gift's id, and from the second on its number. */
export function notificationKey({ gift_id, attempt = 1 }: Pick<SendRequest, 'gift_id' | 'attempt'>): string {
  return attempt === 1 ? gift_id : `${gift_id}/${attempt}`;
}

/** A message is not what its subject asks for. Tells which field, never its value. */
export class MalformedMessageError extends Error {
  override readonly name = 'MalformedMessageError';
}

/** Gives the message back when it is acceptable. @throws MalformedMessageError */
export type Check<T> = (message: unknown) => T;

const ajv = new Ajv({ ...OWN_SCHEMAS, discriminator: true });

/**
 * Compiled with the first message: all of them together would hold up the start of every process, and of every command,
 * by a tenth of a second.
 */
function check<T>(what: string, schema: Schema): Check<T> {
  let compiled: ValidateFunction<T> | undefined;
  return (message) => {
    const validate = (compiled ??= ajv.compile<T>(schema));
    if (validate(message)) return message;
    throw new MalformedMessageError(`malformed ${what}: ${ajv.errorsText(validate.errors, { dataVar: 'message' })}`);
  };
}

const id = { type: 'string', minLength: 1, maxLength: 200 };
const text = { type: 'string', maxLength: 10_000 };
const yes = { type: 'boolean' };

const object = (
  properties: Record<string, unknown>,
  optional: Record<string, unknown> = {},
): Record<string, unknown> => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
});
const outcomes = (...choices: readonly Record<string, unknown>[]): Exclude<Schema, boolean> => ({
  type: 'object',
  required: ['outcome'],
  discriminator: { propertyName: 'outcome' },
  oneOf: choices.map((choice) => object(choice)),
});

const charged = { outcome: { const: 'charged' }, provider: id, charge_id: id, simulated: yes };
const taken = { amount: { type: 'integer', minimum: 0 } };
const declined = { outcome: { const: 'declined' }, provider: id, code: id, simulated: yes };
const refunded = { outcome: { const: 'refunded' }, provider: id, refund_ref: id, simulated: yes };
const refused = { outcome: { const: 'refused' }, provider: id, code: id, simulated: yes };
const attempt = { type: 'integer', minimum: 1 };
const sent = { outcome: { const: 'sent' }, provider: id, message_id: id, simulated: yes };
const failed = { outcome: { const: 'failed' }, cause: text, simulated: yes };
const channel = { enum: ['sms', 'push'] };
const authentication = {
  outcome: { const: 'authentication' },
  provider: id,
  payment_id: id,
  action: id,
  simulated: yes,
};
const unknown = { outcome: { const: 'unknown' } };
const later = { outcome: { const: 'later' }, after_ms: { type: 'number', minimum: 0 }, held: yes, cause: text };
const impossible = { outcome: { const: 'impossible' }, cause: text };

/** Checks of everything that comes over the bus, one a message. */
export const checks = {
  chargeRequest: check<ChargeRequest>(
    'charge request',
    object({
      transaction_id: id,
      amount: { type: 'integer', minimum: 0 },
      payment_reference: id,
      customer: { type: ['string', 'null'] },
      started_at: id,
    }),
  ),
  chargeReply: check<ChargeReply | AuthenticationReply | Trouble>(`answer on ${SUBJECTS.charge}`, {
    ...outcomes(charged, declined, authentication, later, impossible),
    properties: taken,
  }),
  chargeLookup: check<ChargeLookup>(
    'charge look-up',
    object({ transaction_id: id, payment_id: { ...id, type: ['string', 'null'] } }),
  ),
  chargeLookupReply: check<ChargeLookupReply | Trouble>(`answer on ${SUBJECTS.lookUpCharge}`, {
    ...outcomes(charged, declined, authentication, later, impossible, unknown),
    properties: taken,
  }),
  chargeCancellation: check<ChargeCancellation>(
    'cancellation of a charge',
    object({ transaction_id: id, payment_id: id, code: id }),
  ),
  chargeCancellationReply: check<ChargeReply | Trouble>(`answer on ${SUBJECTS.cancelCharge}`, {
    ...outcomes(charged, declined, later, impossible),
    properties: taken,
  }),
  paymentActionRequest: check<PaymentActionRequest>(
    'payment action request',
    object({ transaction_id: id, payment_id: id }),
  ),
  paymentActionReply: check<PaymentActionReply | Trouble>(
    `answer on ${SUBJECTS.paymentAction}`,
    outcomes({ outcome: { const: 'action' }, client_secret: id, waiting: yes }, unknown, later, impossible),
  ),
  paymentSearch: check<PaymentSearch>('search for a payment', object({ payment_id: id })),
  paymentSearchReply: check<PaymentSearchReply | Trouble>(
    `answer on ${SUBJECTS.findPayment}`,
    outcomes({ outcome: { const: 'found' }, transaction_id: id }, unknown, later, impossible),
  ),
  refundRequest: check<RefundRequest>(
    'refund request',
    object({
      refund_id: id,
      attempt,
      transaction_id: id,
      amount: { type: 'integer', minimum: 1 },
      provider: id,
      charge_id: id,
      payment_reference: id,
      started_at: id,
    }),
  ),
  refundReply: check<RefundReply | Trouble>(
    `answer on ${SUBJECTS.refund}`,
    outcomes(refunded, refused, later, impossible),
  ),
  refundLookup: check<RefundLookup>(
    'refund look-up',
    object({ refund_id: id, attempt, provider: id, charge_id: id }, { started_at: id }),
  ),
  refundLookupReply: check<RefundLookupReply | Trouble>(`answer on ${SUBJECTS.lookUpRefund}`, {
    ...outcomes(refunded, refused, later, impossible, { outcome: { const: 'never' } }),
    properties: { others: { type: 'integer', minimum: 0 } },
  }),
  sendRequest: check<SendRequest>(
    'send request',
    object(
      {
        gift_id: id,
        transaction_id: id,
        buyer_id: id,
        channel,
        to: { type: 'array', items: text, minItems: 1, maxItems: 1_000 },
        sender_name: text,
        product_name: text,
        message: text,
        launch_url: text,
        locale: { type: ['string', 'null'] },
      },
      { attempt },
    ),
  ),
  sendReply: check<SendReply | Trouble>(`answer on ${SUBJECTS.send}`, outcomes(sent, failed, later, impossible)),
  sendLookup: check<SendLookup>(
    'send look-up',
    object(
      { gift_id: id, started_at: id, channel, to: { type: 'array', items: text, maxItems: 1_000 }, launch_url: text },
      { attempt },
    ),
  ),
  sendLookupReply: check<SendLookupReply | Trouble>(
    `answer on ${SUBJECTS.lookUpNotification}`,
    outcomes(sent, failed, later, impossible, { outcome: { enum: ['never', 'unknown'] } }),
  ),
};
