/**
 * Changes many gifts of one purchase, each by its own stream, so many at a time; safe to repeat: what is done decides
 * to do nothing.
 */
import { fold } from '../../domain/decider.js';
import { type GiftEvent, giftAggregate, giftStream, type IssuedGift } from '../../domain/gift.js';
import { issueGifts, type MadePurchase } from '../../domain/purchase.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { ConflictError, type EventStore } from '../../ports/eventStore.js';
import type { Reason, Writer } from '../runner/writing.js';

/** What it works with. */
export interface GiftChangeDeps {
  readonly events: EventStore;
  readonly writer: Writer;
  /** Throws when this process may not act any more. */
  readonly mayAct: () => void;
}

/** One gift as it stands. `issue`: what issues it, where nobody has yet. */
export interface StandingGift {
  readonly giftId: string;
  readonly gift: IssuedGift;
  readonly issue?: GiftEvent;
  /** Of its stream; -1: empty. */
  readonly revision: number;
}

/** Gifts of one purchase that are looked at or changed at a time. */
export const AT_ONCE = 32;
const RACES = 16;

/** Calls `visit` for every gift of a purchase that was charged, as it stands in its stream; many at a time. */
export async function visitGifts(
  { events }: Pick<GiftChangeDeps, 'events'>,
  { purchase, purchasedAt }: MadePurchase,
  visit: (gift: StandingGift) => Promise<void> | void,
): Promise<void> {
  await inParallel(issueGifts(purchase, purchasedAt), AT_ONCE, async ({ giftId, event }) =>
    visit(await readGift(events, giftId, event)),
  );
}

async function readGift(events: EventStore, giftId: string, issue: GiftEvent): Promise<StandingGift> {
  const history = await events.read(giftStream(giftId));
  const gift = fold(giftAggregate, history);
  if (gift.status !== 'none') return { giftId, gift, revision: history.at(-1)?.revision ?? -1 };
  const issued = fold(giftAggregate, [{ ...issue, at: '' }]);
  if (issued.status === 'none') throw new Error('a gift that is issued is not there');
  return { giftId, gift: issued, issue, revision: -1 };
}

/** What became of one gift: as it was when that was decided. */
export interface GiftChange {
  readonly before: IssuedGift;
  /** Whether anything was appended. */
  readonly changed: boolean;
}

/**
 * Appends what `decide` says about one gift, with its issue where nobody has issued it yet.
 * @throws ConflictError after many lost races; UnavailableError
 */
export async function changeGift(
  { events, writer, mayAct }: GiftChangeDeps,
  found: StandingGift,
  reason: Reason,
  decide: (gift: IssuedGift) => readonly GiftEvent[],
): Promise<GiftChange> {
  let at = found;
  for (let race = 0; race < RACES; race++) {
    const [first, ...more] = decide(at.gift);
    if (first === undefined) return { before: at.gift, changed: false };
    mayAct();
    const decided = at.issue === undefined ? ([first, ...more] as const) : ([at.issue, first, ...more] as const);
    if (
      (await writer.append(giftStream(at.giftId), decided, at.revision < 0 ? 'none' : at.revision, reason)) !==
      undefined
    )
      return { before: at.gift, changed: true };
    const history = await events.read(giftStream(at.giftId));
    const gift = fold(giftAggregate, history);
    if (gift.status === 'none') throw new Error('a gift that somebody wrote to is not issued');
    at = { giftId: at.giftId, gift, revision: history.at(-1)?.revision ?? -1 };
  }
  throw new ConflictError(giftStream(found.giftId), found.revision, found.revision);
}

/** Changes every gift of a purchase that was charged. `done` is told what became of each. */
export async function changeGifts(
  deps: GiftChangeDeps,
  purchase: MadePurchase,
  reason: Reason,
  decide: (gift: IssuedGift) => readonly GiftEvent[],
  done: (change: GiftChange) => void,
): Promise<void> {
  await visitGifts(deps, purchase, async (found) => done(await changeGift(deps, found, reason, decide)));
}
