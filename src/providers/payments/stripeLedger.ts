import type Stripe from 'stripe';
import { sleep, systemMs } from '../../lib/world.js';
import type { LedgerEntry, PaymentLedger } from '../../ports/paymentLedger.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { RefusedError } from '../providerErrors.js';
import { intentIn, pageIn, refundIn } from './stripeAnswers.js';
import { failed, GAVE_NOTHING, openStripe, PROVIDER, type StripeSettings } from './stripeClient.js';

const TIMEOUT_MS = 30_000;
const PAGE = 100;
const ATTEMPTS = 10;
const WAIT_MS = 200;
const WAIT_AT_MOST_MS = 5_000;

export function stripeLedger(settings: StripeSettings): PaymentLedger {
  const stripe = openStripe(settings, TIMEOUT_MS);

  const call = async <T>(request: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await request().catch((error: unknown) => failed(error, systemMs));
      } catch (error) {
        if (!(error instanceof RetryLaterError) || attempt === ATTEMPTS || error.afterMs > WAIT_AT_MOST_MS) throw error;
        await sleep(Math.max(WAIT_MS, error.afterMs));
      }
    }
  };

  async function* pages<T extends { readonly id: string }>(
    list: (params: Stripe.PaginationParams) => Promise<Stripe.ApiList<T>>,
  ): AsyncGenerator<readonly T[]> {
    for (let after: string | undefined; ;) {
      const page = pageIn(
        await call(() => list({ limit: PAGE, ...(after === undefined ? {} : { starting_after: after }) })),
      );
      yield page.data;
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) return;
    }
  }

  return {
    provider: PROVIDER,

    async *list(from, to) {
      const created = { gte: Math.ceil(from / 1_000), lt: Math.ceil(to / 1_000) };
      for await (const page of pages((params) => stripe.charges.list({ ...params, created })))
        yield page.map(chargeEntry);
      for await (const page of pages((params) =>
        stripe.refunds.list({ ...params, created, expand: ['data.payment_intent'] }),
      ))
        yield page.map(refundEntry);
    },

    async find(kind, id) {
      try {
        if (kind === 'refund')
          return refundEntry(refundIn(await call(() => stripe.refunds.retrieve(id, { expand: ['payment_intent'] }))));
        return paymentEntry(intentIn(await call(() => stripe.paymentIntents.retrieve(id)), id));
      } catch (error) {
        if (error instanceof RefusedError) return undefined;
        throw error;
      }
    },

    async refundsOf(chargeId) {
      const found: LedgerEntry[] = [];
      try {
        for await (const page of pages((params) =>
          stripe.refunds.list({ ...params, payment_intent: chargeId, expand: ['data.payment_intent'] }),
        ))
          found.push(...page.map(refundEntry));
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
      }
      return found;
    },
  };
}

const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString();
const idOf = (one: string | { readonly id: string } | null): string | undefined =>
  typeof one === 'string' ? one : one?.id;

const chargeEntry = (charge: Stripe.Charge): LedgerEntry => ({
  ...paymentEntry(charge),
  id: idOf(charge.payment_intent) ?? charge.id,
});

function paymentEntry({
  id,
  amount,
  currency,
  created,
  status,
  metadata,
}: Stripe.Charge | Stripe.PaymentIntent): LedgerEntry {
  return {
    kind: 'charge',
    id,
    transactionId: metadata['transaction_id'] ?? null,
    amount,
    currency,
    at: timeOf(created),
    moved: status === 'succeeded',
    status,
  };
}

/** A refund made by hand names no transaction; its payment does. */
function refundEntry({ id, amount, currency, created, status, metadata, payment_intent }: Stripe.Refund): LedgerEntry {
  const transactionId =
    metadata?.['transaction_id'] ??
    (typeof payment_intent === 'object' ? payment_intent?.metadata['transaction_id'] : undefined) ??
    null;
  return {
    kind: 'refund',
    id,
    transactionId,
    amount,
    currency,
    at: timeOf(created),
    moved: !GAVE_NOTHING.has(status),
    status: status ?? 'unknown',
  };
}
