/**
 * Access records over days, by their viewer and by the person or gift they are about
 * (docs/support.md#access-records).
 */
import { type AccessEvent, type AccessRequest, accessStream, foundBy } from '../../domain/access.js';
import { type GiftEvent, giftStream } from '../../domain/gift/events.js';
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
 * Reads records after `after`, up to the end of the day `to`, in one page a day at least. The end of an operation
 * matches where its start was read before.
 * @throws UnavailableError
 */
export async function* readAccess(
  events: Pick<EventStore, 'read'>,
  after: AccessPosition,
  to: string,
  { person, gift, who }: AccessFilter,
): AsyncGenerator<AccessPage> {
  const operations = new Set<string>();
  const names = gift === undefined ? undefined : await namesOf(events, gift);

  function matches({ type, data, metadata }: RecordedEvent): boolean {
    if (who !== undefined && metadata.by.user !== who) return false;
    if (person === undefined && names === undefined) return true;
    if (type === ('OperationEnded' satisfies AccessEvent['type']))
      return operations.has((data as { readonly operation_id: string }).operation_id);
    const { asked } = data as AccessRequest;
    const isAbout =
      (person === undefined || isAboutPerson(asked, person)) && (names === undefined || isAboutGift(asked, names));
    const { operation_id } = data as { readonly operation_id?: string };
    if (isAbout && operation_id !== undefined) operations.add(operation_id);
    return isAbout;
  }

  for (let { day, revision } = after; day <= to; day = dayAfter(day), revision = -1)
    for (;;) {
      const page = await events.read(accessStream(day), { from: revision + 1, limit: PAGE });
      revision = page.at(-1)?.revision ?? revision;
      yield { records: page.filter(matches), read: page.length, position: { day, revision } };
      if (page.length < PAGE) break;
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

const dayAfter = (day: string): string => new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10);
