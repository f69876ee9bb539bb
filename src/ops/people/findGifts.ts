/** Finds gifts by what a caller at the support desk knows of them (docs/support.md#finding-gifts). */
import { type Person, personId, personOf } from '../../domain/erasure.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import { purchasesCharged } from '../purchases/purchasesCharged.js';
import { findPeople, notifiedGifts, SEARCH } from './findPeople.js';
import { type GiftRow, giftRows } from './giftRows.js';
import { type GotGifts, identityOf, type PeopleLog, readTraces } from './personTraces.js';

type GiftsBy = (typeof SEARCH.giftsBy)[number];

/** A person, or text of a kind by which gifts are found. */
export type GiftSearch =
  { readonly person: Person } | { readonly by: Exclude<GiftsBy, 'person'>; readonly text: string };

export interface FoundGift {
  readonly gift_id: string;
  readonly transaction_id: string;
  /** Time when the gift was bought, claimed or reassigned: ISO 8601, UTC. */
  readonly at: string;
  /** How the gift is the person's, in a search for a person. */
  readonly as?: 'buyer' | GotGifts['as'];
}

export interface FoundGifts {
  /** Gifts of the page, the latest first. */
  readonly gifts: readonly GiftRow[];
  /** Number of gifts on all pages. */
  readonly count: number;
  /** Value of `after` for the next page; null on the last. */
  readonly next: string | null;
  /** Persons with the number or username, as in paths. */
  readonly people: readonly string[];
}

export interface GiftsPage {
  readonly limit: number;
  /** Position where the page starts; matches `SEARCH.giftsPosition`. */
  readonly after?: string | undefined;
}

/**
 * The latest gifts first, in pages. All searches but those for usernames and numbers take one reading of the log, and
 * so do the gifts of a person. A gift that a person bought for themselves is found twice, as the buyer's and as the
 * receiver's.
 * @throws Refusal `invalid_phone_number`; UnavailableError
 */
export async function findGifts(log: PeopleLog, search: GiftSearch, { limit, after }: GiftsPage): Promise<FoundGifts> {
  const { found, people } =
    'person' in search ? await giftsOfAll(log, [personId(search.person)]) : await FINDERS[search.by](log, search.text);
  found.sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0));
  const start = after === undefined ? 0 : indexAfter(found, after);
  const end = start + limit;
  const last = end < found.length ? found[end - 1] : undefined;
  return {
    gifts: await giftRows(log.events, found.slice(start, end)),
    count: found.length,
    next: last === undefined ? null : `${last.at}.${end - found.findIndex(({ at }) => at === last.at)}`,
    people,
  };
}

function indexAfter(found: readonly FoundGift[], after: string): number {
  const [, at = '', answered] = new RegExp(SEARCH.giftsPosition).exec(after) ?? [];
  const later = found.findIndex((gift) => gift.at <= at);
  return later < 0 ? found.length : later + (found[later]?.at === at ? Number(answered) : 0);
}

interface Found {
  readonly found: FoundGift[];
  readonly people: readonly string[];
}

type Finder = (log: PeopleLog, text: string) => Promise<Found>;

async function giftsOfAll(log: PeopleLog, people: readonly string[]): Promise<Found> {
  const found: FoundGift[] = [];
  for (const person of people) found.push(...(await giftsOf(log, personOf(person))));
  return { found, people };
}

const ofPeople =
  (by: 'phone' | 'username'): Finder =>
  async (log, text) =>
    giftsOfAll(
      log,
      (await findPeople(log, by, text)).people.map(({ person }) => person),
    );

const FINDERS: Readonly<Record<Exclude<GiftsBy, 'person'>, Finder>> = {
  phone: ofPeople('phone'),
  username: ofPeople('username'),
  async charge(log, text) {
    const gifts: FoundGift[] = [];
    for await (const { data, at } of purchasesCharged(log.events, text)) gifts.push(...boughtIn(data, at));
    return { found: gifts, people: [] };
  },
  async message_id(log, text) {
    const gifts: FoundGift[] = [];
    for await (const { giftId: gift_id, issued, at } of notifiedGifts(log.events, text))
      gifts.push({ gift_id, transaction_id: issued.transaction_id, at });
    return { found: gifts, people: [] };
  },
};

async function giftsOf(log: PeopleLog, person: Person): Promise<FoundGift[]> {
  const gifts: FoundGift[] = [];
  const reading = readTraces(log.events, await identityOf(log, person), {
    bought(purchase, at) {
      for (const gift of boughtIn(purchase, at)) gifts.push({ ...gift, as: 'buyer' });
    },
    got({ transaction_id, at, as, giftIds }) {
      for (const gift_id of giftIds()) gifts.push({ gift_id, transaction_id, at, as });
    },
  });
  await reading.readOn();
  return gifts;
}

const boughtIn = ({ transaction_id, seed, receivers }: GiftsPurchased['data'], at: string): FoundGift[] =>
  deriveGiftIds(seed, receivers.length).map(({ gift_id }) => ({ gift_id, transaction_id, at }));
