/**
 * BlockGift and UnblockGift: stop a gift from being used, and free it again, each cause by itself; by support, or by
 * the process of a dispute.
 */
import type { Block } from '../domain/gift.js';
import { block, unblock } from '../domain/supportActions.js';
import { type CareDeps, careForGift } from './supportAction.js';
import type { CommandContext } from './context.js';
import type { Transacted } from './transact.js';

/** The cause of support's own blocks: `support`, or a ticket's, `support:{ticket}`. */
export const supportCause = (ticket?: string): string => (ticket === undefined ? 'support' : `support:${ticket}`);

/** What names a ticket. */
export const TICKET_ID = /^[A-Za-z0-9._#-]{1,64}$/;

/**
 * Blocks a gift for a cause. Nothing is appended (`own` is empty) where this cause blocks it already, and where it is
 * cancelled or was declined: it can't be used anyway. @throws Refusal `gift_not_found`, `gift_not_paid`;
 * UnavailableError
 */
export async function blockGift(
  deps: CareDeps,
  giftId: string,
  context: CommandContext,
  why: Block,
): Promise<Transacted> {
  return careForGift(deps, giftId, context, ({ gift, payment }) => block(gift, { payment }, why));
}

/**
 * Frees a gift of a cause; other causes go on blocking it. Nothing is appended where this cause does not block it.
 * @throws Refusal `gift_not_found`; UnavailableError
 */
export async function unblockGift(
  deps: CareDeps,
  giftId: string,
  context: CommandContext,
  why: Block,
): Promise<Transacted> {
  return careForGift(deps, giftId, context, ({ gift }) => unblock(gift, why));
}
