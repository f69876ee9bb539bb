/** Finds gifts by what a caller at the support desk knows of them (docs/support.md#finding-gifts). */
import { type Person, personId, personOf } from '../../domain/erasure.js';
import { type GiftIssued, type GiftRedeemed, giftStream } from '../../domain/gift/events.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import { idOf } from '../../domain/streamName.js';
import { purchasesCharged } from '../purchases/purchasesCharged.js';
import { foldedBy, NO_BUILD } from '../readmodels/foldedBy.js';
import { findPeople, notifiedGifts, SEARCH } from './findPeople.js';
import { boughtIn, type FoundGift, giftsOfPerson, type PersonGiftDeps } from './personGifts.js';
import { type FoundGift as GiftInStream, giftOf, giftToIssue } from '../../commands/giftSource.js';
import { readGiftAndNotification } from '../../commands/readStreams.js';
import { fold } from '../../domain/decider.js';
import { deriveGiftIds, type GiftIds } from '../../domain/giftIds.js';
import { issueGift } from '../../domain/purchase/decisions.js';
import { type MadePurchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { byBytes } from '../../lib/byBytes.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { supportedStatus, type SupportedGift } from '../history/supportedGift.js';

type GiftsBy = (typeof SEARCH.giftsBy)[number];

/** A person, or text of a kind by which gifts are found. */
type GiftSearch = { readonly person: Person } | { readonly by: Exclude<GiftsBy, 'person'>; readonly text: string };

interface FoundGifts {
  /** Gifts of the page, the latest first. */
  readonly gifts: readonly GiftRow[];
  /** Number of gifts on all pages. */
  readonly count: number;
  /** Value of `after` for the next page; null on the last. */
  readonly next: string | null;
  /** Persons with the number or username, as in paths. */
  readonly people: readonly string[];
}

interface GiftsPage {
  readonly limit: number;
  /** Position where the page starts; matches `SEARCH.giftsPosition`. */
  readonly after?: string | undefined;
}

/**
 * The latest gifts first, in pages. Searches for a charge or a message take one reading of the log. A gift that a
 * person bought for themselves is found twice, as the buyer's and as the receiver's.
 * @throws Refusal `invalid_phone_number`; UnavailableError
 */
export async function findGifts(
  deps: PersonGiftDeps,
  search: GiftSearch,
  { limit, after }: GiftsPage,
): Promise<FoundGifts> {
  const { found, people } =
    'person' in search
      ? await giftsOfAll(deps, [personId(search.person)])
      : await FINDERS[search.by](deps, search.text);
  found.sort((one, other) => byBytes(other.at, one.at));
  const start = after === undefined ? 0 : indexAfter(found, after);
  const end = start + limit;
  const last = end < found.length ? found[end - 1] : undefined;
  return {
    gifts: await giftRows(deps.events, found.slice(start, end)),
    count: found.length,
    next: last === undefined ? null : `${last.at}.${end - found.findIndex(({ at }) => at === last.at)}`,
    people,
  };
}

/** The same order each time, for gifts of one time: pages are told apart by how many of these were answered. */
function byId(one: FoundGift, other: FoundGift): number {
  return (
    byBytes(one.transaction_id, other.transaction_id) ||
    byBytes(one.gift_id, other.gift_id) ||
    byBytes(one.as ?? '', other.as ?? '')
  );
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

const TRANSACTION_ID = /^[0-9a-f]{32}$/;

type Finder = (deps: PersonGiftDeps, text: string) => Promise<Found>;

async function giftsOfAll(deps: PersonGiftDeps, people: readonly string[]): Promise<Found> {
  const found: FoundGift[] = [];
  for (const person of people) found.push(...(await giftsOfPerson(deps, personOf(person))));
  return { found: found.sort(byId), people };
}

const ofPeople =
  (by: 'phone_number' | 'username'): Finder =>
  async (deps, text) =>
    giftsOfAll(
      deps,
      (await findPeople(deps, by, text)).people.map(({ person }) => person),
    );

const FINDERS: Readonly<Record<Exclude<GiftsBy, 'person'>, Finder>> = {
  phone_number: ofPeople('phone_number'),
  username: ofPeople('username'),
  async transaction({ events }, text) {
    const [first] = TRANSACTION_ID.test(text) ? await events.read(transactionStream(text), { limit: 1 }) : [];
    if (first === undefined) return { found: [], people: [] };
    const { transaction_id, seed, receivers } = first.data as GiftsPurchased['data'];
    return { found: boughtIn(transaction_id, seed, receivers.length, first.at), people: [] };
  },
  async charge(deps, text) {
    const gifts: FoundGift[] = [];
    for await (const { data, at } of purchasesCharged(deps.events, text))
      gifts.push(...boughtIn(data.transaction_id, data.seed, data.receivers.length, at));
    return { found: gifts, people: [] };
  },
  async message_id(deps, text) {
    const gifts: FoundGift[] = [];
    for await (const { giftId: gift_id, issued, at } of notifiedGifts(deps.events, text))
      gifts.push({ gift_id, transaction_id: issued.transaction_id, at });
    return { found: gifts, people: [] };
  },
  async redemption(deps, text) {
    const gift_id = await redeemedGift(deps, text);
    const [first] = gift_id === undefined ? [] : await deps.events.read(giftStream(gift_id), { limit: 1 });
    if (gift_id === undefined || first === undefined) return { found: [], people: [] };
    const { transaction_id, purchased_at: at } = first.data as GiftIssued['data'];
    return { found: [{ gift_id, transaction_id, at }], people: [] };
  },
};

const REDEEMED = { types: ['GiftRedeemed' satisfies GiftRedeemed['type']], streams: [giftStream('')] };

/** The gift of a redemption: by the read model, and from the log what this has not folded. */
async function redeemedGift(deps: PersonGiftDeps, redemptionId: string): Promise<string | undefined> {
  const { events, models } = deps;
  const folded = await foldedBy([models.redemptions], deps);
  const known = folded === NO_BUILD ? undefined : await models.redemptions.get(redemptionId);
  if (known !== undefined) return known.gift_id;
  for await (const batch of events.readAll(folded ?? undefined, REDEEMED))
    for (const { stream, data } of batch.events)
      if ((data as GiftRedeemed['data']).redemption_id === redemptionId) return idOf(stream);
  return undefined;
}

/** A found gift as its streams have it now. Times are ISO 8601, UTC, milliseconds. */
interface GiftRow extends FoundGift, Pick<SupportedGift, 'gift_status' | 'expiry_date'> {
  readonly product_id: string;
  /** Price of the gift, in pence. */
  readonly value: number;
  readonly blocked: boolean;
  /** Type of the last event of the gift or its notification; of one that is not issued, of its purchase. */
  readonly last_event: string;
  readonly last_event_at: string;
}

const PARALLEL_READS = 16;

/** Rows of these gifts, in their order. @throws UnavailableError */
async function giftRows(events: Pick<EventStore, 'read'>, gifts: readonly FoundGift[]): Promise<readonly GiftRow[]> {
  const rows: GiftRow[] = [];
  const bought = purchasesOf(events);
  await inParallel(gifts.entries(), PARALLEL_READS, async ([index, found]) => {
    const streams = await readGiftAndNotification(events, found.gift_id);
    const purchase = streams[0].length === 0 ? await bought(found.transaction_id) : undefined;
    const own = purchase?.history ?? streams.flat();
    const inStream = await giftOf(streams[0], () => unissued(found, purchase));
    rows[index] = giftRow(found, inStream, own);
  });
  return rows;
}

function giftRow(found: FoundGift, inStream: GiftInStream, events: readonly RecordedEvent[]): GiftRow {
  const { product_id, value, expires_on } = inStream.gift.issued;
  const last = events.reduce((latest, event) => (event.position > latest.position ? event : latest));
  return {
    ...found,
    product_id,
    value,
    gift_status: supportedStatus(inStream),
    blocked: (inStream.gift.blockedBy ?? []).length > 0,
    expiry_date: expires_on,
    last_event: last.type,
    last_event_at: last.at,
  };
}

interface Bought {
  readonly history: readonly RecordedEvent[];
  readonly made: MadePurchase;
  readonly ids: readonly GiftIds[];
}

/** Purchases of gifts that are not issued, each read once: one may have thousands. */
function purchasesOf(events: Pick<EventStore, 'read'>): (transactionId: string) => Promise<Bought> {
  const known = new Map<string, Promise<Bought>>();
  const read = async (transactionId: string): Promise<Bought> => {
    const history = await events.read(transactionStream(transactionId));
    const made = fold(purchaseAggregate, history);
    if (made.status === 'none') throw new Error(`purchase ${transactionId} has gifts and was never made`);
    return { history, made, ids: deriveGiftIds(made.purchase.seed, made.purchase.receivers.length) };
  };
  return async (transactionId) => {
    const purchase = known.get(transactionId) ?? read(transactionId);
    known.set(transactionId, purchase);
    return purchase;
  };
}

function unissued({ gift_id }: FoundGift, bought: Bought | undefined): GiftInStream {
  const index = bought?.ids.findIndex((ids) => ids.gift_id === gift_id) ?? -1;
  const own = bought?.ids[index];
  if (bought === undefined || own === undefined) throw new Error(`gift ${gift_id} is not one of its purchase`);
  const { purchase, purchasedAt, status } = bought.made;
  return giftToIssue(issueGift(purchase, purchasedAt, index, own), status);
}
