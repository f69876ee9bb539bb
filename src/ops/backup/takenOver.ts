/**
 * A log whose personal data stands in the clear, as commits before its encryption wrote it, read as this release writes
 * it: fields encrypted, numbers and usernames as ids of the key store, also in names of streams, messages sealed, tickets
 * out of causes. The same events give the same ones again, as long as their keys stand, so that a copy can be resumed.
 */
import { createHash } from 'node:crypto';
import { kindOf, idOf } from '../../domain/streamName.js';
import { PROVIDER_REFUND_KEY } from '../../domain/disputes.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import {
  PERSONAL_FIELDS,
  type PersonName,
  phoneSubject,
  purchaseSubject,
  usernameSubject,
} from '../../domain/personalFields.js';
import { normaliseUsername } from '../../domain/precis.js';
import { supportCause } from '../../domain/supportActions.js';
import { sealUnder } from '../../lib/seal.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type PersonalRule, withEncryptedFields } from '../../runtime/personal/encryptedEvents.js';
import type { Subjects } from '../../runtime/personal/subjects.js';
import type { CopySource } from './copyLog.js';

export interface TakeOverDeps {
  readonly subjects: Pick<Subjects, 'ids' | 'secrets'>;
  /** Under the HASH_KEY of the log. */
  readonly hash: KeyedHash;
}

export interface TakenOver {
  readonly source: CopySource;
  /** How many events were changed. */
  changed(): number;
  /** Some was left in the clear: heads of the log are signed, which would not be true of changed events. */
  left(): boolean;
}

type Data = Readonly<Record<string, unknown>>;
type OldReceiver = { readonly phone_number?: string; readonly phone_hash?: string };

interface Keys {
  id(name: PersonName): string;
  key(name: PersonName): Buffer;
}

/** Of one event: the subjects that it takes, and what it becomes. */
interface Change {
  readonly names: readonly PersonName[];
  become(keys: Keys): RecordedEvent;
}

const WITH_NAMES = ['UserAdded', 'UserChanged', 'GiftsPurchased', 'GiftReassigned', 'TreeStarted'];
const SEALED = /^[\w-]{22}\.[\w-]{38,}$/;
const TICKET = supportCause('');

