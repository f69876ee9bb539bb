/** Sends the purchases whose time has come (docs/decisions.md#scheduled-sending). Safe to repeat at any point. */
import { type Source } from '../../commands/transact.js';
import { fold } from '../../domain/decider.js';
import { release } from '../../domain/gift/decisions.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { type Purchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { finishSend, startSend } from '../../domain/sending.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore } from '../../ports/eventStore.js';
import { changeGifts, type GiftChangeDeps } from '../../processors/purchase/giftChanges.js';
import { causeOf } from '../../processors/runner/cause.js';
import type { ScheduleDocument } from '../../projections/schedule.js';
import { timeKey } from '../../projections/timeKey.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';
import { dueIds } from './dueIds.js';

const PURCHASES_AT_ONCE = 4;

export interface SendDeps extends GiftChangeDeps {
  readonly schedule: Pick<ReadModel<ScheduleDocument>, 'find'>;
}

/** One that fails holds up no other. @param now ISO 8601, UTC @throws the first failure, in the end */
export async function sendDue(deps: SendDeps, now: string, signal: AbortSignal): Promise<void> {
  const failures: unknown[] = [];
  for await (const ids of dueIds(deps.schedule, 'send_due', { lte: timeKey(now) }))
    await inParallel(
      ids,
      PURCHASES_AT_ONCE,
      async (id) => {
        await send(deps, id, now).catch((error: unknown) => void failures.push(error));
      },
      signal,
    );
  if (failures.length > 0) throw failures[0];
}

async function send(deps: SendDeps, transactionId: string, now: string): Promise<void> {
  const { events, writer, mayAct } = deps;
  const source = purchaseSource(events, transactionStream(transactionId));
  const last = (await source.read()).history.at(-1);
  if (last === undefined) return;
  mayAct();
  // From here on the time is fixed: a change that comes first is seen here, one that comes later is refused.
  const { history, own } = await writer.transact(
    source,
    { commandId: `send-${transactionId}`, cause: causeOf(last) },
    (state) => startSend(state, now),
  );
  const purchase = fold(purchaseAggregate, history);
  if (purchase.status !== 'charged' || purchase.sending?.status !== 'started') return;
  const cause = causeOf(own[0] ?? last);
  await changeGifts(deps, purchase, { commandId: `release-${transactionId}`, cause }, release, () => undefined);
  mayAct();
  await writer.transact(source, { commandId: `sent-${transactionId}`, cause }, finishSend);
}

function purchaseSource(events: Pick<EventStore, 'read'>, stream: string): Source<Purchase> {
  return {
    kind: 'transaction',
    read: async () => {
      const history = await events.read(stream);
      const revision = history.at(-1)?.revision ?? 'none';
      return { stream, history, revision, state: fold(purchaseAggregate, history) };
    },
  };
}
