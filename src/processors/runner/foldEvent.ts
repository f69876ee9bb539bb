import type { WorkParked } from '../../domain/parked.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { type Cause, causeOf } from './cause.js';
import type { Instances, Opened, Reopening } from './instances.js';
import { type InstanceTable, type Target, targetsOf } from './instanceTable.js';
import type { ParkedTimes } from './parkedTimes.js';
import type { AnyManager, Intent } from './processManager.js';

export interface FoldState {
  readonly table: InstanceTable;
  readonly timesParked: ParkedTimes;
  /** Position up to which the feed is folded; `undefined`: the log's beginning. */
  position: Position | undefined;
}

export interface Asked<D> {
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
export function foldFed<D>(fold: FoldState, event: RecordedEvent): readonly Asked<D>[] {
  fold.timesParked.note(event);
  const asked = foldInto<D>(fold, event, fold.table.following(event.type), true);
  fold.position = event.position;
  return asked;
}

/** Folds the history of one instance into the owning manager and the managers of its parts only. */
export function foldHistory(fold: FoldState, owner: Instances, history: readonly RecordedEvent[]): void {
  const group = new Set([owner, ...fold.table.partsOf(owner)]);
  for (const event of history) {
    const following = fold.table.following(event.type).filter((one) => group.has(one));
    foldInto(fold, event, following, false);
  }
}

/** Sets an instance's state, or closes it. Work that ends or is parked again loses its count of parkings. */
export function setState(fold: FoldState, one: Instances, instance: string, state: unknown, opened: Opened): void {
  if (state !== undefined) return one.set(instance, state, opened);
  one.close(instance);
  if (one.manager.partOf === undefined) fold.timesParked.forget(one.manager.name, instance);
}

export function ask<D>({ manager }: Instances, intents: readonly Intent[]): readonly Asked<D>[] {
  return intents.length === 0 ? NOTHING : intents.map((intent) => ({ manager: manager as AnyManager<D>, intent }));
}

/** `live`: the event comes from the feed, not from a history. */
interface Incoming {
  readonly event: RecordedEvent;
  readonly type: string;
  readonly cause: Cause;
  readonly live: boolean;
}

function foldInto<D>(
  fold: FoldState,
  event: RecordedEvent,
  among: readonly Instances[],
  live: boolean,
): readonly Asked<D>[] {
  const { type } = event;
  const targets = targetsOf(fold.table, event, type, among);
  if (targets.length === 0) return NOTHING;
  const incoming: Incoming = { event, type, cause: causeOf(event), live };
  const asked: Asked<D>[] = [];
  for (const target of targets) asked.push(...react<D>(fold, target, incoming));
  return asked;
}

function react<D>(fold: FoldState, target: Target, incoming: Incoming): readonly Asked<D>[] {
  const [one, instance] = target;
  const { event, cause, live } = incoming;
  const waiting = one.reopening.get(instance);
  if (waiting !== undefined) {
    keepForHistory(fold, target, waiting, event);
    return NOTHING;
  }
  const before = one.states.get(instance);
  const { state, intents, reopen } = one.manager.react(before, event, instance, cause);
  const opened: Opened = { before: fold.position, at: event.at };
  if (reopen !== undefined && live) {
    one.awaitHistory(instance, { cause, step: reopen }, opened);
    return ask(one, [{ do: REOPEN, instance }]);
  }
  if (state !== undefined || before !== undefined) setState(fold, one, instance, state, opened);
  else if (live) keepForOwners(fold.table, one, event);
  if (state === undefined && isParkingOf(instance, incoming)) dropParts(fold.table, target);
  return ask(one, intents);
}

/** Collects an event, to be folded after the history, unless the event makes the history needless. */
function keepForHistory(fold: FoldState, [one, instance]: Target, waiting: Reopening, event: RecordedEvent): void {
  waiting.kept?.push(event);
  if (one.manager.ends?.(event, instance) === true) setState(fold, one, instance, undefined, NOT_OPENED);
}

/** The event of a part that is not open may concern any owner whose history is being read: all collect it. */
function keepForOwners(table: InstanceTable, { manager: { partOf } }: Instances, event: RecordedEvent): void {
  if (partOf === undefined) return;
  for (const owner of table.of(partOf.manager).reading) owner.kept?.push(event);
}

function isParkingOf(instance: string, { type, event }: Incoming): boolean {
  return type === 'WorkParked' && (event.data as WorkParked['data']).entity === instance;
}

/** Closes the parts of a parked owner, without which they can't be done. */
function dropParts(table: InstanceTable, [owner, instance]: Target): void {
  for (const [parts, part] of table.openParts(owner, instance)) parts.close(part);
}
