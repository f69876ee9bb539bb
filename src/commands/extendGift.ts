import { catalogueStream, type Segment } from '../domain/catalogue.js';
import { type Entry, evolveEntry } from '../domain/entry.js';
import { extend } from '../domain/supportActions.js';
import type { EventStore } from '../ports/eventStore.js';
import type { CommandContext, Transacted } from './transact.js';
import { type SupportDeps, supportAction } from './supportAction.js';

/**
 * `expiresOn`: the last valid day (`YYYY-MM-DD`, UTC). No event where the gift already has this day.
 * @throws Refusal `gift_not_found`, `supported_too_often`, `invalid_expiry_date`, or as `extend`; UnavailableError
 */
export async function extendGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  expiresOn: string,
  reason: string,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, async ({ gift, payment }) => {
    const segmentDays = gift.voucher === undefined ? undefined : await daysOf(deps.events, gift.voucher.segment_id);
    return extend(gift, { now: context.now, payment }, { expires_on: expiresOn, reason, segmentDays });
  });
}

async function daysOf(events: EventStore, segmentId: string): Promise<number | undefined> {
  let segment: Entry<Segment> = { status: 'none' };
  for (const event of await events.read(catalogueStream('segment', segmentId))) segment = evolveEntry(segment, event);
  return segment.status === 'none' ? undefined : segment.value.expiry;
}
