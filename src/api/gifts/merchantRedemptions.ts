/** Route that lists the latest redemptions at a merchant (docs/api/gifts.md#list-a-merchants-redemptions). */
import { callerOf } from '../../commands/loadGift.js';
import { accountStream } from '../../domain/account.js';
import { mayReverse } from '../../domain/gift/decisions.js';
import { type GiftEvent, giftStream } from '../../domain/gift/events.js';
import { redemptionEntity } from '../../entities/gifts.js';
import type { Position, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { AccountDocument, UserDocument } from '../../projections/accounts.js';
import { entryId, type FeedDocument, type FeedEntry, positionOfEntry } from '../../projections/feed/feed.js';
import { documentsListed } from '../../entities/documentsListed.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { faultOf, HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { cursorBody, cursorParameters, cursorRequest, cursorAnswer } from '../representation/cursors.js';
import { entity, flagSchema, integerSchema, orNull, querySchema, textSchema } from '../pipeline/schemas.js';
import { spanIn, spanParameters } from '../representation/spans.js';
import { userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps } from './deps.js';
import { opensGifts } from './openGift.js';
import { redemptionsIn } from './redemptionList.js';
import { redemptionExample, redemptionProperties } from './schemas.js';

/** Most entries of the feed that are read for one page, where only some are requested. */
const MOST_SCANNED = 1_000;
/** Entries are in the order of the log: one may be so much older or newer than its neighbours, ms. */
const SKEW_MS = 86_400_000;

const redemptionRow = entity('MerchantRedemption', {
  ...redemptionProperties,
  shortcode: orNull(
    textSchema(
      'The gift’s shortcode, as the customer shows it; null: the gift was not valid for the merchant, or the caller neither redeems nor unredeems.',
    ),
  ),
  product_id: textSchema(),
  value: integerSchema('The gift’s value, pence.'),
  user_id: orNull(textSchema('The merchant’s user who redeemed it; null: the customer did, or a user who is gone.')),
  reversible: flagSchema('Whether the caller can reverse it now.'),
});

const rowExample = {
  ...redemptionExample,
  shortcode: 'KX7Q2M9D',
  product_id: 'latte',
  value: 320,
  user_id: 'till-4',
  reversible: true,
};

export interface MerchantRedemptionDeps extends GiftRouteDeps {
  readonly feed: Pick<ReadModel<FeedDocument>, 'find'>;
}

/** What a page is to show. `from`, `to`: ms since the epoch. */
interface Request {
  readonly merchantId: string;
  readonly location: string | undefined;
  readonly from: number;
  readonly to: number;
  readonly after: Position | undefined;
  readonly limit: number;
}

interface Found {
  readonly entries: readonly FeedEntry[];
  /** The position to go on from; null: there are no more. */
  readonly next: Position | null;
}

/** The merchant's redemptions before a position, the latest first. @throws UnavailableError */
async function redemptionsOf({ feed }: MerchantRedemptionDeps, request: Request): Promise<Found> {
  const { merchantId, location, from, to, after, limit } = request;
  const all = location === undefined && from === -Infinity && to === Infinity;
  // Reversals are entries, too.
  const count = all ? 2 * limit + 1 : MOST_SCANNED;
  const found = await feed.find({
    // Entries alone name a merchant.
    where: { merchant: merchantId, ...(after === undefined ? {} : { id: { lt: entryId(after) } }) },
    sort: [['id', -1]],
    limit: count,
  });
  const last = found.length === count ? found.at(-1) : undefined;
  const end = last === undefined ? null : positionOfEntry(last.id);
  const entries: FeedEntry[] = [];
  for (const [index, { id, body }] of found.entries()) {
    const entry = body as FeedEntry;
    const at = Date.parse(entry.at);
    if (at < from - SKEW_MS) return { entries, next: null };
    if (entry.type !== 'gift.redeemed' || at < from || at >= to) continue;
    if (location !== undefined && entry.data.location_id !== location) continue;
    entries.push(entry);
    if (entries.length === limit) return { entries, next: index + 1 === found.length ? end : positionOfEntry(id) };
  }
  return { entries, next: end };
}

export function merchantRedemptionRoutes(deps: MerchantRedemptionDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/redemptions',
      operation: 'listTillRedemptions',
      summary: 'The latest redemptions at the caller’s merchant',
      description:
        'For a merchant’s users: all redemptions at the merchant’s locations, reversed ones too, the latest first. `reversible` says which of them the caller can reverse. A page may hold fewer than `limit`, even none, and not be the last: `has_more` says so.',
      tag: 'Redemptions',
      caller: 'user',
      noStore: true,
      reads: ['feed'],
      query: querySchema({
        location_id: textSchema('Only redemptions at this location.', { maxLength: 256 }),
        ...spanParameters('redemptions'),
        ...cursorParameters('^[0-9A-Za-z]{1,64}$'),
      }),
      answers: [cursorAnswer(redemptionRow, rowExample)],
      errors: ['forbidden'],
      async handle(call) {
        const user = userOf(call);
        const merchantId = user.merchant_id;
        if (merchantId === null || user.permissions.length === 0) throw new HttpError('forbidden');
        const { limit, after } = cursorRequest(call.query);
        if (after !== undefined && !deps.events.isPosition(after)) throw faultOf('after', 'is not valid');
        const { entries, next } = await redemptionsOf(deps, {
          merchantId,
          location: call.query['location_id'] as string | undefined,
          ...spanIn(call.query),
          after,
          limit,
        });
        return { body: cursorBody({ data: await rowsOf(deps, user, entries), next }) };
      },
    },
  ];
}