/** `open` is called once an event stands in the clear. */
export function takenOver(source: CopySource, open: () => TakeOverDeps): TakenOver {
  const names = new Map<string, PersonName>();
  const causes = new Map<string, { readonly position: Position; readonly cause: string }[]>();
  let deps: TakeOverDeps | undefined;
  let scanned: Position | undefined;
  let last: Position | undefined;
  let signed = false;
  /** Some of it is encrypted: a name of a stream that nothing leads to is an id. */
  let mixed = false;
  let left = false;
  let count = 0;

  const nameAt = (kind: string, hash: string): PersonName | undefined =>
    // Nothing leads to one that was taken by an import that died before it added the user.
    names.get(`${kind}-${hash}`) ?? (mixed ? undefined : { kind: kind as PersonName['kind'], text: `?${hash}` });

  /** Names of the whole log: a stream may come before the event that says whose it is. */
  async function scan(): Promise<void> {
    for await (const { events, position } of source.readAll(scanned, { types: WITH_NAMES })) {
      for (const event of events) {
        if (event.type === 'TreeStarted') signed = true;
        if (event.metadata.personal !== undefined) mixed = true;
        else if (changeOf(event) !== undefined) noteNames(event, (deps ??= open()));
      }
      scanned = position;
    }
  }

  function noteNames({ data }: RecordedEvent, { hash }: TakeOverDeps): void {
    const {
      username,
      phone_number,
      receivers = [],
    } = data as {
      readonly username?: string;
      readonly phone_number?: string | null;
      readonly receivers?: readonly OldReceiver[];
    };
    if (username !== undefined) {
      const normalised = normaliseUsername(username);
      names.set(`username-${hash('username', normalised)}`, usernameSubject(normalised));
    }
    for (const number of [phone_number, ...receivers.map((one) => one.phone_number)])
      if (typeof number === 'string') names.set(`phone-${hash('phone', number)}`, phoneSubject(number));
  }

  function changeOf(event: RecordedEvent): Change | undefined {
    const { type, stream, metadata } = event;
    if (metadata.personal !== undefined) return undefined;
    const data = event.data as Data;
    switch (type) {
      case 'UsernameTaken':
      case 'UsernameGivenUp':
      case 'PhoneTaken':
      case 'PhoneGivenUp': {
        const name = deps === undefined ? undefined : nameAt(kindOf(stream), idOf(stream));
        if (name === undefined) return undefined;
        return { names: [name], become: ({ id }) => ({ ...event, stream: `${kindOf(stream)}-${id(name)}` }) };
      }
      case 'GiftsPurchased':
        return purchase(event, data);
      case 'GiftIssued':
      case 'GiftReassigned':
        return ofReceiver(event, data);
      case 'GiftBlocked':
      case 'GiftUnblocked':
        return fields({ ...event, data: withTicket(event, data) });
      case 'GiftCancelled':
        // Why stands in the request.
        return [undefined, PROVIDER_REFUND_KEY].includes(data['refund_id'] as string | undefined) ||
          data['reason'] === 'refunded'
          ? undefined
          : { names: [], become: () => ({ ...event, data: { ...data, reason: 'refunded' } }) };
      default:
        return fields(event);
    }
  }

  function purchase(event: RecordedEvent, data: Data): Change | undefined {
    const { transaction_id, message } = data as { readonly transaction_id: string; readonly message: string };
    const receivers = data['receivers'] as readonly OldReceiver[];
    const clear = message !== '' && !SEALED.test(message);
    const numbers = receivers.flatMap(({ phone_number }) =>
      phone_number === undefined ? [] : [phoneSubject(phone_number)],
    );
    if (!clear && numbers.length === 0) return undefined;
    const subject = purchaseSubject(transaction_id);
    return {
      names: [...numbers, ...(clear ? [subject] : [])],
      become: (keys) => ({
        ...event,
        data: {
          ...data,
          receivers: receivers.map((receiver) => withId(receiver, keys)),
          message: clear
            ? `${keys.id(subject)}.${sealUnder(keys.key(subject)).sealAlike(Buffer.from(message), keys.id(subject))}`
            : message,
        },
      }),
    };
  }

  const withId = ({ phone_number, phone_hash, ...receiver }: OldReceiver, { id }: Keys): object => {
    if (phone_number !== undefined) return { ...receiver, phone_id: id(phoneSubject(phone_number)) };
    const name = phone_hash === undefined ? undefined : nameAt('phone', phone_hash);
    return name === undefined ? receiver : { ...receiver, phone_id: id(name) };
  };

  function ofReceiver(event: RecordedEvent, old: Data): Change | undefined {
    const { phone_number: _, ...data } = old;
    const receiver = data['receiver'] as OldReceiver;
    const name = receiver.phone_hash === undefined ? undefined : nameAt('phone', receiver.phone_hash);
    const encrypted = fields({ ...event, data });
    if (name === undefined) return encrypted;
    const become = (keys: Keys): RecordedEvent => {
      const made = encrypted?.become(keys) ?? event;
      return { ...made, data: { ...made.data, receiver: withId(receiver, keys) } };
    };
    return { names: [name, ...(encrypted?.names ?? [])], become };
  }

  /** The cause of a ticket's block named it; that of its end is the same. */
  function withTicket({ id, stream, type, position }: RecordedEvent, data: Data): Data {
    const cause = data['cause'] as string;
    if (!cause.startsWith(TICKET) || data['ticket'] !== undefined) return data;
    const place = `${stream}\0${cause}`;
    const made = supportCause(createHash('sha256').update(`block\0${id}`).digest('hex').slice(0, 20));
    const blocks = causes.get(place) ?? [];
    causes.set(place, blocks);
    if (type === 'GiftBlocked' && !blocks.some((block) => block.position >= position))
      blocks.push({ position, cause: made });
    const block = blocks.findLast((one) => one.position <= position);
    return { ...data, cause: block?.cause ?? made, ticket: cause.slice(TICKET.length) };
  }

  function fields(event: RecordedEvent): Change | undefined {
    const rule = (PERSONAL_FIELDS as Readonly<Record<string, PersonalRule>>)[event.type];
    if (rule === undefined || !Object.keys(event.data).some((field) => Object.hasOwn(rule.fields, field)))
      return undefined;
    const name = rule.subjectOf(event.stream, event.data) as PersonName | undefined;
    if (name === undefined) return undefined;
    return {
      names: [name],
      become: ({ id, key }) =>
        withEncryptedFields(event.stream, event, rule.fields, {
          subject: id(name),
          seal: sealUnder(key(name)).sealAlike,
        }),
    };
  }

  async function takeOver(events: readonly RecordedEvent[]): Promise<readonly RecordedEvent[]> {
    if (scanned === undefined || events.some(({ position }) => position > (scanned ?? ''))) await scan();
    if (!events.some((event) => changeOf(event) !== undefined)) return events;
    left = signed;
    if (signed) return events;
    deps ??= open();
    const changes = events.map(changeOf);
    const keys = await keysFor(
      deps.subjects,
      changes.flatMap((change) => change?.names ?? []),
    );
    return events.map((event, index) => {
      const change = changes[index];
      if (change === undefined) return event;
      if (last === undefined || event.position > last) {
        count += 1;
        last = event.position;
      }
      const { bodyHash: _, ...metadata } = event.metadata;
      const { metadata: made, ...rest } = change.become(keys);
      return {
        ...rest,
        metadata: { ...metadata, ...(made.personal === undefined ? {} : { personal: made.personal }) },
      };
    });
  }

  return {
    source: {
      ...source,
      get logId() {
        return source.logId;
      },
      async *readAll(...asked) {
        for await (const batch of source.readAll(...asked)) yield { ...batch, events: await takeOver(batch.events) };
      },
    },
    changed: () => count,
    left: () => left,
  };
}

async function keysFor(subjects: TakeOverDeps['subjects'], names: readonly PersonName[]): Promise<Keys> {
  const ids = await subjects.ids(names);
  const byName = new Map(names.map(({ kind, text }, index) => [`${kind}\0${text}`, ids[index] as string]));
  const secrets = await subjects.secrets(ids);
  const id = ({ kind, text }: PersonName): string => byName.get(`${kind}\0${text}`) as string;
  return {
    id,
    key(name) {
      const key = secrets.get(id(name));
      if (key === undefined) throw new UnavailableError('a person is being erased');
      return key;
    },
  };
}
