/** BlockGift and UnblockGift: stop a gift from being used, and free it again, each cause by itself. */
import type { Block } from '../domain/gift/events.js';
import { block, unblock } from '../domain/supportActions.js';
import type { CommandContext } from './context.js';
import { type SupportDeps, supportAction } from './supportAction.js';
import type { Transacted } from './transact.js';

/** The cause of support's own blocks: `support`, or `support:{ticket}`. */
export const supportCause = (ticket?: string): string => (ticket === undefined ? 'support' : `support:${ticket}`);

export const TICKET_ID = /^[A-Za-z0-9._#-]{1,64}$/;

/**
 * Blocks a gift for a cause. No event where this cause blocks it already, or it can't be used anyway: cancelled or
 * declined. @throws Refusal `gift_not_found`, `gift_not_paid`; UnavailableError
 */
export async function blockGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  why: Block,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, ({ gift, payment }) => block(gift, { payment }, why));
}

/**
 * Frees a gift of a cause; others go on blocking it. No event where this cause does not block it.
 * @throws Refusal `gift_not_found`; UnavailableError
 */
export async function unblockGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  why: Block,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, ({ gift }) => unblock(gift, why));
}
