/**
 * Access records over days, by their viewer and by the person or gift they are about
 * (docs/support.md#access-records).
 */
import {
  type AccessEvent,
  type AccessRequest,
  accessStream,
  foundBy,
  type OperationStarted,
} from '../../domain/access.js';
import { accountStream } from '../../domain/account.js';
import { type Person, personOf } from '../../domain/erasure.js';
import { type GiftEvent, giftStream } from '../../domain/gift/events.js';
import { idOf } from '../../domain/streamName.js';
import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';

const PAGE = 1_000;
const DAY_MS = 86_400_000;

/** Conditions that records must match. An absent field matches any record. */
export interface AccessFilter {
  /** Person as in paths: a user's id, or `phone:{phone_id}`. */
  readonly person?: string | undefined;
  /** Id of the gift. */
  readonly gift?: string | undefined;
  /** Viewer of the records: a user's id, or `cli:{system user}@{host}`. */
  readonly who?: string | undefined;
}

/**
 * The first field of a filter that names nothing, and what is wrong with it. It is to be refused: an empty answer to a
 * misspelled id would say that nobody saw anything.
 * @param isKnown whether there is or was such a person
 * @throws UnavailableError
 */
export async function unknownIn(
  events: Pick<EventStore, 'read'>,
  { who, person, gift }: AccessFilter,
  isKnown: (person: Person) => Promise<boolean>,
): Promise<{ readonly field: keyof AccessFilter; readonly fault: string } | undefined> {
  const isStored = async (stream: string): Promise<boolean> => (await events.read(stream, { limit: 1 })).length > 0;
  if (who !== undefined && !who.startsWith('cli:') && !(await isStored(accountStream('user', who))))
    return { field: 'who', fault: 'is not known, and no record of this time is theirs' };
  const fault = 'is not known, and no record of this time is about it';
  if (person !== undefined && !(await isKnown(personOf(person)))) return { field: 'person', fault };
  if (gift !== undefined && !(await isStored(giftStream(gift)))) return { field: 'gift', fault };
  return undefined;
}

/** Position in the stream of a day (UTC, `YYYY-MM-DD`). */
export interface AccessPosition {
  readonly day: string;
  /** Last revision that was read; -1 before the first record. */
  readonly revision: number;
}

export interface AccessPage {
  readonly records: readonly RecordedEvent[];
  /** Number of records that were read. */
  readonly read: number;
  /** Position of the last record that was read. */
  readonly position: AccessPosition;
}

/**
 * Reads records after `after`, up to the end of the day `to`, in one page a day at least. The end of an operation is
 * about what its start is about, also where that is before `after`.
 * @throws UnavailableError
 */
export async function* readAccess(
  events: Pick<EventStore, 'read'>,
  after: AccessPosition,
  to: string,
  { person, gift, who }: AccessFilter,
): AsyncGenerator<AccessPage> {
  /** Whether operations are about the person and gift, by their ids. */
  const operations = new Map<string, boolean>();
  const names = gift === undefined ? undefined : await namesOf(events, gift);

  function isAbout(asked: Asked): boolean {
    return (person === undefined || isAboutPerson(asked, person)) && (names === undefined || isAboutGift(asked, names));
  }

  async function matches(record: RecordedEvent): Promise<boolean> {
    if (who !== undefined && record.metadata.by.user !== who) return false;
    if (person === undefined && names === undefined) return true;
    const { operation_id: id, asked } = record.data as Partial<OperationStarted['data']>;
    if (id === undefined) return isAbout(asked ?? {});
    if (!operations.has(id))
      operations.set(id, isAbout(asked ?? (await startOf(events, record, id))?.data.asked ?? {}));
    return operations.get(id) === true;
  }

  for (let { day, revision } = after; ;) {
    const page = await events.read(accessStream(day), { from: revision + 1, limit: PAGE });
    revision = page.at(-1)?.revision ?? revision;
    const records: RecordedEvent[] = [];
    for (const record of page) if (await matches(record)) records.push(record);
    yield { records, read: page.length, position: { day, revision } };
    if (page.length === PAGE) continue;
    if (day >= to) return;
    day = dayAfter(day);
    revision = -1;
  }
}

/** The start of an operation, which is on the day of its end or the day before. `undefined`: there is none. */
async function startOf(
  events: Pick<EventStore, 'read'>,
  { stream, revision }: RecordedEvent,
  operationId: string,
): Promise<OperationStarted | undefined> {
  const isStart = ({ type, data }: RecordedEvent): boolean =>
    type === ('OperationStarted' satisfies AccessEvent['type']) &&
    (data as OperationStarted['data']).operation_id === operationId;
  for (let end = revision; end > 0;) {
    const from = Math.max(0, end - PAGE);
    const found = (await events.read(stream, { from, limit: end - from })).find(isStart);
    if (found !== undefined) return found as unknown as OperationStarted;
    end = from;
  }
  const before = accessStream(dayAfter(idOf(stream), -1));
  for (let from = 0; ; from += PAGE) {
    const page = await events.read(before, { from, limit: PAGE });
    const found = page.find(isStart);
    if (found !== undefined || page.length < PAGE) return found as unknown as OperationStarted | undefined;
  }
}

type Asked = AccessRequest['asked'];

const isAboutPerson = (asked: Asked, person: string): boolean =>
  [asked['personId'], asked['person'], ...foundBy(asked)].includes(person);

/** What calls name a gift by: its id, those of its redemptions and of its purchase. */
interface GiftNames {
  readonly gift: ReadonlySet<unknown>;
  readonly purchase: string | undefined;
}

async function namesOf(events: Pick<EventStore, 'read'>, giftId: string): Promise<GiftNames> {
  const life = (await events.read(giftStream(giftId))) as readonly Recorded<GiftEvent>[];
  const redemptions = life.flatMap(({ type, data }) => (type === 'GiftRedeemed' ? [data.redemption_id] : []));
  const [first] = life;
  return {
    gift: new Set([giftId, ...redemptions]),
    purchase: first?.type === 'GiftIssued' ? first.data.transaction_id : undefined,
  };
}

/** A call that names gifts is about these only; one that names a purchase only, about all gifts of it. */
function isAboutGift(asked: Asked, { gift, purchase }: GiftNames): boolean {
  const isPurchase = (named: unknown): boolean => purchase !== undefined && named === purchase;
  const gifts = ['giftId', 'gift', 'redemption', 'ids', 'gift_ids'].flatMap((field) => asked[field] ?? []);
  if (gifts.length > 0) return gifts.some((named) => gift.has(named) || isPurchase(named));
  const { parkedId, transactionId } = asked;
  return gift.has(parkedId) || isPurchase(parkedId) || isPurchase(transactionId);
}

const dayAfter = (day: string, days = 1): string =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
