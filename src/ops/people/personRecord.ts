/**
 * Everything that is stored about a person, with where, why and how long (GDPR art. 15;
 * docs/support.md#finding-people).
 */
import type { User } from '../../domain/account.js';
import { type ErasureEvent, type Person, personId, personStream } from '../../domain/erasure.js';
import { SESSIONS } from '../../domain/recordKeys.js';
import { Refusal } from '../../domain/refusal.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { openText } from '../../runtime/personal/index.js';
import { allRecords } from './erasure/derivedData.js';
import { type Identity, identityOf, type PeopleLog, readTraces } from './personTraces.js';
import { writtenTexts } from './supportTexts.js';

/** Part of a person's record. `where`, `why` and `until` are sentences for the person. */
export interface RecordPart {
  readonly part: string;
  readonly where: string;
  readonly why: string;
  readonly until: string;
  readonly records: readonly object[];
}

export interface PersonRecord {
  readonly person: string;
  /**
   * Time of the erasure: ISO 8601, UTC; null where the person is not erased. The data that is left after it does not
   * tell who the person was.
   */
  readonly erased_at: string | null;
  readonly parts: readonly RecordPart[];
}

const ERASURE_EVENTS: ReadonlySet<string> = new Set<ErasureEvent['type']>([
  'ErasureRequested',
  'ErasureStarted',
  'ErasureWithdrawn',
  'PersonErased',
]);
const UNTIL_ERASED = 'until the person is erased';
const LOG_AND_KEYS = 'event log, encrypted; its keys in the key store';

/**
 * Record of a person, without secret fields. Reads the log twice.
 * @throws Refusal `person_not_found`; UnavailableError
 */
export async function personRecord(log: PeopleLog, person: Person, records: Records): Promise<PersonRecord> {
  if (!(await isKnown(log, person))) throw new Refusal('person_not_found');
  const history = await log.events.read(personStream(person));
  const number = person.kind === 'number' ? await numberOf(log, person.phoneId) : '';
  const erased = history.findLast(({ type }) => type === 'PersonErased');
  const identity = await identityOf(log, person);
  const traces = await tracesIn(log, identity);
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
        records: [
          ...identity.usernames.map((username) => ({ username })),
          ...identity.numbers.map((phone_number) => ({ phone_number })),
        ],
      },
      {
        part: 'payment methods',
        where: LOG_AND_KEYS,
        why: 'to charge purchases',
        until: 'until the last person who may use it is erased',
        // After an erasure, other users' methods are left: their ids at the provider are not shown for this person.
        records:
          erased === undefined
            ? traces.methods
            : traces.methods.map((method) =>
                Object.fromEntries(Object.entries(method).filter(([name]) => name !== 'customer')),
              ),
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
        part: 'texts of support',
        where: LOG_AND_KEYS,
        why: 'to prove who did what to gifts, purchases and this person, or looked at them, and why',
        until: UNTIL_ERASED,
        records: traces.texts,
      },
      {
        part: 'sessions',
        where: 'records of the read store',
        why: 'to stay logged in',
        until: 'until they end, at most as long as SESSION_MAX_AGE',
        records: await sessionsOf(records, person),
      },
      {
        part: 'erasures',
        where: 'event log, key store',
        why: 'to prove the erasure and to repeat it after a restore',
        until: 'for good',
        records: history
          .filter(({ type }) => ERASURE_EVENTS.has(type))
          .map(({ type: event, at, data, metadata: { by } }) => ({ event, at, by, ...data })),
      },
    ],
  };
}

/**
 * Whether there is, or was, such a person. Nothing is known of an erased number that no user ever held.
 * @throws UnavailableError
 */
export async function isKnown(log: Pick<PeopleLog, 'events' | 'subjects'>, person: Person): Promise<boolean> {
  if ((await log.events.read(personStream(person), { limit: 1 })).length > 0) return true;
  return person.kind === 'number' && (await numberOf(log, person.phoneId)) !== '';
}

/** The phone number in the clear; empty once it was erased. */
async function numberOf({ subjects }: Pick<PeopleLog, 'subjects'>, phoneId: string): Promise<string> {
  return (await subjects.secrets([phoneId])).get(phoneId)?.toString() ?? '';
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
  readonly purchases: readonly object[];
  readonly gifts: readonly object[];
  readonly methods: readonly { readonly customer: string | null }[];
  readonly texts: readonly object[];
}

async function tracesIn({ events, subjects }: PeopleLog, identity: Identity): Promise<PersonTraces> {
  const purchases: object[] = [];
  const gifts: object[] = [];
  const texts = writtenTexts(identity);
  const reading = readTraces(events, identity, {
    ...texts,
    async bought(purchase, at) {
      await texts.bought(purchase, at);
      const { transaction_id, product_name, total, receivers, message } = purchase;
      const text = await openText(subjects, message);
      purchases.push({ transaction_id, at, product_name, total, gifts: receivers.length, message: text });
    },
    got(got) {
      texts.got(got);
      const { transaction_id, at, as, giftIds } = got;
      for (const gift_id of giftIds()) gifts.push({ gift_id, transaction_id, at, as });
    },
  });
  await reading.readOn();
  const usable = reading.methods();
  const methods = usable.map(({ reference, kind, active, customer }) => ({
    reference,
    kind,
    active,
    customer: customer(),
  }));
  return { purchases, gifts, methods, texts: texts.about(new Set(usable.map(({ reference }) => reference))) };
}

interface StoredSession {
  readonly user: string | null;
  readonly client: string;
  readonly startedAt: number;
}

async function sessionsOf(records: Records, person: Person): Promise<object[]> {
  const found: object[] = [];
  if (person.kind === 'number') return found;
  for await (const { value, expiresAt } of allRecords<StoredSession>(records, SESSIONS))
    if (value.user === person.userId)
      found.push({
        client: value.client,
        started_at: new Date(value.startedAt).toISOString(),
        ...(expiresAt === undefined ? {} : { ends_at: new Date(expiresAt).toISOString() }),
      });
  return found;
}
