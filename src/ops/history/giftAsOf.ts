/**
 * A gift as the API would have shown it at a time (docs/support.md#spans-of-time). Folds and entities are the same;
 * catalogue and accounts are those of that time.
 */
import { type AsOf, streamAsOf } from '../ranges/timeBounds.js';
import type { Sight } from './eventView.js';
import type { HistoryDeps, NamedGifts } from './giftHistory.js';
import { accountStream, phoneStream } from '../../domain/account.js';
import { MASK } from '../../lib/mask.js';
import { fold } from '../../domain/decider.js';
import { giftStream } from '../../domain/gift/events.js';
import { giftAggregate } from '../../domain/gift/state.js';
import { shownCause } from '../../domain/supportActions.js';
import { type AccountDocument, type UserDocument, accountsProjection } from '../../projections/accounts.js';
import { foldDocument, type ReadModel } from '../../runtime/readmodels/index.js';
import { withReminders } from '../../projections/fromStreams.js';
import { giftsProjection } from '../../projections/gifts.js';
import { transactionIn } from '../../projections/transactions.js';
import type { ReadModels } from '../../projections/index.js';
import { GIFT_RELATIONS, embedGift, requestKinds } from '../../entities/embed.js';
import { type Embedded, embeddedCollector } from '../../entities/embedded.js';
import { giftEntity } from '../../entities/gifts.js';
import { type JoinedGift, joinedGift, withMessage } from '../../entities/joinedGift.js';
import { CATALOGUE_KINDS } from '../../domain/catalogue.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type CatalogueDocument, catalogueProjection } from '../../projections/catalogue/catalogue.js';
import { catalogueState } from '../../projections/catalogue/state.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';

interface GiftAsOfDeps extends HistoryDeps {
  readonly catalogue: ReadModels['catalogue'];
  readonly publicUrl: string;
}

interface GiftAsOfRequest extends Sight {
  readonly giftId: string;
  readonly purchase: NamedGifts['purchase'];
  /** Requested time; `undefined` where it is before the log's first event. */
  readonly moment: AsOf | undefined;
  readonly embeds: readonly string[];
  /** Id of the user who views the gift. Default: the owner at that time, or else the buyer. */
  readonly viewer?: string | undefined;
}

/**
 * A gift with its embedded entities. The shortcode, also in the link, and the voucher's code are always masked; the
 * message is masked unless `personal`.
 */
interface GiftAsOf {
  readonly viewer: string;
  /** What blocked the gift, which no answer of the API shows. */
  readonly blocked_by: readonly string[];
  readonly data: object;
  readonly embedded?: Embedded;
}

/** Masked shortcode: it opens a gift, which an id does not. */
const HIDDEN = { of: () => MASK } as const;

export const ALL_RELATIONS: readonly string[] = GIFT_RELATIONS;

/**
 * A gift at a time; `undefined` where there was no such gift yet, `'no viewer'` where there was no such user yet.
 * @throws UnavailableError
 */
export async function giftAsOf(
  deps: GiftAsOfDeps,
  request: GiftAsOfRequest,
): Promise<GiftAsOf | 'no viewer' | undefined> {
  const { moment: then, embeds, personal } = request;
  const found = then === undefined ? undefined : await joinedAsOf(deps, request, then);
  if (found === undefined || then === undefined) return undefined;
  const { joined, blocked_by } = found;
  const viewerId = request.viewer ?? joined.owner ?? joined.transaction.buyer_id;
  const user = await accountAsOf(deps, accountStream('user', viewerId), then);
  if (user?.entry !== 'user') return 'no viewer';
  const viewer = { user: user satisfies UserDocument, now: then.time, publicUrl: deps.publicUrl, shortcodes: HIDDEN };
  const data = giftEntity(joined, viewer);
  if (embeds.length === 0) return { viewer: viewerId, blocked_by, data };
  const embedded = embeddedCollector();
  requestKinds(embedded, embeds);
  const catalogue = await catalogueAsOf(deps.events, deps.catalogue, then);
  for (const gift of await withMessage(deps, [joined], personal ? embeds : []))
    embedGift(embedded, gift, embeds, viewer, catalogue);
  return { viewer: viewerId, blocked_by, data, embedded: withoutSecrets(embedded.result(), personal) };
}

