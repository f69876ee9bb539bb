import { blockGift, unblockGift } from '../../commands/blockGift.js';
import type { CommandContext, Transacted } from '../../commands/transact.js';
import { extendGift } from '../../commands/extendGift.js';
import { type NewReceiver, type ReassignDeps, reassignGift } from '../../commands/reassignGift.js';
import { replaceGift } from '../../commands/replaceGift.js';
import { resendGift } from '../../commands/resendGift.js';
import { supportAction } from '../../commands/supportAction.js';
import { unredeemForSupport } from '../../domain/supportActions.js';
import { type SupportedGift, supportedGift } from '../history/supportedGift.js';

export type SupportAction =
  | { readonly name: 'resend' }
  | { readonly name: 'reassign'; readonly receiver: NewReceiver }
  /** The last valid day, `YYYY-MM-DD`. */
  | { readonly name: 'extend'; readonly expiryDate: string }
  | { readonly name: 'unredeem' }
  /** `voided`: the issuer has made an issued code worthless. */
  | { readonly name: 'replace'; readonly voided: boolean }
  | { readonly name: 'block' | 'unblock'; readonly ticket?: string | undefined };

interface SupportOutcome extends Transacted {
  readonly gift: SupportedGift;
}

/** @throws Refusal; UnavailableError */
export async function supportGift(
  deps: ReassignDeps,
  giftId: string,
  context: CommandContext,
  action: SupportAction,
  reason: string,
): Promise<SupportOutcome> {
  const handled = await run(deps, giftId, context, action, reason);
  return { ...handled, gift: await supportedGift(deps, giftId, handled.own) };
}

async function run(
  deps: ReassignDeps,
  giftId: string,
  context: CommandContext,
  action: SupportAction,
  reason: string,
): Promise<Transacted> {
  switch (action.name) {
    case 'resend':
      return resendGift(deps, giftId, context, reason);
    case 'reassign':
      return reassignGift(deps, giftId, context, action.receiver, reason);
    case 'extend':
      return extendGift(deps, giftId, context, action.expiryDate, reason);
    case 'unredeem':
      return supportAction(deps, giftId, context, ({ gift, payment }) => unredeemForSupport(gift, { payment }, reason));
    case 'replace':
      return replaceGift(deps, giftId, context, { voided: action.voided, reason });
    case 'block':
      return blockGift(deps, giftId, context, { ticket: action.ticket, reason });
    case 'unblock':
      return unblockGift(deps, giftId, context, { ticket: action.ticket, reason });
    default:
      throw new Error(`no support action is called ${action satisfies never as string}`);
  }
}
