import { block, supportCause, supportCauseIn, unblock } from '../domain/supportActions.js';
import { idFrom } from './commandIds.js';
import type { CommandContext, Transacted } from './transact.js';
import { type SupportDeps, supportAction } from './supportAction.js';

export const TICKET_ID = /^[A-Za-z0-9._#-]{1,64}$/;

/** A block by support; each ticket blocks a gift independently of others. */
interface SupportBlock {
  readonly ticket?: string | undefined;
  readonly reason: string;
}

/**
 * No event where this ticket, or support without one, blocks the gift already, or the gift is cancelled or declined.
 * @throws Refusal `gift_not_found`, `gift_not_paid`; UnavailableError
 */
export async function blockGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  { ticket, reason }: SupportBlock,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, ({ gift, payment }) => {
    const cause =
      supportCauseIn(gift, ticket) ??
      supportCause(ticket === undefined ? undefined : idFrom(context.commandId, 'block'));
    return block(gift, { payment }, { cause, reason, ...(ticket === undefined ? {} : { ticket }) });
  });
}

/** Other blocks of the gift stay in force. @throws Refusal `gift_not_found`; UnavailableError */
export async function unblockGift(
  deps: SupportDeps,
  giftId: string,
  context: CommandContext,
  { ticket, reason }: SupportBlock,
): Promise<Transacted> {
  return supportAction(deps, giftId, context, ({ gift }) => {
    const cause = supportCauseIn(gift, ticket);
    return cause === undefined ? [] : unblock(gift, { cause, reason, ...(ticket === undefined ? {} : { ticket }) });
  });
}
