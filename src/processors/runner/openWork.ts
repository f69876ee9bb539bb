/** The open work of all process managers, folded from the feed, in memory. It stays small however long the log is. */
import { parkedId, type ParkedName, parkedNameOf, type WorkParked, type WorkRetried } from '../../domain/parked.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { type Cause, causeOf } from './cause.js';
import { type Instances, openInstances, type Opened, type Reopening } from './instances.js';
import type { AnyManager, Intent, OpenStates, Stateful } from './processManager.js';

export interface Asked<D> {
  readonly manager: AnyManager<D>;
  /** The manager's own, or `REOPEN`: read the instance's history, and open it again. */
  readonly intent: Intent;
}

/** The runner's own intent, for any manager. */
export const REOPEN = 'reopen';

export interface OpenWork<D> extends OpenStates {
  /** @returns what the event asks for */
  apply(event: RecordedEvent): readonly Asked<D>[];
  lookedAt(position: Position): void;
  /** For a process that takes it all over. */
  resume(): Iterable<Asked<D>>;
  /** The intent's job has ended well. @returns what that asks for */
  done(asked: Asked<D>): readonly Asked<D>[];
  /** An instance that waits for its history. */
  reopening(manager: AnyManager<D>, instance: string): Omit<Reopening, 'kept'> | undefined;
  /** From now on its events are kept. @returns the position up to which its history is wanted */
  startReading(manager: AnyManager<D>, instance: string): Position | undefined;
  /** @returns what is to be done for it */
  reopen(manager: AnyManager<D>, instance: string, history: readonly RecordedEvent[]): readonly Asked<D>[];
  /** How often work that is being retried has been parked in a row. */
  timesParked(name: ParkedName, entity: string): number;
  /** The highest position with nothing unfinished at or below it; `undefined` at the log's beginning. */
  checkpoint(): Position | undefined;
  /** How many instances are open, parts of others not counted. */
  readonly size: number;
  /** How far the feed has been looked at; `undefined` at the log's beginning. */
  readonly position: Position | undefined;
  /** The time of the event that opened what has been open for longest: ISO 8601; `undefined` where nothing is open. */
  readonly oldestAt: string | undefined;
}

type Target = readonly [of: Instances, instance: string];

