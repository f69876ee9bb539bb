/**
 * Whose the personal fields of events are. The log holds them encrypted under a key of the subject named here
 * (docs/design.md#personal-data). Numbers of receivers and messages of purchases are no fields of this kind: the
 * events hold an id, or a sealed text, instead.
 */
import type { AnyDomainEvent, FIELD_CLASSES } from './fieldClasses.js';
import type { KeyedHash } from './keyedHash.js';
import { idOf } from './streamName.js';

/**
 * `user` by id, `phone` by number in E.164, `username` normalised, `paymentMethod` by reference, `purchase`
 * (what was written in it) by the transaction's id.
 */
export type SubjectKind = 'user' | 'phone' | 'username' | 'paymentMethod' | 'purchase';

/** Finds a subject; `text` is unique within the kind. */
export interface PersonName {
  readonly kind: SubjectKind;
  readonly text: string;
}

export const userSubject = (id: string): PersonName => ({ kind: 'user', text: id });

export const paymentMethodSubject = (reference: string): PersonName => ({ kind: 'paymentMethod', text: reference });

export const phoneSubject = (number: string): PersonName => ({ kind: 'phone', text: number });

export const usernameSubject = (normalised: string): PersonName => ({ kind: 'username', text: normalised });

export const purchaseSubject = (transactionId: string): PersonName => ({ kind: 'purchase', text: transactionId });

/** What the key store finds a subject by. */
export const lookupOf = (hash: KeyedHash, { kind, text }: Readonly<Record<keyof PersonName, string>>): string =>
  hash('subject', `${kind}\0${text}`);

/** Whether the key store keeps, for a subject of this kind, the text that its id stands for; else it keeps a data key. */
export const keepsText = (kind: SubjectKind): boolean => kind === 'phone' || kind === 'username';

interface PersonalFields<F extends string> {
  /** Top-level fields, with what is read once the subject was erased. */
  readonly fields: Readonly<Record<F, unknown>>;
  readonly subjectOf: (stream: string) => PersonName;
}

type Classes = typeof FIELD_CLASSES;
type Head<P> = P extends `${infer Field}[]` ? Field : P;
type PersonalOf<E extends keyof Classes> = Head<Classes[E]['personal'][number]> & string;

const USER = {
  fields: { username: '', name: '', phone_number: null, device_tokens: [] },
  subjectOf: (stream) => userSubject(idOf(stream)),
} as const satisfies PersonalFields<PersonalOf<'UserAdded'>>;
const PAYMENT_METHOD = {
  fields: { customer: null },
  subjectOf: (stream) => paymentMethodSubject(idOf(stream)),
} as const satisfies PersonalFields<PersonalOf<'PaymentMethodAdded'>>;

/** Types whose personal fields are sealed texts. */
type WithSealedText = 'GiftsPurchased';
type WithPersonalFields = {
  [E in keyof Classes]: [PersonalOf<E>] extends [never] ? never : E;
}[keyof Classes];

/** By event type; a type with personal fields that is missing here, and one that has none, do not compile. */
export const PERSONAL_FIELDS = {
  UserAdded: USER,
  UserChanged: USER,
  PaymentMethodAdded: PAYMENT_METHOD,
  PaymentMethodChanged: PAYMENT_METHOD,
} as const satisfies {
  readonly [E in Exclude<WithPersonalFields, WithSealedText> & AnyDomainEvent['type']]: PersonalFields<PersonalOf<E>>;
};