/** The redemptions as they are now, by their gifts' streams. */
async function rowsOf(deps: GiftRouteDeps, user: UserDocument, entries: readonly FeedEntry[]): Promise<object[]> {
  const giftIds = [...new Set(entries.map(({ data }) => data.gift_id ?? ''))];
  const histories = new Map(
    await Promise.all(giftIds.map(async (id) => [id, await deps.events.read(giftStream(id))] as const)),
  );
  const redemptions = new Map([...histories].map(([id, history]) => [id, redemptionsIn(history)]));
  const redeemed = entries.map(({ data }) => redeemedIn(histories.get(data.gift_id ?? ''), data.redemption_id));
  const own = await usersOf(
    deps.accounts,
    user.merchant_id,
    redeemed.map(({ metadata }) => metadata.by.user),
  );
  return entries.map(({ data: { gift_id = '', redemption_id } }, index) => {
    const [latest, ...earlier] = redemptions.get(gift_id) ?? [];
    const redemption = [latest, ...earlier].find((one) => one?.id === redemption_id);
    if (redemption === undefined) throw new Error(`gift ${gift_id} has no redemption ${redemption_id}`);
    const { data, metadata } = redeemed[index] as ReturnType<typeof redeemedIn>;
    const { user: by } = metadata.by;
    return {
      ...redemptionEntity(gift_id, redemption),
      // A shortcode opens a gift that has no receiver to whoever knows it.
      shortcode: data.merchant_id !== null && opensGifts(user) ? deps.shortcodes.of(gift_id) : null,
      product_id: data.product_id,
      value: data.value,
      user_id: by !== undefined && own.has(by) ? by : null,
      reversible:
        redemption.redeemed && redemption === latest && mayReverse(callerOf(deps.catalogue, data, user), data),
    };
  });
}

type Redeemed = Extract<Recorded<GiftEvent>, { type: 'GiftRedeemed' }>;

function redeemedIn(history: readonly RecordedEvent[] = [], redemptionId: string | undefined): Redeemed {
  const found = (history as readonly Recorded<GiftEvent>[]).find(
    (event): event is Redeemed => event.type === 'GiftRedeemed' && event.data.redemption_id === redemptionId,
  );
  if (found === undefined) throw new Error(`no gift has the redemption ${redemptionId}`);
  return found;
}

/** Ids of the users that work for the merchant: a customer who redeemed is not named to it. */
async function usersOf(
  accounts: Pick<ReadModel<AccountDocument>, 'get' | 'getMany'>,
  merchantId: string | null,
  ids: readonly (string | undefined)[],
): Promise<ReadonlySet<string>> {
  const known = [...new Set(ids.filter((id) => id !== undefined))];
  const users = await documentsListed(
    accounts,
    known.map((id) => accountStream('user', id)),
  );
  return new Set(known.filter((_, index) => isUserOf(users[index], merchantId)));
}

const isUserOf = (account: AccountDocument | null | undefined, merchantId: string | null): boolean =>
  account?.entry === 'user' && account.merchant_id === merchantId;
