/**
 * State of all entries in the log that an import touches or refers to. It takes one read of the log, since reading each
 * stream is slow.
 */
import {
  type AccountKinds,
  type Reservation,
  type ReservationKind,
  evolvePaymentMethod,
  evolveUser,
  reservationAggregate,
} from '../domain/account.js';
import type { CatalogueKinds } from '../domain/catalogue.js';
import type { Aggregate, DomainEvent } from '../domain/decider.js';
import { type Entry, evolveEntry } from '../domain/entry.js';
import { idOf, kindOf } from '../domain/streamName.js';
import { type VoucherCode, voucherCodeAggregate } from '../domain/voucherCode.js';
import type { EventStore, Recorded, RecordedEvent, StreamAppend } from '../ports/eventStore.js';
import { readableFields } from '../runtime/personal/index.js';
import { type ArrayName, type CheckedFile, type IdKind, KIND_OF_ARRAY, REFERENCES } from './file.js';

export interface Stored<S> {
  readonly revision: StreamAppend['expected'];
  readonly state: S;
}

interface KindEntries extends CatalogueKinds, AccountKinds {}

export interface LogState {
  /** Entries by kind and id; empty for kinds that the file neither has nor refers to. */
  readonly entries: { readonly [K in IdKind]: ReadonlyMap<string, Stored<Entry<KindEntries[K]>>> };
  readonly reservations: Readonly<Record<ReservationKind, ReadonlyMap<string, Stored<Reservation>>>>;
  /** Voucher codes by segment and hash, as in the stream's name. */
  readonly codes: ReadonlyMap<string, Stored<VoucherCode>>;
  /** Wallets by reference; each has the amounts of its top-ups in the log in pence, by the top-up's id. */
  readonly wallets: ReadonlyMap<string, Stored<ReadonlyMap<string, number>>>;
  /** Streams of users and payment methods with altered fields: such fields count as absent. */
  readonly unread: ReadonlySet<string>;
}

const WITH_PERSONAL_FIELDS = ['user', 'paymentMethod'];

export async function readLogState(events: EventStore, file: CheckedFile, signal?: AbortSignal): Promise<LogState> {
  const kinds = new Set<string>();
  for (const array of Object.keys(file) as ArrayName[]) {
    kinds.add(KIND_OF_ARRAY[array]);
    for (const kind of Object.values(REFERENCES[array])) kinds.add(kind);
  }
  // `mixedClients.ts` needs the clients of the log.
  if (file.users !== undefined) kinds.add('username').add('phone').add('client');
  if (file.payment_methods?.some(({ entry }) => entry.top_ups !== undefined) === true) kinds.add('wallet');

  const streams = new Map<string, Map<string, { revision: number; state: unknown }>>();
  const streamsOf = (kind: string): Map<string, { revision: number; state: unknown }> => {
    const known = streams.get(kind) ?? new Map<string, { revision: number; state: unknown }>();
    streams.set(kind, known);
    return known;
  };
  const unread = new Set<string>();
  const filter = { streams: [...kinds].map((kind) => `${kind}-`) };
  for await (const batch of events.readAll(undefined, filter, { signal })) {
    for (const event of batch.events) {
      const kind = kindOf(event.stream);
      const known = streamsOf(kind);
      const id = idOf(event.stream);
      const data = WITH_PERSONAL_FIELDS.includes(kind) ? readableFields(event.data) : event.data;
      if (Object.keys(data).length < Object.keys(event.data).length) unread.add(event.stream);
      const stored = known.get(id);
      if (stored === undefined)
        known.set(id, { revision: event.revision, state: evolve(kind, undefined, { ...event, data }) });
      else Object.assign(stored, { revision: event.revision, state: evolve(kind, stored.state, { ...event, data }) });
    }
  }
  // `evolve` folds each kind to its own type.
  const of = <S>(kind: string): ReadonlyMap<string, Stored<S>> => streamsOf(kind) as ReadonlyMap<string, Stored<S>>;
  return {
    entries: Object.fromEntries(Object.values(KIND_OF_ARRAY).map((kind) => [kind, of(kind)])) as LogState['entries'],
    reservations: { username: of('username'), phone: of('phone') },
    codes: of('voucherCode'),
    wallets: of('wallet'),
    unread,
  };
}

function evolve(kind: string, state: unknown, event: RecordedEvent): unknown {
  switch (kind) {
    case 'username':
    case 'phone':
      return folded(reservationAggregate, state, event);
    case 'voucherCode':
      return folded(voucherCodeAggregate, state, event);
    case 'wallet':
      return topUpsAfter(state as Map<string, number> | undefined, event);
    case 'user':
      return evolveUser((state as Entry<AccountKinds['user']> | undefined) ?? { status: 'none' }, event);
    case 'paymentMethod':
      return evolvePaymentMethod(
        (state as Entry<AccountKinds['paymentMethod']> | undefined) ?? { status: 'none' },
        event,
      );
    default:
      return evolveEntry((state as Entry<object> | undefined) ?? { status: 'none' }, event);
  }
}

function folded<S, E extends DomainEvent>(aggregate: Aggregate<S, E>, state: unknown, event: RecordedEvent): S {
  return aggregate.evolve(state === undefined ? aggregate.initial : (state as S), event as Recorded<E>);
}

/** Changes the map in place: a wallet may have very many events. */
function topUpsAfter(
  topUps: Map<string, number> = new Map<string, number>(),
  event: RecordedEvent,
): Map<string, number> {
  if (event.type === 'WalletToppedUp') {
    const { top_up_id, amount } = event.data as { top_up_id: string; amount: number };
    topUps.set(top_up_id, amount);
  }
  return topUps;
}
