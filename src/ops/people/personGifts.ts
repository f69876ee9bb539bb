/**
 * Gifts that a person bought, got, claimed or had reassigned to them: from read models, and from the log what these
 * have not folded.
 */
import { type Person } from '../../domain/erasure.js';
import { type GiftClaimed, giftStream, type GiftIssued, type GiftReassigned } from '../../domain/gift/events.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { boughtBy, namedIn, numbersOf, REASSIGNED } from '../../projections/byUser.js';
import { type GiftDocument, numberHolds, userHolds } from '../../projections/gifts.js';
import type { ReadModels } from '../../projections/index.js';
import { documentsListed } from '../../entities/documentsListed.js';
import { TIME_KEY_LENGTH, timeOfKey } from '../../projections/timeKey.js';
import { foldedBy, type FoldedOptions, NO_BUILD } from '../readmodels/foldedBy.js';
import {
  type FoldedNumbers,
  type GotGifts,
  type Identity,
  identityOf,
  isTheirs,
  type PeopleLog,
  readTraces,
} from './personTraces.js';

export interface FoundGift {
  readonly gift_id: string;
  readonly transaction_id: string;
  /** Time when the gift was bought, claimed or reassigned: ISO 8601, UTC. */
  readonly at: string;
  /** How the gift is the person's, in a search for a person. */
  readonly as?: 'buyer' | GotGifts['as'] | 'former receiver';
}

/** Read models by which a person's gifts are found, and the log. */
export interface PersonGiftDeps extends PeopleLog, FoldedOptions {
  readonly events: Pick<EventStore, 'read' | 'readAll' | 'end'>;
  readonly models: Pick<ReadModels, 'gifts' | 'transactions' | 'byUser' | 'redemptions'>;
}

const AT_ONCE = 500;
const PARALLEL_READS = 32;

/** Gifts of a person in no order, each once for each way in which it is the person's. @throws UnavailableError */
export async function giftsOfPerson(deps: PersonGiftDeps, person: Person): Promise<FoundGift[]> {
  const folded = await foldedBy([deps.models.gifts, deps.models.byUser], deps);
  const identity = await identityOf(
    deps,
    person,
    folded === NO_BUILD ? undefined : await numbersFolded(deps, person, folded),
  );
  const bought = new Map<string, FoundGift>();
  /** By gift, then by `as` and `at`: a search of all for each reassigned gift would stop the process. */
  const got = new Map<string, Map<string, FoundGift>>();
  const add = (gift: FoundGift): void => {
    const { gift_id, as, at } = gift;
    if (as === 'buyer') bought.set(`${gift_id}/${at}`, gift);
    else got.set(gift_id, (got.get(gift_id) ?? new Map<string, FoundGift>()).set(`${as}/${at}`, gift));
  };
  const reassigned = new Set<string>();
  if (folded !== NO_BUILD) {
    for (const gift of await boughtGifts(deps, identity)) add(gift);
    for (const gift of await heldGifts(deps, identity)) add(gift);
    // Read after the gifts that are held: one that is reassigned in between is in one of both.
    for (const { id } of await deps.models.byUser.find({ where: { id: { prefix: REASSIGNED } } }))
      reassigned.add(namedIn(id));
  }
  await readUnfolded(deps, identity, folded === NO_BUILD ? undefined : folded, add, reassigned);
  await inParallel(reassigned, PARALLEL_READS, async (giftId) => {
    got.delete(giftId);
    for (const gift of await onceTheirs(deps, identity, giftId)) add(gift);
  });
  return [...bought.values(), ...[...got.values()].flatMap((ways) => [...ways.values()])];
}

/** Numbers that a user had up to the position that the read models have folded. */
async function numbersFolded(
  { models }: PersonGiftDeps,
  person: Person,
  position: Position | undefined,
): Promise<FoldedNumbers> {
  if (person.kind === 'number') return { phoneIds: [], position };
  const numbers = await models.byUser.find({ where: { id: { prefix: numbersOf(person.userId) } } });
  return { phoneIds: numbers.map(({ id }) => namedIn(id)), position };
}

