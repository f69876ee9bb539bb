/** RetryParked and DiscardParked: what support does about work that a process manager gave up. */
import { CHARGE_STEP, discardWork, type ParkedEvent, retryWork } from '../domain/parked.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { type FoundWork, foundWork, lookFor, type ParkedDeps } from './findParked.js';
import { giveUpCharge } from './giveUpCharge.js';
import { giveUpNotification } from './giveUpNotification.js';
import { type StreamState, transactOn } from './transact.js';

/** What a command brought about. */
export interface ParkedOutcome extends FoundWork {
  /** The command's own event, appended now or (`replayed`) by an earlier run; absent: nothing was to be done. */
  readonly own?: RecordedEvent;
  readonly replayed: boolean;
}

/**
 * Hands parked work back to its process manager. @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`,
 * `work_discarded`; UnavailableError
 */
export async function retryParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  return decided(deps, idOrEntity, context, ({ name, work }) => retryWork(name, work, reason));
}

/**
 * Takes parked work off the list for good. A notification is then recorded as failed and a charge as declined, so that
 * neither stays open for ever. Only then: a discard that loses against a retry must not end what the retry promised. A
 * crash in between is healed by discarding again.
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
  let wanted = idOrEntity;
  const read = async (): Promise<StreamState<FoundWork>> => {
    const found = await lookFor(deps, wanted, context);
    // After a lost race it is still this work that is meant, not another one of its entity.
    wanted = found.state.id;
    return found;
  };
  const { state, history, own, replayed } = await transactOn(deps.events, { kind: 'parked', read }, context, decide);
  const [event] = own;
  if (event === undefined) return { ...state, replayed };
  // A repeated command is answered as it was, whatever has come since.
  const then = history.filter(({ revision }) => revision <= event.revision);
  return { ...foundWork(state.id, state.name, then, event.revision).state, own: event, replayed };
}
