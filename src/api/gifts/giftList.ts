/** Route that lists the caller's gifts (docs/api/gifts.md#list-gifts). */
import { alsoNamed } from '../pipeline/query.js';
import type { Route } from '../pipeline/route.js';
import {
  cursorBody,
  cursorParameters,
  cursorAnswer,
  timedCursor,
  type CursorPage,
  type CursorRequest,
} from '../representation/cursors.js';
import { userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps, viewing } from './deps.js';
import {
  GIFT_STATUSES,
  giftEntity,
  giftIdsOf,
  giftStatus,
  type GiftStatus,
  isReceived,
  sentAt,
} from '../../entities/gifts.js';
import { giftExample, giftSchema } from './schemas.js';
import { choiceSchema, querySchema } from '../pipeline/schemas.js';
import { boughtBy, namedIn, numbersOf } from '../../projections/byUser.js';
import { numberHolds, userHolds } from '../../projections/gifts.js';
import { TIME_KEY_LENGTH, timeKey } from '../../projections/timeKey.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Condition } from '../../ports/readStore.js';
import { documentsListed } from '../../entities/documentsListed.js';
import { findGifts, type GiftModels, type JoinedGift } from '../../entities/joinedGift.js';

export function giftListRoutes(deps: GiftRouteDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/gifts',
      operation: 'listGifts',
      summary: 'The caller’s gifts',
      description:
        'Gifts that the user received, claimed or bought, the latest first; each once. A gift that is not paid for yet is listed for its buyer alone. A page may hold fewer than `limit`, even none, and not be the last: `has_more` says so.',
      tag: 'Gifts',
      caller: 'user',
      reads: ['byUser'],
      query: querySchema({
        as: choiceSchema(GIFT_ROLES, '`holder`: those received or claimed; `sender`: those bought. Absent: both.'),
        status: {
          type: 'string',
          enum: GIFT_STATUSES,
          description: 'Only gifts of this `gift_status`.',
          ...alsoNamed(['gift_status']),
        },
        ...cursorParameters(timedCursor(20)),
      }),
      answers: [cursorAnswer(giftSchema, giftExample)],
      async handle(call) {
        const user = userOf(call);
        const { data: gifts, next } = await ownGifts(deps, user.id, call.query as OwnGiftsRequest);
        const viewer = viewing(deps, user);
        const data = gifts.map((gift) => giftEntity(gift, viewer));
        return { body: cursorBody({ data, next }) };
      },
    },
  ];
}

const GIFT_ROLES = ['holder', 'sender'] as const;
type GiftRole = (typeof GIFT_ROLES)[number];

type OwnGiftsRequest = CursorRequest & {
  /** Role of the user; absent: gifts of both roles. */
  readonly as?: GiftRole;
  readonly status?: GiftStatus;
};

interface OwnGiftDeps extends GiftModels {
  readonly byUser: ReadModel<object>;
}

interface Cursor {
  readonly time: string;
  readonly id: string;
}

/** Reads the first `count` positions after another one, in order; fewer: there are no more. */
type Source = (after: Cursor | undefined, count: number) => Promise<Cursor[]>;

/** The most gifts that are read to fill one page with gifts of a status. */
const MOST_SCANNED = 1_000;
const AT_ONCE = 200;
const PURCHASES_AT_ONCE = 50;

/**
 * A user's gifts, the latest first (docs/api/gifts.md#own-gifts). Each has one position in the list: the time when the
 * user got or bought it, and its id.
 */
async function ownGifts(
  deps: OwnGiftDeps,
  userId: string,
  { limit, after, as, status }: OwnGiftsRequest,
): Promise<CursorPage<JoinedGift>> {
  const sources = [
    ...(as === 'sender' ? [] : await heldSources(deps, userId)),
    ...(as === 'holder' ? [] : [sentSource(deps, userId)]),
  ];
  const count = status === undefined ? limit + 1 : Math.max(limit + 1, AT_ONCE);
  const found: { readonly cursor: Cursor; readonly gift: JoinedGift }[] = [];
  let last = after === undefined ? undefined : cursorOf(after);
  for (let scanned = 0; scanned < MOST_SCANNED; scanned += count) {
    const cursors = await merged(sources, last, count);
    const gifts = await findGifts(
      deps,
      cursors.map(({ id }) => id),
    );
    const listed = cursors.flatMap((cursor, index) => {
      const gift = gifts[index];
      if (gift === undefined) throw new UnavailableError('the read model does not know all gifts yet');
      return gift === null ? [] : [{ cursor, gift, time: timeOf(gift, userId, as) }];
    });
    const unindexed = await unindexedAmong(deps, listed);
    for (const { cursor, gift, time } of listed) {
      const isRequested = status === undefined || giftStatus(gift) === status;
      if (isRequested && (time === cursor.time || unindexed.has(cursor.id))) found.push({ cursor, gift });
    }
    last = cursors.at(-1);
    if (found.length > limit || cursors.length < count) {
      const shown = found.slice(0, limit);
      const end = found.length > limit ? shown.at(-1)?.cursor : undefined;
      return { data: shown.map(({ gift }) => gift), next: end === undefined ? null : cursorText(end) };
    }
  }
  return { data: found.map(({ gift }) => gift), next: last === undefined ? null : cursorText(last) };
}

/**
 * Ids of gifts that the user got a moment ago, as the log says, and whose new positions the index still lacks. They are
 * shown where they were, so that no list is without them.
 * @param listed gifts by their positions in the list; `time`: when the user got or bought the gift
 */
