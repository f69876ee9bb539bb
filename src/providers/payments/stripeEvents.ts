/** Webhooks of Stripe: https://docs.stripe.com/webhooks */
import { Ajv } from 'ajv';
import Stripe from 'stripe';
import type { ProviderEvent } from '../../domain/purchase/providerEvent.js';
import { OWN_SCHEMAS } from '../../lib/schemaOptions.js';
import { SignatureError } from '../signature.js';
import { type EventReader, MalformedEventError, type ProviderMessage } from './providerEvents.js';
import { CURRENCY } from './stripeAnswers.js';
import { codeOf, GAVE_NOTHING } from './stripeClient.js';

/** Greatest age of a signature, in seconds: an older one may be a replay. */
const TOLERANCE_S = 300;

/** `secret`: the endpoint's (`whsec_…`). `provider`: name of the provider that takes the money here. */
export function stripeEvents(secret: string, provider: string): EventReader {
  return (bytes, signature) => {
    const event = verified(bytes, signature, secret);
    if (!isEvent(event)) throw malformed('event', isEvent.errors);
    const read = Object.hasOwn(READERS, event.type) ? READERS[event.type] : undefined;
    if (read === undefined) return { id: event.id };
    const found = read(event.data.object);
    if (found === undefined) return { id: event.id };
    return { id: event.id, ...found, providerEvent: { ...found.providerEvent, provider } as ProviderEvent };
  };
}

function verified(bytes: Buffer, signature: string, secret: string): unknown {
  try {
    return Stripe.webhooks.constructEvent(bytes, signature, secret, TOLERANCE_S);
  } catch (error) {
    // The message is parsed once its signature is verified.
    if (error instanceof SyntaxError) throw new MalformedEventError('the message is no JSON');
    if (error instanceof Stripe.errors.StripeSignatureVerificationError)
      throw new SignatureError(error.message.split('\n', 1)[0]);
    // The library throws another error for an empty or ill-formed signature.
    throw new SignatureError("the signature is none of Stripe's");
  }
}

interface StripeEvent {
  readonly id: string;
  readonly type: string;
  /** Time of the event, seconds since the epoch. */
  readonly created: number;
  readonly data: { readonly object: unknown };
}

type Read = Pick<ProviderMessage, 'transactionId' | 'paymentId'> & {
  readonly providerEvent: ProviderEvent extends infer N
    ? N extends ProviderEvent
      ? Omit<N, 'provider'>
      : never
    : never;
};

const ajv = new Ajv(OWN_SCHEMAS);
const id = { type: 'string', minLength: 1, maxLength: 200 };
const nullableId = { ...id, type: ['string', 'null'] };
const pence = { type: 'integer', minimum: 0 };
const metadata = { type: ['object', 'null'] };
const object = (properties: Record<string, object>, ...optional: string[]): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});
const isEvent = ajv.compile<StripeEvent>(
  object({
    id,
    type: id,
    created: { type: 'integer', minimum: 0, maximum: 253_402_300_799 },
    data: object({ object: { type: 'object' } }),
  }),
);

interface Metadata {
  readonly metadata?: Readonly<Record<string, string>> | null;
}
interface IntentObject extends Metadata {
  readonly id: string;
  readonly amount_received: number;
  readonly currency?: string;
  readonly last_payment_error?: { readonly code?: string; readonly decline_code?: string } | null;
}
interface ChargeObject extends Metadata {
  /** null: the charge was made without a payment intent, so not by us. */
  readonly payment_intent: string | null;
  readonly amount_refunded: number;
}
interface RefundObject extends Metadata {
  readonly id: string;
  readonly payment_intent: string | null;
  readonly status: string | null;
  readonly failure_reason?: string | null;
}
interface DisputeObject extends Metadata {
  readonly id: string;
  readonly payment_intent: string | null;
  readonly amount: number;
  readonly reason: string;
  readonly status: string;
}