/** The feed starts after `from`. */
export function openWork<D>(managers: readonly AnyManager<D>[], from: Position | undefined): OpenWork<D> {
  const all: readonly Instances[] = managers.map((manager) => openInstances(manager));
  const byManager = new Map<object, Instances>(all.map((one) => [one.manager, one]));
  const byType = new Map<string, Instances[]>();
  for (const one of all)
    for (const type of Object.keys(one.manager.events)) byType.set(type, [...(byType.get(type) ?? []), one]);
  /** By the id of parked work, from its retry until it is done or parked again. */
  const timesParked = new Map<string, number>();
  let position = from;

  const of = (manager: object): Instances => {
    const found = byManager.get(manager);
    if (found === undefined) throw new Error('a process manager that is not listed');
    return found;
  };
  const partsOf = (owner: Instances): readonly Instances[] =>
    all.filter(({ manager: { partOf } }) => partOf?.manager === owner.manager);

  const states: OpenStates = {
    state: <S>(manager: Stateful<S>, instance: string) => of(manager).states.get(instance) as S | undefined,
    byKey: <S>(manager: Stateful<S>, key: string) => of(manager).byKey(key) as S | undefined,
  };

  const ask = ({ manager }: Instances, intents: readonly Intent[]): readonly Asked<D>[] =>
    intents.length === 0 ? NOTHING : intents.map((intent) => ({ manager: manager as AnyManager<D>, intent }));

  const forget = (name: ParkedName, entity: string): void => {
    if (timesParked.size > 0) timesParked.delete(parkedId(name, entity));
  };

  const set = (one: Instances, instance: string, state: unknown, opened: Opened): void => {
    if (state !== undefined) return one.set(instance, state, opened);
    one.close(instance);
    if (one.manager.partOf === undefined) forget(one.manager.name, instance);
  };

  /** Looked up before any reaction. An owner gets its parts' events. */
  const targetsOf = (event: RecordedEvent, type: string, among: readonly Instances[]): Target[] => {
    const targets: Target[] = [];
    for (const one of among) {
      const { manager } = one;
      for (const instance of manager.instancesOf(event, states)) {
        targets.push([one, instance]);
        const part = one.states.get(instance);
        if (part === undefined || manager.partOf === undefined || !Object.hasOwn(manager.partOf.manager.events, type))
          continue;
        targets.push([of(manager.partOf.manager), manager.partOf.ownerOf(part)]);
      }
    }
    return targets;
  };

  /** Parts can't be done without their owner. */
  const dropParts = (owner: Instances, instance: string): void => {
    for (const parts of partsOf(owner))
      for (const [part, state] of parts.states)
        if (parts.manager.partOf?.ownerOf(state) === instance) parts.close(part);
  };

  const wait = (one: Instances, instance: string, step: string, event: RecordedEvent): readonly Asked<D>[] => {
    one.awaitHistory(instance, { cause: causeOf(event), step }, { before: position, at: event.at });
    return ask(one, [{ do: REOPEN, instance }]);
  };

  const react = (
    [one, instance]: Target,
    event: RecordedEvent,
    cause: Cause,
    type: string,
    live: boolean,
  ): readonly Asked<D>[] => {
    const { manager } = one;
    const waiting = one.reopening.get(instance);
    if (waiting !== undefined) {
      waiting.kept?.push(event);
      if (manager.ends?.(event, instance) === true) set(one, instance, undefined, NEVER);
      return [];
    }
    const before = one.states.get(instance);
    const { state, intents, reopen } = manager.react(before, event, instance, cause);
    if (reopen !== undefined && live) return wait(one, instance, reopen, event);
    if (state === undefined && before === undefined) {
      // Nobody knows whose part it is until the histories are read: all keep it.
      if (live && manager.partOf !== undefined)
        for (const owner of of(manager.partOf.manager).reading) owner.kept?.push(event);
    } else set(one, instance, state, { before: position, at: event.at });
    if (type === 'WorkParked' && state === undefined && (event.data as WorkParked['data']).entity === instance)
      dropParts(one, instance);
    return ask(one, intents);
  };

  /** `among`: a history is gone through, for these alone; `undefined`: the feed. */
  const dispatch = (event: RecordedEvent, among: ReadonlySet<Instances> | undefined): readonly Asked<D>[] => {
    const { type } = event;
    const listening = byType.get(type) ?? [];
    const targets = targetsOf(event, type, among === undefined ? listening : listening.filter((one) => among.has(one)));
    if (targets.length === 0) return NOTHING;
    const cause = causeOf(event);
    const asked: Asked<D>[] = [];
    for (const target of targets) asked.push(...react(target, event, cause, type, among === undefined));
    return asked;
  };

  const noteParking = (event: RecordedEvent): void => {
    if (event.type !== 'WorkParked' && event.type !== 'WorkRetried') return;
    const name = parkedNameOf(event.stream);
    if (name === undefined) return;
    if (event.type === 'WorkParked') return forget(name, (event.data as WorkParked['data']).entity);
    const { entity, times } = event.data as WorkRetried['data'];
    timesParked.set(parkedId(name, entity), times);
  };

  /** What has been open for longest, of each manager. */
  const oldest = (): readonly Opened[] => all.flatMap(({ opened }) => opened.values().next().value ?? []);

  return {
    ...states,
    apply(event) {
      noteParking(event);
      const asked = dispatch(event, undefined);
      position = event.position;
      return asked;
    },
    lookedAt: (at) => void (position = at),
    *resume() {
      for (const one of all) {
        const instances = one.manager.partOf === undefined ? one.opened : one.states;
        for (const instance of instances.keys()) {
          if (one.reopening.has(instance)) yield* ask(one, [{ do: REOPEN, instance }]);
          else yield* ask(one, one.manager.resume(one.states.get(instance), instance));
        }
      }
    },
    done({ manager, intent }) {
      const one = of(manager);
      const before = one.states.get(intent.instance);
      const { name, entity } = manager.parkAs(intent);
      if (before === undefined || manager.done === undefined) return (forget(name, entity), []);
      const { state, intents } = manager.done(before, intent);
      if (state === before) return [];
      forget(name, entity);
      set(one, intent.instance, state, NEVER);
      return ask(one, intents);
    },
    reopening: (manager, instance) => of(manager).reopening.get(instance),
    startReading(manager, instance) {
      of(manager).read(instance);
      return position;
    },
    reopen(manager, instance, history) {
      const one = of(manager);
      const kept = one.endReading(instance);
      if (kept === undefined) return [];
      const parts = partsOf(one);
      const group = new Set([one, ...parts]);
      for (const event of [...history, ...kept]) dispatch(event, group);
      const state = one.states.get(instance);
      if (state === undefined) return (set(one, instance, undefined, NEVER), []);
      const asked = [...ask(one, manager.resume(state, instance))];
      for (const { manager: partManager, states: partStates } of parts)
        for (const [part, partState] of partStates)
          if (partManager.partOf?.ownerOf(partState) === instance)
            asked.push(...ask(of(partManager), partManager.resume(partState, part)));
      return asked;
    },
    timesParked: (name, entity) => timesParked.get(parkedId(name, entity)) ?? 0,
    checkpoint() {
      let held = position;
      for (const one of oldest()) {
        // `undefined` is the log's beginning.
        if (one.before === undefined) return undefined;
        if (held === undefined || one.before < held) held = one.before;
      }
      return held;
    },
    get size() {
      return all.reduce((sum, { opened }) => sum + opened.size, 0);
    },
    get position() {
      return position;
    },
    get oldestAt() {
      return oldest()
        .map(({ at }) => at)
        .sort()[0];
    },
  };
}

const NOTHING: readonly never[] = [];
/** For what is open already, or closed. */
const NEVER: Opened = { before: undefined, at: '' };
