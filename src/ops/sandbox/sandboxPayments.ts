/** What a developer does in a sandbox in place of a buyer, a bank and an operator (docs/api/sandbox.md#cards). */
import { type CommandContext, transact } from '../../commands/transact.js';
import { recordProviderEvent } from '../../commands/recordProviderEvent.js';
import { readPurchase } from '../../commands/readStreams.js';
import { accountStream, evolvePaymentMethod, type PaymentMethod } from '../../domain/account.js';
import type { Aggregate, DomainEvent } from '../../domain/decider.js';
import { type Entry, putEntry } from '../../domain/entry.js';
import { Refusal } from '../../domain/refusal.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { simulatedPayments } from '../../providers/payments/simulated.js';

const methodAggregate: Aggregate<Entry<PaymentMethod>, DomainEvent> = {
  initial: { status: 'none' },
  evolve: evolvePaymentMethod,
};

/** Gives the user a test card, as an import would. Safe to repeat. @throws UnavailableError */
export async function giveCard(
  events: EventStore,
  userId: string,
  reference: string,
  context: CommandContext,
): Promise<Position | undefined> {
  const stream = accountStream('paymentMethod', reference);
  const { own } = await transact(events, methodAggregate, stream, context, (state) => {
    const users = state.status === 'live' ? state.value.users : [];
    const card = { kind: 'card', customer: null, prepaid: false } as const;
    return putEntry('paymentMethod', state, {
      ...card,
      ...(state.status === 'live' ? state.value : {}),
      reference,
      active: true,
      users: users.includes(userId) ? users : [...users, userId],
    });
  });
  return own.at(-1)?.position;
}

export interface SandboxPaymentDeps {
  readonly events: EventStore;
  /** Those of the simulated provider. */
  readonly records: Records;
}

/**
 * Ends the buyer's authentication as their bank would, at the simulated provider and then by its message. The first
 * outcome stands, so it is safe to repeat.
 * @throws Refusal `nothing_to_authenticate`; UnavailableError
 */
export async function authenticateBuyer(
  { events, records }: SandboxPaymentDeps,
  transactionId: string,
  proves: boolean,
  context: CommandContext,
): Promise<'charged' | 'declined'> {
  const purchase = await readPurchase(events, transactionId);
  if (purchase.status === 'none' || purchase.authentication === undefined) throw new Refusal('nothing_to_authenticate');
  const payments = simulatedPayments(records, () => Date.parse(context.now));
  const reply = await payments.authenticate(transactionId, proves);
  if (reply === undefined) throw new Refusal('nothing_to_authenticate');
  const { outcome, provider } = reply;
  const charge_id = purchase.authentication.payment_id;
  await recordProviderEvent(
    events,
    transactionId,
    outcome === 'charged'
      ? { kind: 'succeeded', provider, charge_id, amount: purchase.purchase.total }
      : { kind: 'failed', provider, charge_id, code: reply.code },
    context,
  );
  return outcome;
}