async function unindexedAmong(
  { gifts }: OwnGiftDeps,
  listed: readonly { readonly cursor: Cursor; readonly gift: JoinedGift; readonly time: string | undefined }[],
): Promise<ReadonlySet<string>> {
  const moved = listed.flatMap(({ cursor: { id, time: at }, gift: { gift }, time }) =>
    time === undefined || time === at || gift.held === undefined ? [] : [{ id, held: gift.held }],
  );
  if (moved.length === 0) return new Set();
  const unindexed = new Set(moved.map(({ id }) => id));
  const where = { id: { in: [...unindexed] }, held: { in: moved.map(({ held }) => held) } };
  for (const { id } of await gifts.find({ where })) unindexed.delete(id);
  return unindexed;
}

/**
 * Time when the user got or bought a gift; for a gift that they bought and hold, when they got it. `undefined`:
 * neither.
 */
function timeOf(joined: JoinedGift, userId: string, as: GiftRole | undefined): string | undefined {
  const { gift, transaction } = joined;
  if (as !== 'sender' && isHeldBy(joined, userId)) return gift.held?.slice(-TIME_KEY_LENGTH);
  return as !== 'holder' && transaction.buyer_id === userId ? timeKey(transaction.created_at) : undefined;
}

/**
 * Whether the user holds the gift. A gift must be paid for: otherwise anybody could fill a user's list, or learn which
 * user has a number. It must also be sent (docs/api/purchases.md#scheduled-sending).
 */
function isHeldBy(joined: JoinedGift, userId: string): boolean {
  return isReceived(joined.gift) && joined.owner === userId && sentAt(joined) !== undefined;
}

async function merged(sources: readonly Source[], after: Cursor | undefined, count: number): Promise<Cursor[]> {
  const cursors = (await Promise.all(sources.map(async (source) => source(after, count)))).flat().sort(latestFirst);
  return cursors
    .filter((cursor, index) => index === 0 || latestFirst(cursors[index - 1] as Cursor, cursor) !== 0)
    .slice(0, count);
}

function latestFirst(one: Cursor, other: Cursor): number {
  if (one.time !== other.time) return one.time < other.time ? 1 : -1;
  return one.id === other.id ? 0 : one.id < other.id ? 1 : -1;
}

const cursorText = ({ time, id }: Cursor): string => `${time}.${id}`;

/** @param text matches `timedCursor` */
const cursorOf = (text: string): Cursor => ({
  time: text.slice(0, TIME_KEY_LENGTH),
  id: text.slice(TIME_KEY_LENGTH + 1),
});

/** Sources of gifts that the user holds: one for the user, and one for each number that they ever had. */
async function heldSources({ gifts, byUser }: OwnGiftDeps, userId: string): Promise<Source[]> {
  const numbers = await byUser.find({ where: { id: { prefix: numbersOf(userId) } } });
  const keys = [userHolds(userId), ...numbers.map(({ id }) => numberHolds(namedIn(id)))];
  return keys.map((key) => async (after, count) => {
    const find = async (
      where: Readonly<Record<string, Condition>>,
      limit: number,
      by: 'held' | 'id' = 'held',
    ): Promise<Cursor[]> =>
      (await gifts.find({ where, sort: [[by, -1]], limit })).map(({ id, body: { held = '' } }) => ({
        time: held.slice(key.length),
        id,
      }));
    if (after === undefined) return find({ held: { prefix: key } }, count);
    const atOnce = await find({ held: key + after.time, id: { lt: after.id } }, count, 'id');
    const left = count - atOnce.length;
    return left === 0 ? atOnce : [...atOnce, ...(await find({ held: { gte: key, lt: key + after.time } }, left))];
  });
}

function sentSource({ byUser, transactions }: OwnGiftDeps, userId: string): Source {
  const prefix = boughtBy(userId);
  const purchaseAt = (id: string): Cursor => ({
    time: id.slice(prefix.length, prefix.length + TIME_KEY_LENGTH),
    id: namedIn(id),
  });
  /**
   * Purchases before an id, the latest first, and all purchases of the last one's time: their gifts are sorted
   * together.
   */
  const purchases = async (end: string | undefined, limit: number): Promise<Cursor[]> => {
    const where = { id: end === undefined ? { prefix } : { gte: prefix, lt: end } };
    const found = (await byUser.find({ where, sort: [['id', -1]], limit })).map(({ id }) => purchaseAt(id));
    const last = found.at(-1)?.time;
    if (last === undefined) return [];
    const ofLast = await byUser.find({ where: { id: { prefix: `${prefix}${last}/` } } });
    return [...found.filter(({ time }) => time !== last), ...ofLast.map(({ id }) => purchaseAt(id))];
  };
  return async (after, count) => {
    const cursors: Cursor[] = [];
    // `0` is the character after `/`, so the purchases of that time are included.
    let end = after === undefined ? undefined : `${prefix}${after.time}0`;
    while (cursors.length < count) {
      const bought = await purchases(end, Math.min(count, PURCHASES_AT_ONCE));
      const last = bought.at(-1);
      if (last === undefined) break;
      end = `${prefix}${last.time}/`;
      const documents = await documentsListed(
        transactions,
        bought.map(({ id }) => id),
      );
      let reading = '';
      for (const [index, { time }] of bought.entries()) {
        if (cursors.length >= count && time !== reading) break;
        reading = time;
        const transaction = documents[index];
        if (transaction === undefined) throw new UnavailableError('the read model does not know all purchases yet');
        if (transaction === null) continue;
        const gifts = giftIdsOf(transaction)
          .map((id): Cursor => ({ time, id }))
          .filter((cursor) => after === undefined || latestFirst(after, cursor) < 0);
        cursors.push(...gifts);
      }
    }
    return cursors.sort(latestFirst).slice(0, count);
  };
}
