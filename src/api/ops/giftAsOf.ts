/**
 * A gift as the API would have shown it at a position of the log: same folds and entities, catalogue and accounts of
 * that time.
 */
import { catalogueAsOf } from '../../ops/history/catalogueAsOf.js';
import type { Sight } from '../../ops/history/eventView.js';
import { type HistoryDeps, type NamedGifts, upTo } from '../../ops/history/giftHistory.js';
import { accountStream, phoneStream } from '../../domain/account.js';
import { MASK } from '../../lib/mask.js';
import { giftStream } from '../../domain/gift/events.js';
import type { Position } from '../../ports/eventStore.js';
import { type AccountDocument, type UserDocument, accountsProjection } from '../../projections/accounts.js';
import { foldDocument } from '../../runtime/readmodels/foldDocument.js';
import { withReminders } from '../../projections/fromStreams.js';
import { giftsProjection } from '../../projections/gifts.js';
import { transactionIn } from '../../projections/transactions.js';
import type { ReadModels } from '../../projections/index.js';
import { GIFT_RELATIONS, embedGift, requestKinds } from '../representation/embed.js';
import { type Embedded, embeddedCollector } from '../representation/embedded.js';
import { giftEntity } from '../gifts/entities.js';
import { type JoinedGift, joinedGift, withMessage } from '../gifts/join.js';

export interface GiftAsOfDeps extends HistoryDeps {
  readonly catalogue: ReadModels['catalogue'];
  readonly publicUrl: string;
}

export interface GiftAsOfRequest extends Sight {
  readonly giftId: string;
  readonly purchase: NamedGifts['purchase'];
  /** ISO 8601, UTC. */
  readonly time: string;
  /** The log's position at `time`; `undefined`: before the log's first event. */
  readonly position: Position | undefined;
  readonly embeds: readonly string[];
  /** A user's id. Default: the owner at that time, or else the buyer. */
  readonly viewer?: string | undefined;
}

/** The shortcode, also that of the link, and the voucher's code are always masked, the message unless `personal`. */
export interface GiftAsOf {
  readonly viewer: string;
  readonly data: object;
  readonly embedded?: Embedded;
}

/** It opens a gift, which an id does not. */
const HIDDEN = { of: () => MASK } as const;

export const ALL_RELATIONS: readonly string[] = GIFT_RELATIONS;

/** `undefined`: no such gift yet; `'no viewer'`: no such user yet. @throws UnavailableError */
export async function giftAsOf(
  deps: GiftAsOfDeps,
  request: GiftAsOfRequest,
): Promise<GiftAsOf | 'no viewer' | undefined> {
  const { time: now, position, embeds, personal } = request;
  const joined = await joinedAsOf(deps, request);
  if (joined === undefined || position === undefined) return undefined;
  const viewerId = request.viewer ?? joined.owner ?? joined.transaction.buyer_id;
  const user = await accountAsOf(deps, accountStream('user', viewerId), position);
  if (user?.entry !== 'user') return 'no viewer';
  const viewer = { user: user satisfies UserDocument, now, publicUrl: deps.publicUrl, shortcodes: HIDDEN };
  const data = giftEntity(joined, viewer);
  if (embeds.length === 0) return { viewer: viewerId, data };
  const embedded = embeddedCollector();
  requestKinds(embedded, embeds);
  const catalogue = await catalogueAsOf(deps.events, deps.catalogue, position);
  for (const gift of await withMessage(deps, [joined], personal ? embeds : []))
    embedGift(embedded, gift, embeds, viewer, catalogue);
  return { viewer: viewerId, data, embedded: withoutSecrets(embedded.result(), personal) };
}

async function joinedAsOf(
  deps: GiftAsOfDeps,
  { giftId, purchase, position }: GiftAsOfRequest,
): Promise<JoinedGift | undefined> {
  const known = upTo(purchase, position);
  const [bought] = known;
  if (bought === undefined) return undefined;
  const transaction = transactionIn(known);
  const history = upTo(await deps.events.read(giftStream(giftId)), position);
  const own = foldDocument(
    giftsProjection,
    [bought, ...(await withReminders(deps.events, giftId, history, position))],
    giftId,
  );
  if (transaction === undefined || own === undefined) return undefined;
  const phoneId = own.receiver.phone_id;
  return joinedGift(
    giftId,
    own,
    transaction,
    phoneId === undefined ? undefined : await accountAsOf(deps, phoneStream(phoneId), position),
  );
}

async function accountAsOf(
  { events }: GiftAsOfDeps,
  stream: string,
  position: Position | undefined,
): Promise<AccountDocument | undefined> {
  return foldDocument(accountsProjection, upTo(await events.read(stream), position), stream);
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
