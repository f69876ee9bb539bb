import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { causeOf } from './cause.js';
import type { Instances, Opened } from './instances.js';
import type { InstanceTable } from './instanceTable.js';
import type { ParkedTimes } from './parkedTimes.js';
import type { AnyManager, Intent } from './processManager.js';

export interface FoldState {
  readonly table: InstanceTable;
  readonly timesParked: ParkedTimes;
  /** Position up to which the feed is folded; `undefined`: the log's beginning. */
  position: Position | undefined;
}

export interface Requested<D> {
  readonly manager: AnyManager<D>;
  /** An intent of the manager's own, or `REOPEN`. */
  readonly intent: Intent;
}

/** Intent of any manager: read the instance's history, and open it again. */
export const REOPEN = 'reopen';

/** Mark for an instance that is open already, or that is being closed. */
export const NOT_OPENED: Opened = { before: undefined, at: '' };

const NOTHING: readonly never[] = [];

/** Folds an event of the feed. @returns the intents that it leads to */
export function foldFed<D>(fold: FoldState, event: RecordedEvent): readonly Requested<D>[] {
  fold.timesParked.note(event);
  const requested = fold.table.following(event.type).flatMap((one) => foldInto<D>(fold, one, event, true));
  fold.position = event.position;
  return requested;
}

/** Folds the history of one instance; its manager ignores types that it does not follow. */
export function foldHistory(fold: FoldState, one: Instances, history: readonly RecordedEvent[]): void {
  for (const event of history) if (Object.hasOwn(one.manager.events, event.type)) foldInto(fold, one, event, false);
}

/** Sets an instance's state, or closes it. Work that ends or is parked again loses its count of parkings. */
export function setState(fold: FoldState, one: Instances, instance: string, state: unknown, opened: Opened): void {
  if (state !== undefined) return one.set(instance, state, opened);
  one.close(instance);
  fold.timesParked.forget(one.manager.name, instance);
}

export function ask<D>({ manager }: Instances, intents: readonly Intent[]): readonly Requested<D>[] {
  return intents.length === 0 ? NOTHING : intents.map((intent) => ({ manager: manager as AnyManager<D>, intent }));
}

/**
 * Folds an event into the instances of one manager that it concerns. `live`: the event comes from the feed, not from a
 * history.
 */
function foldInto<D>(fold: FoldState, one: Instances, event: RecordedEvent, live: boolean): readonly Requested<D>[] {
  return one.manager.instancesOf(event).flatMap((instance) => react<D>(fold, one, instance, event, live));
}

function react<D>(
  fold: FoldState,
  one: Instances,
  instance: string,
  event: RecordedEvent,
  live: boolean,
): readonly Requested<D>[] {
  const waiting = one.reopening.get(instance);
  if (waiting !== undefined) {
    // It is folded after the history, unless it makes the history needless.
    waiting.collected?.push(event);
    if (one.manager.ends?.(event, instance) === true) setState(fold, one, instance, undefined, NOT_OPENED);
    return NOTHING;
  }
  const cause = causeOf(event);
  const before = one.states.get(instance);
  const { state, intents, reopen } = one.manager.react(before, event, instance, cause);
  const opened: Opened = { before: fold.position, at: event.at };
  if (reopen !== undefined && live) {
    one.awaitHistory(instance, { cause, step: reopen }, opened);
    return ask(one, [{ do: REOPEN, instance }]);
  }
  if (state !== undefined || before !== undefined) setState(fold, one, instance, state, opened);
  return ask(one, intents);
}