async function joinedAsOf(
  deps: GiftAsOfDeps,
  { giftId, purchase }: GiftAsOfRequest,
  then: AsOf,
): Promise<{ readonly joined: JoinedGift; readonly blocked_by: readonly string[] } | undefined> {
  const known = streamAsOf(purchase, then);
  const [bought] = known;
  if (bought === undefined) return undefined;
  const transaction = transactionIn(known);
  const history = streamAsOf(await deps.events.read(giftStream(giftId)), then);
  const reminded = await withReminders(deps.events, giftId, history, then.position);
  const own = foldDocument(giftsProjection, [bought, ...reminded.filter(({ at }) => at <= then.time)], giftId);
  if (transaction === undefined || own === undefined) return undefined;
  const phoneId = own.receiver.phone_id;
  const phone = phoneId === undefined ? undefined : await accountAsOf(deps, phoneStream(phoneId), then);
  const gift = fold(giftAggregate, history);
  return {
    joined: joinedGift(giftId, own, transaction, phone),
    blocked_by: gift.status === 'none' ? [] : (gift.blockedBy ?? []).map(shownCause),
  };
}

async function accountAsOf({ events }: GiftAsOfDeps, stream: string, then: AsOf): Promise<AccountDocument | undefined> {
  return foldDocument(accountsProjection, streamAsOf(await events.read(stream), then), stream);
}

function withoutSecrets(embedded: Embedded, personal: boolean): Embedded {
  const { messages, vouchers } = embedded;
  return {
    ...embedded,
    ...(vouchers === undefined ? {} : { vouchers: vouchers.map((voucher) => ({ ...voucher, code: MASK })) }),
    ...(messages === undefined || personal
      ? {}
      : { messages: messages.map((message) => ({ ...message, message: MASK })) }),
  };
}

const REACH_MS = 1_000;
const PAGE = 1_000;
const PARALLEL_READS = 32;

/**
 * The catalogue as of a time. Entries that have not changed since come from the read model, others from their streams.
 * Where the read model has not reached the position, or events before it were stamped later, the whole log is read.
 * @throws UnavailableError
 */
export async function catalogueAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  then: AsOf,
): Promise<Catalogue> {
  const state = catalogueState();
  const known = then.stampedLater === 0 ? await knownAsOf(events, model, then) : undefined;
  await state.apply(known ?? (await foldedAsOf(events, then)));
  return state.catalogue();
}

async function knownAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  then: AsOf,
): Promise<CatalogueDocument[] | undefined> {
  try {
    // A build that does not serve yet may have reached the position, too: then reading documents throws.
    return (await model.reached(then.position, REACH_MS)) ? await documentsAsOf(events, model, then) : undefined;
  } catch (error) {
    // The log is read instead; where it is unavailable, too, reading it throws.
    if (!(error instanceof UnavailableError)) throw error;
    return undefined;
  }
}

async function documentsAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  asOf: AsOf,
): Promise<CatalogueDocument[]> {
  const { position } = asOf;
  const then: CatalogueDocument[] = [];
  let changed: string[] = [];
  const refold = async (): Promise<void> => {
    const streams = await Promise.all(changed.map(async (stream) => events.read(stream)));
    for (const stream of streams) {
      const document = folded(undefined, streamAsOf(stream, asOf));
      if (document !== undefined) then.push(document);
    }
    changed = [];
  };
  for (let added = ''; ;) {
    const page = await model.find({
      where: { added: { gt: added, lte: position } },
      sort: [['added', 1]],
      limit: PAGE,
    });
    for (const { id, body } of page) {
      added = body.added;
      if (body.changed <= position) then.push(body);
      else if (changed.push(id) >= PARALLEL_READS) await refold();
    }
    if (page.length < PAGE) break;
  }
  await refold();
  return then;
}

async function foldedAsOf(events: EventStore, { time, position }: AsOf): Promise<CatalogueDocument[]> {
  const documents = new Map<string, CatalogueDocument>();
  /** Streams whose first event is of a later time: they do not exist yet. */
  const later = new Set<string>();
  const streams = CATALOGUE_KINDS.map((kind) => `${kind}-`);
  for await (const batch of events.readAll(undefined, { types: catalogueProjection.types, streams })) {
    for (const event of batch.events) {
      if (event.at > time && !documents.has(event.stream)) later.add(event.stream);
      if (event.at > time || event.position > position || later.has(event.stream)) continue;
      const document = folded(documents.get(event.stream), [event]);
      if (document !== undefined) documents.set(event.stream, document);
    }
    if (batch.position >= position) break;
  }
  return [...documents.values()];
}

function folded(
  before: CatalogueDocument | undefined,
  events: readonly RecordedEvent[],
): CatalogueDocument | undefined {
  return events
    .filter(({ type }) => catalogueProjection.types.includes(type))
    .reduce((document, event) => catalogueProjection.evolve(document, event, event.stream, 0), before);
}
