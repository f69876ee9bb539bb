/** Everything that is kept of a person, with where, why and how long (GDPR art. 15; docs/decisions.md#finding-people). */
import { evolvePaymentMethod, type PaymentMethod, type User } from '../../domain/account.js';
import type { Entry } from '../../domain/entry.js';
import { type Person, type PersonErased, personId, personStream } from '../../domain/erasure.js';
import { giftStream, type GiftIssued, type GiftReassigned, type Receiver } from '../../domain/gift/events.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { phoneSubject } from '../../domain/personalFields.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import { SESSIONS } from '../../domain/recordKeys.js';
import { Refusal } from '../../domain/refusal.js';
import { idOf } from '../../domain/streamName.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { openText } from '../../runtime/personal/sealedTexts.js';
import type { Subjects } from '../../runtime/personal/subjects.js';
import { namesOf } from './erasure/names.js';

/** `where`, `why` and `until` are sentences for the person. */
export interface RecordPart {
  readonly part: string;
  readonly where: string;
  readonly why: string;
  readonly until: string;
  readonly records: readonly object[];
}

export interface PersonRecord {
  readonly person: string;
  /** ISO 8601, UTC; null: not erased. What is left then tells nobody who it was. */
  readonly erased_at: string | null;
  readonly parts: readonly RecordPart[];
}

export interface PersonDeps {
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  readonly subjects: Pick<Subjects, 'find' | 'secrets'>;
  readonly records: Records;
}

const UNTIL_ERASED = 'until the person is erased';
const LOG_AND_KEYS = 'event log, encrypted; its keys in the key store';

/** Reads the log once. Never secret fields. @throws Refusal `person_not_found`; UnavailableError */
export async function personRecord(deps: PersonDeps, person: Person): Promise<PersonRecord> {
  const history = await deps.events.read(personStream(person));
  const number = person.kind === 'number' ? await numberOf(deps, person.phoneId) : '';
  if (history.length === 0 && number === '') throw new Refusal('person_not_found');
  const erased = history.findLast(({ type }) => type === 'PersonErased');
  const who = await whoIs(deps, person);
  const traces = await tracesIn(deps, who);
  return {
    person: personId(person),
    erased_at: erased?.at ?? null,
    parts: [
      {
        part: 'account',
        where: `${LOG_AND_KEYS}; read model of accounts`,
        why: 'to log in, to be reached, to buy and redeem',
        until: UNTIL_ERASED,
        records: person.kind === 'user' ? accountIn(history) : [{ phone_number: number }],
      },
      {
        part: 'names',
        where: 'key store',
        why: 'to be found by username and number, and to keep both unique',
        until: UNTIL_ERASED,
        records: [...who.usernames.map((username) => ({ username })), ...who.numbers.map((n) => ({ phone_number: n }))],
      },
      {
        part: 'payment methods',
        where: LOG_AND_KEYS,
        why: 'to charge purchases',
        until: UNTIL_ERASED,
        records: traces.methods,
      },
      {
        part: 'purchases',
        where: 'event log, read model of transactions; messages encrypted',
        why: 'the accounts of what was sold must be kept; messages are for their receivers',
        until: 'for good, without messages and without the person’s name once erased',
        records: traces.purchases,
      },
      {
        part: 'gifts',
        where: 'event log, read model of gifts',
        why: 'to redeem them, and to prove what was redeemed',
        until: 'for good, without the person’s name or number once erased',
        records: traces.gifts,
      },
      {
        part: 'sessions',
        where: 'records of the read store',
        why: 'to stay logged in',
        until: 'until they end, at most as long as SESSION_MAX_AGE',
        records: await sessionsOf(deps.records, person),
      },
      {
        part: 'erasures',
        where: 'event log, key store',
        why: 'to prove the erasure and to repeat it after a restore',
        until: 'for good',
        records: history
          .filter(({ type }) => type === 'PersonErased')
          .map(({ at, data, metadata: { by } }) => ({ at, by, ...(data as PersonErased['data']) })),
      },
    ],
  };
}

/** Empty once it was erased. */
async function numberOf({ subjects }: PersonDeps, phoneId: string): Promise<string> {
  return (await subjects.secrets([phoneId])).get(phoneId)?.toString() ?? '';
}

interface Who {
  readonly userId?: string;
  readonly phoneIds: ReadonlySet<string>;
  readonly usernames: readonly string[];
  readonly numbers: readonly string[];
}

