/** See docs/api/gifts.md#cancel-a-redemption */
import { copyWith } from '../lib/copyWith.js';
import { reverseOrVoid } from '../domain/gift/decisions.js';
import type { GiftUnredeemed, RedemptionVoided } from '../domain/gift/events.js';
import { commandPartOf } from '../domain/gift/redemptionIds.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import type { UserDocument } from '../projections/accounts.js';
import type { CommandContext } from './transact.js';
import { type GiftDeps, type LoadedGift, handleGift } from './loadGift.js';
import { refuseRepeats } from './refuseRepeats.js';

interface Cancelled {
  /** The reversal, or the void, of this command or an earlier one. */
  readonly event: RecordedEvent;
  /** The gift's stream, with the event. */
  readonly history: readonly RecordedEvent[];
  readonly replayed: boolean;
}

/** The event that voided the command's redemption. */
export function voidOf(history: readonly RecordedEvent[], commandPart: string): RecordedEvent | undefined {
  return history.find(
    ({ type, data }) => type === 'RedemptionVoided' && (data as RedemptionVoided['data']).redemption_id === commandPart,
  );
}

/**
 * `commandPart`: command part of the id of the redemption that its command has made, or would make.
 * @throws Refusal, UnavailableError
 */
export async function cancelRedemption(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
  commandPart: string,
): Promise<Cancelled> {
  const { history, replayed } = await handleGift(deps, loaded, user, context, (gift, facts, earlier) => {
    const decided = reverseOrVoid(gift, copyWith(facts, { commandPart }));
    if (decided.some(({ type }) => type === 'RedemptionVoided'))
      refuseRepeats(
        earlier,
        'voided_too_often',
        ({ type, metadata }) => type === 'RedemptionVoided' && metadata.by.user === context.by.user,
      );
    return decided;
  });
  const reversal = history.find(
    ({ type, data }) =>
      type === 'GiftUnredeemed' && commandPartOf((data as GiftUnredeemed['data']).redemption_id) === commandPart,
  );
  const event = reversal ?? voidOf(history, commandPart);
  if (event === undefined) throw new Error('a redemption was neither reversed nor voided');
  return { event, history, replayed };
}
