/** Changes gifts of one purchase, each by its own stream. Safe to repeat. */
import { giftSource, giftToIssue, type FoundGift, withIssue } from '../../commands/giftSource.js';
import type { StreamState } from '../../commands/transact.js';
import type { GiftEvent, GiftIssued } from '../../domain/gift/events.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import type { MadePurchase } from '../../domain/purchase/state.js';
import { issueGifts } from '../../domain/purchase/decisions.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { Reason, StepDeps } from '../runner/index.js';

export type GiftChangeDeps = Pick<StepDeps, 'events' | 'writer' | 'mayAct'>;

/** A gift of a charged purchase. */
export interface PaidGift {
  readonly giftId: string;
  /** The issue event, appended first where the gift is not issued yet. */
  readonly issue: GiftIssued;
  /** The gift's stream as just read; absent: it is read before the change. */
  readonly found?: StreamState<FoundGift>;
}

export interface VisitedGift extends PaidGift {
  readonly gift: IssuedGift;
}

export const AT_ONCE = 32;

export async function visitGifts(
  { events }: Pick<GiftChangeDeps, 'events'>,
  { purchase, purchasedAt }: MadePurchase,
  visit: (gift: VisitedGift) => Promise<void> | void,
): Promise<void> {
  await inParallel(issueGifts(purchase, purchasedAt), AT_ONCE, async ({ giftId, event: issue }) => {
    const { stream, state, revision } = await giftSource(events, giftId, () => giftToIssue(issue, 'charged')).read();
    // Visitors hold thousands of gifts in memory, so the history, which they do not need, is left out.
    return visit({ giftId, issue, gift: state.gift, found: { stream, state, revision, history: [] } });
  });
}

type Decide = (gift: IssuedGift) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>;

interface GiftChange {
  /** The gift that was decided on. */
  readonly before: IssuedGift;
  /** Whether this command changed the gift, in this process or concurrently in another that appended the same. */
  readonly changed: boolean;
}

/**
 * Appends the events of `decide`, with the gift's issue where it is missing.
 * @throws ConflictError after many lost races; UnavailableError
 */
export async function changeGift(
  { events, writer, mayAct }: GiftChangeDeps,
  { giftId, issue, found }: PaidGift,
  reason: Reason,
  decide: Decide,
): Promise<GiftChange> {
  const source = giftSource(events, giftId, () => giftToIssue(issue, 'charged'), found);
  const { own, state } = await writer.transact(source, reason, async (at) => {
    const decided = await decide(at.gift);
    if (decided.length > 0) mayAct();
    return withIssue(at, decided);
  });
  return { before: state.gift, changed: own.length > 0 };
}

export async function changeGifts(
  deps: GiftChangeDeps,
  purchase: MadePurchase,
  reason: Reason,
  decide: Decide,
  done: (change: GiftChange) => void,
): Promise<void> {
  await visitGifts(deps, purchase, async (found) => done(await changeGift(deps, found, reason, decide)));
}
