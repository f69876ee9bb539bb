/**
 * Personal fields of events, and their subjects. The log holds these fields encrypted under a key of the subject
 * (docs/design.md#personal-data). Phone numbers of receivers and messages of purchases are not among them: the events
 * hold an id, or a sealed text, instead.
 */
import { type AccessRequest, subjectOfCall } from './access.js';
import type { AccountKind } from './account.js';
import type { CatalogueKind } from './catalogue.js';
import type { EntryRetired } from './entry.js';
import { ERASURE_REASON } from './erasure.js';
import type { AnyDomainEvent, FIELD_CLASSES } from './fieldClasses.js';
import type { Block } from './gift/events.js';
import type { KeyedHash } from './keyedHash.js';
import { parkedNameOf, type WorkParked } from './parked.js';
import { idOf } from './streamName.js';
import { isDisputeCause } from './supportActions.js';

/**
 * Kinds of subjects, and the texts that name them: `user` by id, `phone` by number in E.164, `username` normalised,
 * `paymentMethod` by reference, `purchase` (the text written in it) by the transaction's id. `supportText` is named by
 * its topic: the id of a gift or transaction, or the result of `subjectOfCall`. The data key of a `webhookSecret`
 * signs.
 */
export type SubjectKind =
  'user' | 'phone' | 'username' | 'paymentMethod' | 'purchase' | 'supportText' | 'webhookSecret';

/** Name by which a subject is found; `text` is unique within the kind. */
export interface PersonName {
  readonly kind: SubjectKind;
  readonly text: string;
}

export const userSubject = (id: string): PersonName => ({ kind: 'user', text: id });

export const paymentMethodSubject = (reference: string): PersonName => ({ kind: 'paymentMethod', text: reference });

export const phoneSubject = (number: string): PersonName => ({ kind: 'phone', text: number });

export const usernameSubject = (normalised: string): PersonName => ({ kind: 'username', text: normalised });

export const purchaseSubject = (transactionId: string): PersonName => ({ kind: 'purchase', text: transactionId });

export const supportTextSubject = (id: string): PersonName => ({ kind: 'supportText', text: id });

/** Keyed hash by which the key store finds a subject. */
export const lookupOf = (hash: KeyedHash, { kind, text }: Readonly<Record<keyof PersonName, string>>): string =>
  hash('subject', `${kind}\0${text}`);

/** Whether the key store holds the text that the id of such a subject represents; otherwise it holds a data key. */
export const keepsText = (kind: SubjectKind): boolean => kind === 'phone' || kind === 'username';

interface PersonalFields<F extends string> {
  /** Top-level fields, each with the value that is read once the subject was erased. */
  readonly fields: Readonly<Record<F, unknown>>;
  /** Subject of an event's personal fields; `undefined`: the fields of this event hold nothing personal. */
  readonly subjectOf: (stream: string, data: object) => PersonName | undefined;
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

/**
 * The reason is read as empty once its user was erased. `ERASURE_REASON` is not encrypted: an erased user has no key
 * any more.
 */
const USER_RETIRED = {
  fields: { reason: '' },
  subjectOf: (stream, data) =>
    (data as EntryRetired<'user'>['data']).reason === ERASURE_REASON ? undefined : USER.subjectOf(stream),
} as const satisfies PersonalFields<'reason'>;
const PAYMENT_METHOD_RETIRED = {
  fields: { reason: '' },
  subjectOf: PAYMENT_METHOD.subjectOf,
} as const satisfies PersonalFields<'reason'>;

/** Support's reason, in the stream of a gift, of its notification or of a transaction. */
const SUPPORT_TEXT = {
  fields: { reason: '' },
  subjectOf: (stream) => supportTextSubject(idOf(stream)),
} as const satisfies PersonalFields<'reason'>;
/** The reason of a dispute is the provider's code, and a block for it must not wait for the key store. */
const BLOCK = {
  fields: { reason: '', ticket: '' },
  subjectOf: (stream, data) => (isDisputeCause((data as Block).cause) ? undefined : SUPPORT_TEXT.subjectOf(stream)),
} as const satisfies PersonalFields<'reason' | 'ticket'>;
/** A parked notification belongs to its gift; all other parked work concerns the whole purchase. */
const PARKED = {
  ...SUPPORT_TEXT,
  subjectOf: (stream, data) => {
    const { entity, transaction_id } = data as WorkParked['data'];
    return supportTextSubject(parkedNameOf(stream) === 'notification' ? entity : transaction_id);
  },
} as const satisfies PersonalFields<'reason'>;
/** Records of access repeat the reason that the caller gave. */
const ACCESS = {
  ...SUPPORT_TEXT,
  subjectOf: (_, data) => {
    const request = data as AccessRequest;
    const about = request.reason === null ? undefined : subjectOfCall(request);
    return about === undefined ? undefined : supportTextSubject(about);
  },
} as const satisfies PersonalFields<'reason'>;

/**
 * Events whose reasons must name no person (docs/personal-data.md#encrypted-fields). Reasons of disputes are the
 * provider's codes, and those of cancelled gifts are texts of this service.
 */
type WithClearReason =
  | EntryRetired<CatalogueKind | Exclude<AccountKind, 'user' | 'paymentMethod'>>['type']
  | 'DisputeOpened'
  | 'DisputeClosed'
  | 'ErasureRequested'
  | 'ErasureWithdrawn'
  | 'GiftCancelled'
  | 'LogRestored'
  | 'OutwardWorkHeld'
  | 'OutwardWorkResumed'
  | 'PersonErased'
  | 'VoucherCodeWithdrawn';
type WithReason = {
  [E in AnyDomainEvent as E['type']]: 'reason' extends keyof E['data'] ? E['type'] : never;
}[AnyDomainEvent['type']];
type WithSupportText = Exclude<WithReason, WithClearReason>;

/** Types whose personal fields are sealed texts. */
type WithSealedText = 'GiftsPurchased';
type WithPersonalFields = {
  [E in keyof Classes]: [PersonalOf<E>] extends [never] ? never : E;
}[keyof Classes];

/**
 * Personal fields by event type. A type with personal fields or with support's text that is missing here, and a listed
 * type that has neither, do not compile.
 */
export const PERSONAL_FIELDS = {
  UserAdded: USER,
  UserChanged: USER,
  UserRetired: USER_RETIRED,
  PaymentMethodAdded: PAYMENT_METHOD,
  PaymentMethodChanged: PAYMENT_METHOD,
  PaymentMethodRetired: PAYMENT_METHOD_RETIRED,
  GiftUnredeemed: SUPPORT_TEXT,
  GiftBlocked: BLOCK,
  GiftUnblocked: BLOCK,
  GiftReassigned: SUPPORT_TEXT,
  GiftReplaced: SUPPORT_TEXT,
  GiftExtended: SUPPORT_TEXT,
  GiftsPurchased: SUPPORT_TEXT,
  RefundRequested: SUPPORT_TEXT,
  NotificationRequested: SUPPORT_TEXT,
  WorkRetried: PARKED,
  WorkDiscarded: PARKED,
  OperationStarted: ACCESS,
  RecordsShown: ACCESS,
} as const satisfies {
  readonly [E in Exclude<WithPersonalFields, WithSealedText> & AnyDomainEvent['type']]: PersonalFields<PersonalOf<E>>;
} & { readonly [E in WithSupportText]: PersonalFields<'reason'> };
