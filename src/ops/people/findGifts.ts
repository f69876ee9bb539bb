/** Finds gifts by what a caller at the support desk knows of them (docs/support.md#finding-gifts). */
import { type Person, personId, personOf } from '../../domain/erasure.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import { type FindDeps, findPeople, notifiedGifts, purchasesCharged } from './findPeople.js';
import { type GotGifts, readTraces } from './personTraces.js';
import { whoIs } from './who.js';

/** Kinds of search text: a person, the number or username of a holder, or an id of the payment or message provider. */
export const GIFTS_BY = ['person', 'phone', 'username', 'charge', 'message_id'] as const;
export type GiftsBy = (typeof GIFTS_BY)[number];

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
  readonly gifts: readonly FoundGift[];
  /** Value of `after` for the next page; null on the last. */
  readonly next: string | null;
  /** Persons with the number or username, as in paths. */
  readonly people: readonly string[];
}

/**
 * Position between pages: a time, and how many of its gifts were answered. New gifts move no page: they come before it,
 * or last of their time.
 */
export const PLACE = '^(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\\.(\\d{1,9})$';

export interface GiftsPage {
  readonly limit: number;
  /** Position where the page starts; matches `PLACE`. */
  readonly after?: string | undefined;
}

/**
 * The latest gifts first, in pages. All searches but those for usernames and numbers take one reading of the log, and
 * so do the gifts of a person. A gift that a person bought for themselves is found twice, as the buyer's and as the
 * receiver's.
 * @throws Refusal `invalid_phone_number`; UnavailableError
 */
export async function findGifts(
  deps: FindDeps,
  asked: { readonly by: Exclude<GiftsBy, 'person'>; readonly text: string } | { readonly person: Person },
  { limit, after }: GiftsPage,
): Promise<FoundGifts> {
  const { found, people } =
    'person' in asked ? await giftsOfAll(deps, [personId(asked.person)]) : await FINDERS[asked.by](deps, asked.text);
  found.sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0));
  const start = after === undefined ? 0 : placeIn(found, after);
  const end = start + limit;
  const last = end < found.length ? found[end - 1] : undefined;
  return {
    gifts: found.slice(start, end),
    next: last === undefined ? null : `${last.at}.${end - found.findIndex(({ at }) => at === last.at)}`,
    people,
  };
}

function placeIn(found: readonly FoundGift[], after: string): number {
  const [, at = '', answered] = new RegExp(PLACE).exec(after) ?? [];
  const later = found.findIndex((gift) => gift.at <= at);
  return later < 0 ? found.length : later + (found[later]?.at === at ? Number(answered) : 0);
}

interface Search {
  readonly found: FoundGift[];
  readonly people: readonly string[];
}

type Finder = (deps: FindDeps, text: string) => Promise<Search>;

async function giftsOfAll(deps: FindDeps, people: readonly string[]): Promise<Search> {
  const found: FoundGift[] = [];
  for (const person of people) found.push(...(await giftsOf(deps, personOf(person))));
  return { found, people };
}

const ofPeople =
  (known: 'phone' | 'username'): Finder =>
  async (deps, text) =>
    giftsOfAll(
      deps,
      (await findPeople(deps, known, text)).people.map(({ person }) => person),
    );

const FINDERS: Readonly<Record<Exclude<GiftsBy, 'person'>, Finder>> = {
  phone: ofPeople('phone'),
  username: ofPeople('username'),
  async charge(deps, text) {
    const gifts: FoundGift[] = [];
    for await (const { data, at } of purchasesCharged(deps.events, text)) gifts.push(...boughtIn(data, at));
    return { found: gifts, people: [] };
  },
  async message_id(deps, text) {
    const gifts: FoundGift[] = [];
    for await (const { giftId: gift_id, issued, at } of notifiedGifts(deps.events, text))
      gifts.push({ gift_id, transaction_id: issued.transaction_id, at });
    return { found: gifts, people: [] };
  },
};

async function giftsOf(deps: FindDeps, person: Person): Promise<FoundGift[]> {
  const gifts: FoundGift[] = [];
  const reading = readTraces(deps.events, await whoIs(deps, person), {
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
