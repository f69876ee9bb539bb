/** Reads the next events for an endpoint: those that its owner requested again, and new ones. */
import type { Records } from '../ports/readStore.js';
import type { EntryType } from '../projections/feed/entryTypes.js';
import type { FeedDocument } from '../projections/feed/feed.js';
import { feedPage, type PlacedEntry, viewerOf } from '../projections/feed/feedPage.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { Position } from '../ports/eventStore.js';
import type { Waiting } from './backlog.js';
import { listAbandoned } from './abandoned.js';
import { waitingEntry } from './message.js';
import type { Progress } from './progress.js';

const PAGE = 100;

export interface ReadingDeps {
  readonly feed: Pick<ReadModel<FeedDocument>, 'folded' | 'find' | 'get' | 'getMany'>;
  readonly records: Records;
}

export interface Reading {
  readonly items: readonly Waiting[];
  /** Applies the reading to the present progress, which may have changed since the read began. */
  readonly change: (progress: Progress) => Progress;
  /** The items come from the abandoned events, and leave those records once the progress with them is stored. */
  readonly taken?: true;
}

/** @returns `undefined`: nothing is requested again, or the feed has not come so far. @throws UnavailableError */
export async function readAgain(
  { feed, records }: ReadingDeps,
  endpoint: EndpointDocument,
  progress: Progress,
): Promise<Reading | undefined> {
  const { recoveringAbandoned, recovering } = progress;
  if (recoveringAbandoned !== undefined) return readAbandoned(records, endpoint.endpoint_id, recoveringAbandoned);
  const [part] = recovering;
  if (part === undefined) return undefined;
  const { after, through, since, before } = part;
  const page = await feedPage(feed, viewerOf(endpoint.owner), { after, limit: PAGE, ...typesOf(endpoint) });
  const to = page.through ?? after;
  // The endpoint may be folded before the feed: the part waits for its events.
  if (to <= after) return undefined;
  return {
    items: waiting(
      page.entries.filter(
        ({ position, entry: { at } }) => position <= through && at >= since && (before === undefined || at < before),
      ),
    ).map((item) => ({ ...item, requested: true })),
    change(now) {
      const rest = now.recovering.slice(1);
      return { ...now, recovering: to < through ? [{ ...part, after: to }, ...rest] : rest };
    },
  };
}

async function readAbandoned(records: Records, endpointId: string, since: string): Promise<Reading> {
  for await (const items of listAbandoned(records, endpointId, since))
    if (items.length > 0) return { items, change: (now) => now, taken: true };
  return {
    items: [],
    change(now) {
      const { recoveringAbandoned: _, ...rest } = now;
      return rest;
    },
  };
}

interface NewReading extends Reading {
  /** Position up to which the feed has been read. */
  readonly cursor: Position;
  readonly more: boolean;
  /** See `FeedPage.sources`. */
  readonly sources: readonly string[];
}

/** @throws UnavailableError */
export async function readNew(
  { feed }: Pick<ReadingDeps, 'feed'>,
  endpoint: EndpointDocument,
  { cursor: after }: Pick<Progress, 'cursor'>,
): Promise<NewReading> {
  const { entries, through, more, sources } = await feedPage(feed, viewerOf(endpoint.owner), {
    after,
    limit: PAGE,
    ...typesOf(endpoint),
  });
  const cursor = through ?? after;
  return {
    items: waiting(entries),
    change: (now) => ({ ...now, cursor }),
    cursor,
    more: more && cursor > after,
    sources,
  };
}

const waiting = (entries: readonly PlacedEntry[]): Waiting[] =>
  entries.map(({ position, entry }) => waitingEntry(position, entry));

function typesOf({ types }: EndpointDocument): { readonly types?: ReadonlySet<EntryType> } {
  return types === null ? {} : { types: new Set(types as readonly EntryType[]) };
}
