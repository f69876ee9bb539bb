import { giftSource } from '../../commands/giftSource.js';
import { fold } from '../../domain/decider.js';
import type { GiftEvent } from '../../domain/gift/events.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { purchaseAggregate } from '../../domain/purchase/state.js';
import { changeGifts, type GiftChangeDeps } from '../purchase/giftChanges.js';
import { causeOf } from '../runner/index.js';
import type { Due } from './due.js';

/** Name and time of work on gifts. The same work at the same time is one command, and done once. */
interface DueWork {
  readonly name: string;
  readonly at: string;
}

function notThere(): never {
  throw new Error('a gift was extended and is not there');
}

/**
 * Appends the events that `decide` returns for each due gift: the gifts of a purchase, once it is charged, or one
 * extended gift. Safe to repeat.
 */
export async function changeDueGifts(
  deps: GiftChangeDeps,
  { id, giftId }: Due,
  { name, at }: DueWork,
  decide: (gift: IssuedGift) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>,
): Promise<void> {
  const { events, writer, mayAct } = deps;
  const commandId = `${name}-${giftId ?? id}-${at}`;
  if (giftId === undefined) {
    const history = await events.read(transactionStream(id));
    const [bought] = history;
    const purchase = fold(purchaseAggregate, history);
    if (bought !== undefined && purchase.status === 'charged')
      await changeGifts(deps, purchase, { commandId, cause: causeOf(bought) }, decide, () => undefined);
    return;
  }
  const found = await giftSource(events, giftId, notThere).read();
  const last = found.history.at(-1);
  if (last === undefined) return;
  mayAct();
  const source = giftSource(events, giftId, notThere, found);
  await writer.transact(source, { commandId, cause: causeOf(last) }, async ({ gift }) => decide(gift));
}