export function boughtIn(transaction_id: string, seed: string, count: number, at: string): FoundGift[] {
  return deriveGiftIds(seed, count).map(({ gift_id }) => ({ gift_id, transaction_id, at }));
}

async function boughtGifts({ models }: PersonGiftDeps, { userId }: Identity): Promise<FoundGift[]> {
  if (userId === undefined) return [];
  const bought = await models.byUser.find({ where: { id: { prefix: boughtBy(userId) } }, sort: [['id', -1]] });
  const ids = bought.map(({ id }) => namedIn(id));
  const found: FoundGift[] = [];
  for (let start = 0; start < ids.length; start += AT_ONCE) {
    const some = ids.slice(start, start + AT_ONCE);
    for (const [index, transaction] of (await documentsListed(models.transactions, some)).entries()) {
      if (transaction === undefined) throw new UnavailableError('the read model does not know all purchases yet');
      if (transaction === null) continue;
      const { seed, count, created_at } = transaction;
      for (const gift of boughtIn(some[index] ?? '', seed, count, created_at)) found.push({ ...gift, as: 'buyer' });
    }
  }
  return found;
}

/** Gifts that the person, or a number of theirs, holds now. */
async function heldGifts({ models }: PersonGiftDeps, identity: Identity): Promise<FoundGift[]> {
  const { userId, phoneIds, numberHolders } = identity;
  const keys = [
    ...(userId === undefined ? [] : [userHolds(userId)]),
    ...[...new Set([...phoneIds, ...numberHolders.keys()])].map(numberHolds),
  ];
  const found: FoundGift[] = [];
  for (const key of keys)
    for (const { id, body } of await models.gifts.find({ where: { held: { prefix: key } }, sort: [['held', -1]] })) {
      const at = timeOfKey((body.held ?? '').slice(-TIME_KEY_LENGTH));
      const isClaimed = userId !== undefined && body.claimed_by === userId;
      if (isClaimed || isTheirs(identity, body.receiver, at))
        found.push({ gift_id: id, transaction_id: body.transaction_id, at, as: heldAs(body) });
    }
  return found;
}

function heldAs({ claimed_by, reassigned_at }: GiftDocument): GotGifts['as'] {
  if (claimed_by !== undefined) return 'claimer';
  return reassigned_at === undefined ? 'receiver' : 'later receiver';
}

async function readUnfolded(
  { events }: PersonGiftDeps,
  identity: Identity,
  folded: Position | undefined,
  add: (gift: FoundGift) => void,
  reassigned: Set<string>,
): Promise<void> {
  const reading = readTraces(
    events,
    identity,
    {
      bought({ transaction_id, seed, receivers }, at) {
        for (const gift of boughtIn(transaction_id, seed, receivers.length, at)) add({ ...gift, as: 'buyer' });
      },
      got({ transaction_id, at, as, giftIds }) {
        for (const gift_id of giftIds()) add({ gift_id, transaction_id, at, as });
      },
      lost: (giftId) => reassigned.add(giftId),
    },
    folded,
  );
  await reading.readOn();
}

/** How a gift that was reassigned is, or was, the person's. */
async function onceTheirs({ events }: PersonGiftDeps, identity: Identity, gift_id: string): Promise<FoundGift[]> {
  let found: FoundGift[] = [];
  let transaction_id = '';
  for (const { type, data, at } of await events.read(giftStream(gift_id))) {
    if (type === 'GiftIssued') {
      const issued = data as GiftIssued['data'];
      ({ transaction_id } = issued);
      if (isTheirs(identity, issued.receiver, issued.purchased_at))
        found.push({ gift_id, transaction_id, at: issued.purchased_at, as: 'receiver' });
    } else if (type === 'GiftClaimed' && (data as GiftClaimed['data']).user_id === identity.userId) {
      found.push({ gift_id, transaction_id, at, as: 'claimer' });
    } else if (type === 'GiftReassigned') {
      found = found.map((gift) => ({ ...gift, as: 'former receiver' }));
      if (isTheirs(identity, (data as GiftReassigned['data']).receiver, at))
        found.push({ gift_id, transaction_id, at, as: 'later receiver' });
    }
  }
  return found;
}
