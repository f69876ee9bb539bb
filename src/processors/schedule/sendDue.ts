/** Sends the purchases whose time has come (docs/api/purchases.md#scheduled-sending). Safe to repeat at any point. */
import { type Source, streamSource } from '../../commands/transact.js';
import { fold } from '../../domain/decider.js';
import { release } from '../../domain/gift/decisions.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { type Purchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { finishSend, startSend } from '../../domain/purchase/sending.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { changeGifts, type GiftChangeDeps } from '../purchase/giftChanges.js';
import { causeOf } from '../runner/index.js';
import { type DueGifts, forEachDue } from './due.js';

export interface SendDeps extends GiftChangeDeps {
  readonly due: Pick<DueGifts, 'serves' | 'toSend'>;
}

/** @param now ISO 8601, UTC @throws the first failure, in the end */
export async function sendDue(deps: SendDeps, now: string, signal: AbortSignal): Promise<void> {
  if (!(await deps.due.serves())) return;
  await forEachDue([deps.due.toSend(now)], async ({ id }) => send(deps, id, now), signal);
}

async function send(deps: SendDeps, transactionId: string, now: string): Promise<void> {
  const { events, writer, mayAct } = deps;
  const stream = transactionStream(transactionId);
  const sourceOf = (known: readonly RecordedEvent[]): Source<Purchase> =>
    streamSource(events, purchaseAggregate, stream, known);
  const found = await events.read(stream);
  const last = found.at(-1);
  if (last === undefined) return;
  mayAct();
  // This command fixes the sending time: an earlier change is seen here, and a later one is refused.
  const { history, own } = await writer.transact(
    sourceOf(found),
    { commandId: `send-${transactionId}`, cause: causeOf(last) },
    (state) => startSend(state, now),
  );
  const purchase = fold(purchaseAggregate, history);
  if (purchase.status !== 'charged' || purchase.sending?.status !== 'started') return;
  const cause = causeOf(own[0] ?? last);
  await changeGifts(deps, purchase, { commandId: `release-${transactionId}`, cause }, release, () => undefined);
  mayAct();
  await writer.transact(sourceOf(history), { commandId: `sent-${transactionId}`, cause }, finishSend);
}
