/** What a text may name, and how that is looked for. */
import type { EventView } from '../../src/ops/history/eventView.js';
import { Failed, get, type Query } from './call.js';
import { readToEnd } from './pages.js';
import { NUMBER } from './receiverLines.js';

/** A row of `GET /ops/gifts`. */
export interface FoundGift {
  readonly gift_id: string;
  readonly transaction_id: string;
  readonly product_id: string;
  readonly value: number;
  readonly gift_status: string;
  readonly blocked: boolean;
  readonly expiry_date: string;
  readonly last_event: string;
  readonly last_event_at: string;
  readonly as?: string;
}

export interface Found {
  readonly gifts?: readonly FoundGift[];
  /** Ids of persons. */
  readonly people?: readonly string[];
  /** Whether there are more gifts or persons than these. */
  readonly hasMore?: boolean;
  readonly giftId?: string;
  readonly transactionIds?: readonly string[];
  /** A request, by its id. */
  readonly traceId?: string;
}

export interface Candidate {
  /** What the text is taken for, with its article. */
  readonly name: string;
  /** Whether the search takes a reason, which is recorded. */
  readonly needsReason: boolean;
  /** @param reason recorded with the search. @returns `undefined`: there is none. @throws Failed */
  readonly find: (reason: string) => Promise<Found | undefined>;
}

interface Kind {
  readonly name: string;
  readonly looksSo: RegExp;
  readonly find: (text: string, reason: string) => Promise<Found | undefined>;
  readonly needsReason?: false;
}

const giftsBy =
  (parameter: string) =>
  async (text: string, reason: string): Promise<Found | undefined> => {
    const found = await known(async () => page<FoundGift>('ops/gifts', { [parameter]: text, reason }));
    if (found === undefined || found.data.length === 0) return undefined;
    return { gifts: found.data, hasMore: found.next !== null, ...(parameter === 'person' ? { people: [text] } : {}) };
  };

const personBy =
  (parameter: string) =>
  async (text: string, reason: string): Promise<Found | undefined> => {
    const found = await known(async () =>
      page<{ readonly person: string }>('ops/people', { [parameter]: text, reason }),
    );
    if (found === undefined || found.data.length === 0) return undefined;
    const people = found.data.map(({ person }) => person);
    const [only] = people;
    if (people.length !== 1 || only === undefined) return { people, hasMore: found.has_more === true };
    const gifts = await page<FoundGift>('ops/gifts', { person: only, reason });
    return { people, gifts: gifts.data, hasMore: gifts.next !== null };
  };

async function order(text: string): Promise<Found | undefined> {
  const found = await known(async () =>
    page<{ readonly transaction_id: string }>('ops/transactions', { reference_id: text }),
  );
  const ids = found?.data.map(({ transaction_id }) => transaction_id) ?? [];
  return ids.length === 0 ? undefined : { transactionIds: ids, hasMore: found?.next !== null };
}

async function gift(text: string): Promise<Found | undefined> {
  const path = `ops/gifts/${encodeURIComponent(text)}/history`;
  const giftId = (await known(async () => get<{ readonly gift_ids: readonly string[] }>(path)))?.gift_ids[0];
  return giftId === undefined ? undefined : { giftId };
}

async function transaction(text: string): Promise<Found | undefined> {
  const found = await known(async () => get<object>(`ops/transactions/${encodeURIComponent(text)}/refunds`));
  return found === undefined ? undefined : { transactionIds: [text] };
}

async function trace(text: string): Promise<Found | undefined> {
  const enough = new AbortController();
  const events: EventView[] = [];
  const collect = (rows: readonly EventView[]): void => {
    events.push(...rows);
    // The page of the trace reads on.
    if (events.length > 0) enough.abort();
  };
  await readToEnd<EventView>({ correlation_id: text }, collect, enough.signal);
  return events.length === 0 ? undefined : { traceId: text };
}

/** Tried in this order. The shapes of ids are those of docs/api/conventions.md and of the simulated providers. */
const KINDS: readonly Kind[] = [
  { name: 'a gift’s id', looksSo: /^[\da-f]{20}$/, find: gift, needsReason: false },
  { name: 'a gift’s shortcode', looksSo: /^(?:[\s-]*[\da-z]){16}[\s-]*$/i, find: gift, needsReason: false },
  { name: 'a transaction', looksSo: /^[\da-f]{32}$/, find: transaction, needsReason: false },
  { name: 'a redemption', looksSo: /^[\da-f]{20}([\da-f]{11})?$/, find: giftsBy('redemption') },
  { name: 'a request’s id', looksSo: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i, find: trace, needsReason: false },
  { name: 'a number', looksSo: /^\+?[\d ()-]{7,20}$/, find: personBy('phone_number') },
  { name: 'a charge', looksSo: /^(ch|py|pi)_/, find: giftsBy('charge') },
  { name: 'a message’s id', looksSo: /^(SM|MM|msg_)/, find: giftsBy('message_id') },
  { name: 'a username', looksSo: /^\S{1,256}$/, find: personBy('username') },
  { name: 'a user’s id', looksSo: /^[\w.-]{1,64}$|^phone:/, find: giftsBy('person') },
  { name: 'an order’s reference', looksSo: /^.{1,255}$/, find: order, needsReason: false },
  { name: 'a part of a name', looksSo: /^[^\d@]{3,100}$/, find: personBy('name') },
  { name: 'a charge', looksSo: /^[\w.-]{8,255}$/, find: giftsBy('charge') },
  { name: 'a message’s id', looksSo: /^[\w.-]{8,255}$/, find: giftsBy('message_id') },
];

export function candidatesOf(text: string): readonly Candidate[] {
  const names = new Set<string>();
  return KINDS.filter(({ looksSo, name }) => looksSo.test(text) && !names.has(name) && names.add(name)).map(
    ({ name, find, needsReason = true }) => ({ name, needsReason, find: async (reason) => find(text, reason) }),
  );
}

/** Rows of a page where all are read. */
const MOST_ROWS = 1_000;

/** All gifts of a search, however many pages that takes. @throws Failed */
export async function allGifts(query: Query): Promise<readonly FoundGift[]> {
  const gifts: FoundGift[] = [];
  let after: string | undefined;
  do {
    const page: { readonly data: readonly FoundGift[]; readonly next: string | null } = await get('ops/gifts', {
      query: { ...query, limit: MOST_ROWS, after },
    });
    gifts.push(...page.data);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return gifts;
}

/** Gifts of a purchase that are theirs now. @param receiver a number, a username or a user’s id. @throws Failed */
export async function giftsOf(receiver: string, transaction: string, reason: string): Promise<readonly FoundGift[]> {
  const by = NUMBER.test(receiver) ? 'phone_number' : receiver.includes('@') ? 'username' : 'person';
  const theirs = (await known(async () => allGifts({ [by]: receiver, reason }))) ?? [];
  return theirs.filter(
    ({ transaction_id, as }) => transaction_id === transaction && as !== 'buyer' && as !== 'former receiver',
  );
}

interface FoundPage<Row> {
  readonly data: readonly Row[];
  readonly next?: string | null;
  readonly has_more?: boolean;
}

async function page<Row>(path: string, query: Query): Promise<FoundPage<Row>> {
  return get<FoundPage<Row>>(path, { query });
}

/** `undefined` for what the service does not know, or does not take for what it was looked for. */
async function known<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof Failed && (error.status === 404 || error.status === 422)) return undefined;
    throw error;
  }
}