async function whoIs({ events, subjects }: PersonDeps, person: Person): Promise<Who> {
  if (person.kind === 'number') return { phoneIds: new Set([person.phoneId]), usernames: [], numbers: [] };
  const { usernames, numbers } = await namesOf(events, person.userId);
  const ids = await subjects.find(numbers.map(phoneSubject));
  return { userId: person.userId, phoneIds: new Set(ids.flatMap((id) => id ?? [])), usernames, numbers };
}

/** The user's fields as they are now; none for an erased one. */
function accountIn(history: readonly RecordedEvent[]): object[] {
  let user: Partial<User> = {};
  for (const { type, data } of history) {
    if (type === 'PersonErased') user = {};
    else if (type === 'UserAdded') user = data as User;
    else if (type === 'UserChanged') user = { ...user, ...(data as Partial<User>) };
  }
  const { password_hash: _, ...shown } = user;
  return Object.keys(shown).length === 0 ? [] : [shown];
}

interface PersonTraces {
  readonly purchases: object[];
  readonly gifts: object[];
  readonly methods: object[];
}

const TYPES = [
  'PaymentMethodAdded',
  'PaymentMethodChanged',
  'PaymentMethodRetired',
  'PaymentMethodErased',
  'GiftsPurchased',
  'GiftClaimed',
  'GiftReassigned',
];

async function tracesIn({ events, subjects }: PersonDeps, { userId, phoneIds }: Who): Promise<PersonTraces> {
  const purchases: object[] = [];
  const gifts: object[] = [];
  const methods = new Map<string, Entry<PaymentMethod>>();
  const isTheirs = ({ user_id, phone_id }: Receiver): boolean =>
    (user_id !== undefined && user_id === userId) || (phone_id !== undefined && phoneIds.has(phone_id));

  const note = async (event: RecordedEvent): Promise<void> => {
    const { at, stream } = event;
    if (event.type === 'GiftsPurchased') {
      const { transaction_id, seed, buyer_id, receivers, product_name, total, message } =
        event.data as GiftsPurchased['data'];
      if (buyer_id === userId)
        purchases.push({
          transaction_id,
          at,
          product_name,
          total,
          gifts: receivers.length,
          message: await openText(subjects, message),
        });
      if (!receivers.some(isTheirs)) return;
      const ids = deriveGiftIds(seed, receivers.length);
      receivers.forEach((receiver, index) => {
        if (isTheirs(receiver)) gifts.push({ gift_id: ids[index]?.gift_id, transaction_id, at, as: 'receiver' });
      });
    } else if (event.type === 'GiftClaimed') {
      if ((event.data as { readonly user_id: string }).user_id !== userId) return;
      const [issued] = await events.read(giftStream(idOf(stream)), { limit: 1 });
      const { transaction_id } = (issued as RecordedEvent).data as GiftIssued['data'];
      gifts.push({ gift_id: idOf(stream), transaction_id, at, as: 'claimer' });
    } else if (event.type === 'GiftReassigned') {
      const { receiver, transaction_id } = event.data as GiftReassigned['data'];
      if (isTheirs(receiver)) gifts.push({ gift_id: idOf(stream), transaction_id, at, as: 'later receiver' });
    } else {
      const reference = idOf(stream);
      methods.set(reference, evolvePaymentMethod(methods.get(reference) ?? { status: 'none' }, event));
    }
  };

  for await (const batch of events.readAll(undefined, { types: TYPES }))
    for (const event of batch.events) await note(event);
  return {
    purchases,
    gifts,
    methods: [...methods].flatMap(([reference, entry]) =>
      userId !== undefined && entry.status !== 'none' && entry.value.users.includes(userId)
        ? [{ reference, kind: entry.value.kind, active: entry.value.active, customer: entry.value.customer }]
        : [],
    ),
  };
}

async function sessionsOf(records: Records, person: Person): Promise<object[]> {
  if (person.kind === 'number') return [];
  const found: object[] = [];
  for (let after: string | undefined; ;) {
    const page = await records.list<{ user: string | null; client: string; startedAt: number }>(SESSIONS, PAGE, after);
    for (const { value, expiresAt } of page)
      if (value.user === person.userId)
        found.push({
          client: value.client,
          started_at: new Date(value.startedAt).toISOString(),
          ...(expiresAt === undefined ? {} : { ends_at: new Date(expiresAt).toISOString() }),
        });
    if (page.length < PAGE) return found;
    after = page.at(-1)?.key;
  }
}

const PAGE = 500;