const errorFields = { type: ['object', 'null'], properties: { code: nullableId, decline_code: nullableId } };
const isIntent = ajv.compile<IntentObject>(
  object(
    { id, amount_received: pence, currency: id, metadata, last_payment_error: errorFields },
    'currency',
    'metadata',
    'last_payment_error',
  ),
);
const isCharge = ajv.compile<ChargeObject>(
  object({ payment_intent: nullableId, amount_refunded: pence, metadata }, 'metadata'),
);
const isRefund = ajv.compile<RefundObject>(
  object(
    { id, payment_intent: nullableId, status: nullableId, failure_reason: nullableId, metadata },
    'failure_reason',
    'metadata',
  ),
);
const isDispute = ajv.compile<DisputeObject>(
  object({ id, payment_intent: nullableId, amount: pence, reason: id, status: id, metadata }, 'metadata'),
);

function malformed(what: string, errors: Parameters<typeof ajv.errorsText>[0]): MalformedEventError {
  return new MalformedEventError(`malformed ${what}: ${ajv.errorsText(errors, { dataVar: what })}`);
}

/** A payment's metadata is on its charges, too. */
function about({ metadata: laid }: Metadata, paymentId: string, providerEvent: Read['providerEvent']): Read {
  const owner = laid?.['transaction_id'];
  return { transactionId: typeof owner === 'string' && owner !== '' ? owner : undefined, paymentId, providerEvent };
}

function intentOf(value: unknown): IntentObject {
  if (!isIntent(value)) throw malformed('payment_intent', isIntent.errors);
  return value;
}

/** A refund that Stripe accepted, and whose money did not arrive. */
function failedRefund(value: unknown): Read | undefined {
  if (!isRefund(value)) throw malformed('refund', isRefund.errors);
  const { refund_id, attempt } = value.metadata ?? {};
  if (
    value.payment_intent === null ||
    !GAVE_NOTHING.has(value.status) ||
    refund_id === undefined ||
    attempt === undefined
  )
    return undefined;
  const code = value.failure_reason ?? value.status ?? 'failed';
  const providerEvent = {
    kind: 'refund failed',
    refund_id,
    attempt: Number(attempt),
    refund_ref: value.id,
    code,
  } as const;
  return about(value, value.payment_intent, providerEvent);
}

function disputeOf(value: unknown): DisputeObject {
  if (!isDispute(value)) throw malformed('dispute', isDispute.errors);
  return value;
}

/** Final statuses of disputes that leave the money with us. After others (`lost`, `prevented`) the buyer has it. */
const KEPT: ReadonlySet<string> = new Set(['won', 'warning_closed']);

/** Readers by type of message. They return `undefined` for a message that is not about a payment of ours. */
const READERS: Readonly<Record<string, (value: unknown) => Read | undefined>> = {
  'payment_intent.succeeded'(value) {
    const intent = intentOf(value);
    // Another currency pays for nothing here: the answer to the charge and the reconciliation report that.
    if ((intent.currency ?? CURRENCY) !== CURRENCY) return undefined;
    return about(intent, intent.id, { kind: 'succeeded', charge_id: intent.id, amount: intent.amount_received });
  },
  'payment_intent.payment_failed'(value) {
    const intent = intentOf(value);
    const code = codeOf(intent.last_payment_error ?? undefined);
    return about(intent, intent.id, { kind: 'failed', charge_id: intent.id, code });
  },
  'charge.refunded'(value) {
    if (!isCharge(value)) throw malformed('charge', isCharge.errors);
    const { payment_intent: charge_id, amount_refunded: total } = value;
    return charge_id === null ? undefined : about(value, charge_id, { kind: 'refunded', charge_id, total });
  },
  'refund.failed': failedRefund,
  'refund.updated': failedRefund,
  'charge.dispute.created'(value) {
    const dispute = disputeOf(value);
    const { payment_intent: charge_id, id: dispute_id, amount, reason } = dispute;
    if (charge_id === null) return undefined;
    return about(dispute, charge_id, { kind: 'dispute opened', charge_id, dispute_id, amount, reason });
  },
  'charge.dispute.closed'(value) {
    const dispute = disputeOf(value);
    const { payment_intent: charge_id, id: dispute_id, amount, reason } = dispute;
    if (charge_id === null) return undefined;
    const outcome = KEPT.has(dispute.status) ? 'won' : 'lost';
    return about(dispute, charge_id, { kind: 'dispute closed', charge_id, dispute_id, amount, reason, outcome });
  },
};
