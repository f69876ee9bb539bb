/**
 * One refund object per attempt, named by its idempotency key and metadata. Lists of a payment's refunds don't lag
 * behind (unlike search), so an unlisted refund was never made.
 */
import type Stripe from 'stripe';
import type { RefundReply } from '../../messages/payments.js';
import { refuseForeign, RefusedError, ProviderError } from '../providerErrors.js';
import type { PaymentProvider } from './provider.js';
import { pageIn, refundIn } from './stripeAnswers.js';
import { DeclinedError, GAVE_NOTHING, KEY_LIVES_MS, MismatchError, PROVIDER, UnclearError } from './stripeClient.js';

const PAGE = 100;
/** Milliseconds by which our clock and Stripe's may differ. */
const CLOCKS_MS = 60_000;

/** `call`: makes a request and maps its failure. `now`: milliseconds since the epoch. */
export function stripeRefunds(
  stripe: Stripe,
  call: <T>(request: () => Promise<T>) => Promise<T>,
  now: () => number,
): Pick<PaymentProvider, 'refund' | 'lookUpRefund'> {
  const find = async (
    refundId: string,
    attempt: number,
    chargeId: string,
    onPage: (page: readonly Stripe.Refund[]) => void = () => undefined,
  ): Promise<RefundReply | undefined> => {
    const mine = ({ metadata }: Stripe.Refund): boolean =>
      metadata?.['refund_id'] === refundId && metadata['attempt'] === String(attempt);
    for (let after: string | undefined; ;) {
      const page = await call(() =>
        stripe.refunds
          .list({ payment_intent: chargeId, limit: PAGE, ...(after === undefined ? {} : { starting_after: after }) })
          .then(pageIn),
      );
      const found = page.data.find(mine);
      if (found !== undefined) return replyOf(refundIn(found));
      onPage(page.data);
      after = page.data.at(-1)?.id;
      if (!page.has_more || after === undefined) return undefined;
    }
  };

  return {
    async refund({ refund_id, attempt, transaction_id, amount, provider, charge_id, started_at }) {
      refuseForeign(provider, PROVIDER);
      if (!(now() - Date.parse(started_at) < KEY_LIVES_MS))
        throw new ProviderError('the refund was asked for too long ago to be made', { outcomeUnknown: true });
      try {
        const create = (): Promise<Stripe.Refund> =>
          stripe.refunds.create(
            { payment_intent: charge_id, amount, metadata: { refund_id, attempt, transaction_id } },
            { idempotencyKey: `refund-${refund_id}-${attempt}` },
          );
        return replyOf(await call(() => create().then(refundIn)));
      } catch (error) {
        if (
          !(error instanceof RefusedError) &&
          !(error instanceof DeclinedError) &&
          !(error instanceof UnclearError) &&
          !(error instanceof MismatchError)
        )
          throw error;
        // The idempotency key may have been used before, so the refund may exist.
        const found = await find(refund_id, attempt, charge_id);
        if (found !== undefined) return found;
        if (error instanceof RefusedError || error instanceof DeclinedError)
          return refused(error.code === undefined || error.code === '' ? 'invalid_request' : error.code);
        throw error;
      }
    },

    async lookUpRefund({ refund_id, attempt, provider, charge_id, started_at }) {
      refuseForeign(provider, PROVIDER);
      const since = started_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(started_at) - CLOCKS_MS;
      let others = 0;
      const count = ({ amount, created, metadata, status }: Stripe.Refund): void => {
        if (metadata?.['refund_id'] === undefined && !GAVE_NOTHING.has(status) && created * 1_000 >= since)
          others += amount;
      };
      return (
        (await find(refund_id, attempt, charge_id, (page) => page.forEach(count))) ?? {
          outcome: 'never',
          ...(others === 0 ? {} : { others }),
        }
      );
    },
  };
}

/** The reply for a refund, which counts as accepted also while it is pending or waits for the buyer. */
function replyOf({ id, status, failure_reason }: Stripe.Refund): RefundReply {
  if (GAVE_NOTHING.has(status)) return refused(failure_reason ?? status ?? 'failed');
  return { outcome: 'refunded', provider: PROVIDER, refund_ref: id, simulated: false };
}

function refused(code: string): RefundReply {
  return { outcome: 'refused', provider: PROVIDER, code, simulated: false };
}
