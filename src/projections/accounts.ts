import { HIDDEN_FIELDS } from './hiddenFields.js';
import {
  ACCOUNT_KINDS,
  type AccountEvent,
  type Client,
  type PaymentMethod,
  type PhoneHolder,
  type ReservationEvent,
  type User,
  evolvePaymentMethod,
  evolveUser,
  reservationAggregate,
} from '../domain/account.js';
import { copyWith } from '../lib/copyWith.js';
import { type Entry, entryEventTypes, evolveEntry } from '../domain/entry.js';
import { kindOf } from '../domain/streamName.js';
import type { EventStore, Recorded, RecordedEvent } from '../ports/eventStore.js';
import { foldDocument, type Projection, type ReadModel, typesOf } from '../runtime/readmodels/index.js';

/** `user-{id}`. `credential` rises when the user's sessions end: with a new password, or when disabled. */
export interface UserDocument extends User {
  readonly entry: 'user';
  readonly credential: number;
}

/** `client-{id}`. `credential` rises with a new secret, or when disabled. */
export interface ClientDocument extends Client {
  readonly entry: 'client';
  readonly credential: number;
}

/** `paymentMethod-{reference}`. */
export interface PaymentMethodDocument extends PaymentMethod {
  readonly entry: 'paymentMethod';
}

/** `username-{id}`. `user_id` is null for a free name. */
interface UsernameDocument {
  readonly entry: 'username';
  readonly user_id: string | null;
}

/** `phone-{id}`. */
export interface PhoneDocument {
  readonly entry: 'phone';
  readonly holders: readonly PhoneHolder[];
}

export type AccountDocument = UserDocument | ClientDocument | PaymentMethodDocument | UsernameDocument | PhoneDocument;

const RESERVATION_TYPES = typesOf<ReservationEvent['type']>({
  UsernameTaken: true,
  UsernameGivenUp: true,
  PhoneTaken: true,
  PhoneGivenUp: true,
});

/** Document ids are stream names; queries need no other index. */
export const accountsProjection: Projection<AccountDocument> = {
  name: 'accounts',
  version: 1,
  personal: true,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: [...entryEventTypes(ACCOUNT_KINDS), ...RESERVATION_TYPES, 'PersonErased', 'PaymentMethodErased'],
  documentIds: (event) => [event.stream],
  evolve(document, event, id) {
    const kind = kindOf(id);
    switch (kind) {
      case 'user':
        return evolveUserDocument(document as UserDocument | undefined, event);
      case 'client':
        return evolveClientDocument(document as ClientDocument | undefined, event);
      case 'paymentMethod':
        return evolvePaymentMethodDocument(document as PaymentMethodDocument | undefined, event);
      case 'username':
        return { entry: 'username', user_id: event.type === 'UsernameTaken' ? userOf(event) : null };
      case 'phone': {
        const holders = (document as PhoneDocument | undefined)?.holders ?? [];
        return {
          entry: 'phone',
          holders: reservationAggregate.evolve(holders, event as Recorded<AccountEvent>),
        };
      }
      default:
        throw new Error(`${event.type} stands in ${event.stream}, where no account is kept`);
    }
  },
};

/** Longest stream name of an imported account, its kind included (docs/design.md#rules-of-events). */
const MAX_STREAM = 80;

/** An account as the log has it now, however far the read model is behind. @throws UnavailableError */
export async function accountInLog(
  events: Pick<EventStore, 'read'>,
  stream: string,
): Promise<AccountDocument | undefined> {
  return stream.length > MAX_STREAM ? undefined : foldDocument(accountsProjection, await events.read(stream), stream);
}

/** An account as the read model shows it, where `willDo` accepts that, else from the log. @throws UnavailableError */
export async function accountAtLogEnd(
  {
    accounts,
    events,
  }: { readonly accounts: Pick<ReadModel<AccountDocument>, 'get'>; readonly events: Pick<EventStore, 'read'> },
  stream: string,
  willDo: (shown: AccountDocument) => boolean,
): Promise<AccountDocument | undefined> {
  const shown = await accounts.get(stream);
  return shown !== undefined && willDo(shown) ? shown : accountInLog(events, stream);
}

function userOf(event: RecordedEvent): string {
  return (event.data as ReservationEvent['data']).user_id;
}

function credentialAfter(
  before: { readonly active: boolean; readonly credential: number } | undefined,
  secretChanged: boolean,
  active: boolean,
): number {
  if (before === undefined) return 1;
  return secretChanged || (before.active && !active) ? before.credential + 1 : before.credential;
}

function evolveUserDocument(document: UserDocument | undefined, event: RecordedEvent): UserDocument {
  const value = live(evolveUser(stateOf(document), event), event);
  const credential = credentialAfter(document, document?.password_hash !== value.password_hash, value.active);
  return copyWith(value, { entry: 'user', credential });
}

function evolveClientDocument(document: ClientDocument | undefined, event: RecordedEvent): ClientDocument {
  const value = live(evolveEntry<Client>(stateOf(document), event), event);
  const credential = credentialAfter(document, document?.secret_hash !== value.secret_hash, value.active);
  return copyWith(value, { entry: 'client', credential });
}

function evolvePaymentMethodDocument(
  document: PaymentMethodDocument | undefined,
  event: RecordedEvent,
): PaymentMethodDocument {
  return copyWith(live(evolvePaymentMethod(stateOf(document), event), event), { entry: 'paymentMethod' });
}

function stateOf<V extends object>(document: V | undefined): Entry<V> {
  return document === undefined ? { status: 'none' } : { status: 'live', value: document };
}

function live<V extends object>(entry: Entry<V>, event: RecordedEvent): V {
  if (entry.status === 'none') throw new Error(`${event.type} comes before anything was added to ${event.stream}`);
  return entry.value;
}
