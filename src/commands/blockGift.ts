import type { Block } from '../domain/gift/events.js';
import { block, unblock } from '../domain/supportActions.js';
import type { CommandContext } from './context.js';
import { type SupportDeps, supportAction } from './supportAction.js';
import type { Transacted } from './transact.js';

export const supportCause = (ticket?: string): string => (ticket === undefined ? 'support' : `support:${ticket}`);

export const TICKET_ID = /^[A-Za-z0-9._#-]{1,64}$/;

/**
 * No event where this cause blocks the gift already, or the gift is cancelled or declined.
 * @throws Refusal `gift_not_found`, `gift_not_paid`; UnavailableError
 */
export async function blockGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  why: Block,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, ({ gift, payment }) => block(gift, { payment }, why));
}

/** Other causes go on blocking it. @throws Refusal `gift_not_found`; UnavailableError */
export async function unblockGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  why: Block,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, ({ gift }) => unblock(gift, why));
}
