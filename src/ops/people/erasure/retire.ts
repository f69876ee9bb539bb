import { randomUUID } from 'node:crypto';
import {
  accountStream,
  evolvePaymentMethod,
  evolveUser,
  giveUpReservation,
  type Reservation,
  reservationAggregate,
  type ReservationKind,
  type PaymentMethod,
  type User,
} from '../../../domain/account.js';
import type { CommandContext } from '../../../commands/context.js';
import { transact } from '../../../commands/transact.js';
import type { Aggregate, DomainEvent } from '../../../domain/decider.js';
import { type Entry, retireEntry } from '../../../domain/entry.js';
import { ERASURE_REASON } from '../../../domain/erasure.js';
import { kindOf } from '../../../domain/streamName.js';
import type { EventStore } from '../../../ports/eventStore.js';
import { readableFields } from '../../../runtime/personal/index.js';

export const userAggregate: Aggregate<Entry<User>, DomainEvent> = {
  initial: { status: 'none' },
  evolve: (state, event) => evolveUser(state, readable(event)),
};
const methodAggregate: Aggregate<Entry<PaymentMethod>, DomainEvent> = {
  initial: { status: 'none' },
  evolve: (state, event) => evolvePaymentMethod(state, readable(event)),
};

/** The event without altered fields: they are destroyed with the others, and must not prevent the erasure. */
const readable = ({ type, data }: DomainEvent): DomainEvent => ({ type, data: readableFields(data) });

/**
 * Context of a part of a larger command. A repeat is recognised by the state of its stream, not by the command's id.
 */
export function partOf(context: CommandContext): CommandContext {
  const { bodyHash: _, ...part } = context;
  return { ...part, commandId: randomUUID() };
}

/** Ends logins and purchases of a user. @throws UnavailableError, ConflictError */
export async function retireUser(events: EventStore, userId: string, context: CommandContext): Promise<void> {
  await transact(events, userAggregate, accountStream('user', userId), partOf(context), (state) =>
    retireEntry('user', state, ERASURE_REASON),
  );
}

/** @throws UnavailableError, ConflictError */
export async function erasePaymentMethod(
  events: EventStore,
  reference: string,
  erasureId: string,
  context: CommandContext,
): Promise<void> {
  await transact(events, methodAggregate, accountStream('paymentMethod', reference), partOf(context), (state) =>
    state.status === 'live' || state.status === 'retired'
      ? [{ type: 'PaymentMethodErased', data: { erasure_id: erasureId } }]
      : [],
  );
}

/**
 * Ends a user's hold of a username or number.
 * @param stream that of the username or number
 * @returns the holders in order of time, without that end
 * @throws UnavailableError, ConflictError
 */
export async function freeReservation(
  events: EventStore,
  stream: string,
  userId: string,
  context: CommandContext,
): Promise<Reservation> {
  const { state } = await transact(events, reservationAggregate, stream, partOf(context), (held) =>
    giveUpReservation(kindOf(stream) as ReservationKind, held, userId),
  );
  return state;
}
