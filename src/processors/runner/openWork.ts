/**
 * The open work of all process managers, folded from the feed, in memory. Its size depends on what is open, not on the
 * log.
 */
import type { ParkedName } from '../../domain/parked.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import {
  ask,
  type Requested,
  foldFed,
  foldHistory,
  type FoldState,
  NOT_OPENED,
  REOPEN,
  setState,
} from './foldEvent.js';
import type { Opened, Reopening } from './instances.js';
import { type InstanceTable, instanceTable } from './instanceTable.js';
import { parkedTimes } from './parkedTimes.js';
import type { AnyManager, OpenStates } from './processManager.js';

export interface OpenWork<D> extends OpenStates {
  /** @returns the intents that the event leads to */
  apply(event: RecordedEvent): readonly Requested<D>[];
  foldedTo(position: Position): void;
  /** The intents of all open work, for a process that takes it over. */
  resume(): Iterable<Requested<D>>;
  /** The intent's job has ended well. @returns the intents that this leads to */
  done(requested: Requested<D>): readonly Requested<D>[];
  reopening(manager: AnyManager<D>, instance: string): Omit<Reopening, 'collected'> | undefined;
  /** Collects the instance's events from now on. @returns the position up to which its history is to be read */
  startReading(manager: AnyManager<D>, instance: string): Position | undefined;
  /** Folds the history and the events collected since. @returns the intents of the instance */
  reopen(manager: AnyManager<D>, instance: string, history: readonly RecordedEvent[]): readonly Requested<D>[];
  timesParked(name: ParkedName, entity: string): number;
  /** The highest position with nothing unfinished up to it; `undefined`: the log's beginning. */
  checkpoint(): Position | undefined;
  /** Number of open instances. */
  readonly size: number;
  /** Position up to which the feed is folded; `undefined`: the log's beginning. */
  readonly position: Position | undefined;
  /** The time of the event that opened the oldest open instance: ISO 8601. */
  readonly oldestAt: string | undefined;
  /** As `oldestAt`, of the instances that are not held back. */
  oldestAtBut(isHeldBack: (manager: string, instance: string) => boolean): string | undefined;
}

export function openWork<D>(managers: readonly AnyManager<D>[], from: Position | undefined): OpenWork<D> {
  const table = instanceTable(managers);
  const fold: FoldState = { table, timesParked: parkedTimes(), position: from };

  return {
    state: table.state,
    byKey: table.byKey,
    apply: (event) => foldFed(fold, event),
    foldedTo: (position) => void (fold.position = position),
    resume: () => resumeAll(table),
    done: (requested) => endIntent(fold, requested),
    reopening: (manager, instance) => table.of(manager).reopening.get(instance),
    startReading(manager, instance) {
      table.of(manager).read(instance);
      return fold.position;
    },
    reopen: (manager, instance, history) => reopenInstance(fold, manager, instance, history),
    timesParked: fold.timesParked.of,
    checkpoint: () => checkpointOf(fold.position, oldestOpened(table)),
    get size() {
      return table.all.reduce((sum, { opened }) => sum + opened.size, 0);
    },
    get position() {
      return fold.position;
    },
    get oldestAt() {
      return oldestOpened(table)
        .map(({ at }) => at)
        .sort()[0];
    },
    oldestAtBut: (isHeldBack) =>
      table.all
        .flatMap(({ manager, opened }) => {
          for (const [instance, { at }] of opened) if (!isHeldBack(manager.name, instance)) return [at];
          return [];
        })
        .sort()[0],
  };
}

function* resumeAll<D>({ all }: InstanceTable): Generator<Requested<D>, void> {
  for (const one of all) {
    for (const instance of one.opened.keys()) {
      if (one.reopening.has(instance)) yield* ask<D>(one, [{ do: REOPEN, instance }]);
      else yield* ask<D>(one, one.manager.resume(one.states.get(instance), instance));
    }
  }
}

function endIntent<D>(fold: FoldState, { manager, intent }: Requested<D>): readonly Requested<D>[] {
  const one = fold.table.of(manager);
  const before = one.states.get(intent.instance);
  const ended = before === undefined ? undefined : manager.done?.(before, intent);
  if (ended !== undefined && ended.state === before) return [];
  const { name, entity } = manager.parkAs(intent);
  fold.timesParked.forget(name, entity);
  if (ended === undefined) return [];
  setState(fold, one, intent.instance, ended.state, NOT_OPENED);
  return ask(one, ended.intents);
}

function reopenInstance<D>(
  fold: FoldState,
  manager: AnyManager<D>,
  instance: string,
  history: readonly RecordedEvent[],
): readonly Requested<D>[] {
  const one = fold.table.of(manager);
  const collected = one.endReading(instance);
  if (collected === undefined) return [];
  foldHistory(fold, one, [...history, ...collected]);
  const state = one.states.get(instance);
  if (state === undefined) {
    setState(fold, one, instance, undefined, NOT_OPENED);
    return [];
  }
  return ask<D>(one, manager.resume(state, instance));
}

function oldestOpened({ all }: InstanceTable): readonly Opened[] {
  return all.flatMap(({ opened }) => opened.values().next().value ?? []);
}

function checkpointOf(folded: Position | undefined, opened: readonly Opened[]): Position | undefined {
  let highest = folded;
  for (const { before } of opened) {
    if (before === undefined) return undefined;
    if (highest === undefined || before < highest) highest = before;
  }
  return highest;
}
