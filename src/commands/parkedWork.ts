import { CHARGE_STEP, discardWork, type ParkedEvent, retryWork } from '../domain/parked.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { type FoundWork, foundWork, findWork, type ParkedDeps } from './findParked.js';
import { giveUpCharge } from './giveUpCharge.js';
import { giveUpNotification } from './giveUpNotification.js';
import { type StreamState, transactOn } from './transact.js';

export interface ParkedOutcome extends FoundWork {
  /** The command's event, appended now or (`replayed`) by an earlier run; absent: nothing was to be done. */
  readonly own?: RecordedEvent;
  readonly replayed: boolean;
}

/** @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`, `work_discarded`; UnavailableError */
export async function retryParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  return decided(deps, idOrEntity, context, ({ name, work }) => retryWork(name, work, reason));
}

/**
 * Discards the work, then records the notification as failed, or the charge as declined, so that neither stays open for
 * ever. The order matters: a discard that loses against a retry must not end the retried work. After a crash in
 * between, a second discard completes the first.
 * @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`, `work_retried`; UnavailableError
 */
export async function discardParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  const outcome = await decided(deps, idOrEntity, context, ({ work }) => discardWork(work, reason));
  const discarded = outcome.own ?? outcome.history.findLast(({ type }) => type === 'WorkDiscarded');
  if (discarded === undefined) return outcome;
  const { entity, step } = outcome.work;
  if (outcome.name === 'notification') await giveUpNotification(deps.events, entity, context, discarded.position);
  if (outcome.name === 'purchase' && step === CHARGE_STEP) await giveUpCharge(deps.events, entity, context);
  return outcome;
}

async function decided(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  decide: (found: FoundWork) => readonly ParkedEvent[],
): Promise<ParkedOutcome> {
  let requested = idOrEntity;
  const read = async (): Promise<StreamState<FoundWork>> => {
    const found = await findWork(deps, requested, context);
    // After a lost race the command is for the same work, not for other work of its entity.
    requested = found.state.id;
    return found;
  };
  const { state, history, own, replayed } = await transactOn(deps.events, { kind: 'parked', read }, context, decide);
  const [event] = own;
  if (event === undefined) return { ...state, replayed };
  // A repeated command gets its first answer, without later events.
  const then = history.filter(({ revision }) => revision <= event.revision);
  return { ...foundWork(state.id, state.name, then, event.revision).state, own: event, replayed };
}
