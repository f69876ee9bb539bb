/** A page of the event feed, as one viewer sees it (docs/api/events.md#event-feed). */
import { ownerByPhone } from '../../domain/account.js';
import type { Position } from '../../ports/eventStore.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { EntryType } from './entryTypes.js';
import { entryBound, type FeedDocument, type FeedEntry, numberHolders, positionOfEntry, userNumbers } from './feed.js';
import { type NumberHolders, phoneHolder, userHolder, type UserNumbers } from './parties.js';

/** Most entries read from one source for a page, where only some of them are requested. */
const MOST_SCANNED = 1_000;

/** Reader of the feed. `merchant`: sees only redemptions at that merchant, as its webhook endpoints do. */
export type Viewer =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'client'; readonly clientId: string }
  | { readonly kind: 'merchant'; readonly merchantId: string }
  | { readonly kind: 'user'; readonly user: { readonly id: string; readonly merchant_id: string | null } };

/** The viewer of what webhook endpoints of an owner get. @param owner `client:{id}` or `merchant:{id}` */
export function viewerOf(owner: string): Viewer {
  const id = owner.slice(owner.indexOf(':') + 1);
  return owner.startsWith('client:') ? { kind: 'client', clientId: id } : { kind: 'merchant', merchantId: id };
}

interface PageRequest {
  readonly after: Position | undefined;
  /** Types of entries to return; absent: all. */
  readonly types?: ReadonlySet<EntryType>;
  readonly limit: number;
}

export interface PlacedEntry {
  readonly position: Position;
  readonly entry: FeedEntry;
}

export interface FeedPage {
  readonly entries: readonly PlacedEntry[];
  /** Position up to which the feed has been read; `undefined`: the feed is empty. */
  readonly through: Position | undefined;
  readonly more: boolean;
  /** Names of the sources of all entries that the viewer sees. */
  readonly sources: readonly string[];
}

const FIELDS = ['client', 'buyer', 'holder', 'merchant'] as const;

/** Entries with one value in one field, of which the viewer may see some or all. */
interface Source {
  readonly field: (typeof FIELDS)[number];
  readonly value: string;
  readonly isSeen?: (entry: FeedEntry) => boolean;
}

const nameOf = ({ field, value }: Pick<Source, 'field' | 'value'>): string => `${field}=${value}`;

/** Names of the sources that an entry belongs to; empty for any other document. */
function sourcesNaming(document: FeedDocument): string[] {
  return FIELDS.flatMap((field) => {
    const value = (document as Partial<FeedEntry>)[field];
    return value === undefined ? [] : [nameOf({ field, value })];
  });
}

/**
 * The sources with entries after `after` and up to `through`; `undefined`: too many to tell.
 * @throws UnavailableError
 */
export async function newSources(
  feed: Pick<Feed, 'find'>,
  after: Position,
  through: Position,
): Promise<ReadonlySet<string> | undefined> {
  const found = await feed.find({
    where: { id: { gt: entryBound(after), lte: entryBound(through) } },
    sort: [['id', 1]],
    limit: MOST_SCANNED,
  });
  return found.length < MOST_SCANNED ? new Set(found.flatMap(({ body }) => sourcesNaming(body))) : undefined;
}

type Feed = Pick<ReadModel<FeedDocument>, 'folded' | 'find' | 'get' | 'getMany'>;

/**
 * A page in log order, complete up to `through`: an entry that comes later has a higher position. A page may be empty
 * though more follow, where only some entries of a source are requested, or may be seen.
 * @throws UnavailableError
 */
export async function feedPage(feed: Feed, viewer: Viewer, request: PageRequest): Promise<FeedPage> {
  const { after, types, limit } = request;
  // Read first, so that the entries read next include every event up to this position.
  const end = await feed.folded();
  const sources = await sourcesOf(feed, viewer);
  const names = sources.map(nameOf);
  if (end === undefined || (after !== undefined && end <= after))
    return { entries: [], through: after ?? end, more: false, sources: names };
  const required = ({ isSeen }: Source): number =>
    types === undefined && isSeen === undefined ? limit + 1 : Math.max(limit + 1, MOST_SCANNED);
  const found = await Promise.all(
    sources.map(async (source) => entriesOf(feed, source, { after, end, required: required(source) })),
  );
  const full = found
    .filter(({ length }, index) => length === required(sources[index] as Source))
    .map((entries) => entries.at(-1)?.position ?? end);
  const through = full.reduce((least, one) => (one < least ? one : least), end);
  const seen = new Map<Position, FeedEntry>();
  for (const [index, entries] of found.entries())
    for (const { position, entry } of entries)
      if (position <= through && types?.has(entry.type) !== false && sources[index]?.isSeen?.(entry) !== false)
        seen.set(position, entry);
  const entries = [...seen]
    .map(([position, entry]) => ({ position, entry }))
    .sort((one, other) => (one.position < other.position ? -1 : 1));
  if (entries.length <= limit) return { entries, through, more: full.length > 0, sources: names };
  const page = entries.slice(0, limit);
  return { entries: page, through: page.at(-1)?.position, more: true, sources: names };
}

async function entriesOf(
  feed: Feed,
  { field, value }: Source,
  { after, end, required }: { readonly after: Position | undefined; readonly end: Position; readonly required: number },
): Promise<PlacedEntry[]> {
  const found = await feed.find({
    where: { [field]: value, id: { gt: entryBound(after ?? ''), lte: entryBound(end) } },
    sort: [['id', 1]],
    limit: required,
  });
  return found.map(({ id, body }) => ({ position: positionOfEntry(id), entry: body as FeedEntry }));
}

async function sourcesOf(feed: Feed, viewer: Viewer): Promise<Source[]> {
  if (viewer.kind === 'anonymous') return [];
  if (viewer.kind === 'client') return [{ field: 'client', value: viewer.clientId }];
  if (viewer.kind === 'merchant') return [{ field: 'merchant', value: viewer.merchantId }];
  const { id, merchant_id } = viewer.user;
  return [
    { field: 'buyer', value: id },
    { field: 'holder', value: userHolder(id) },
    ...(merchant_id === null ? [] : [{ field: 'merchant' as const, value: merchant_id }]),
    ...(await numbersOf(feed, id)),
  ];
}

/** Sources of a user's numbers, which others may have held: a gift is the owner's (docs/api/gifts.md#gift-owner). */
async function numbersOf(feed: Feed, userId: string): Promise<Source[]> {
  const { phone_ids = [] } = ((await feed.get(userNumbers(userId))) ?? {}) as Partial<UserNumbers>;
  const numbers = await feed.getMany(phone_ids.map(numberHolders));
  return phone_ids.map((phoneId, index) => {
    const { holders = [] } = (numbers[index] ?? {}) as Partial<NumberHolders>;
    return {
      field: 'holder',
      value: phoneHolder(phoneId),
      isSeen: ({ since = '' }) => ownerByPhone(holders, since) === userId,
    };
  });
}
