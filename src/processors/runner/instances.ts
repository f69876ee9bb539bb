import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';
import type { AnyManager } from './processManager.js';

/** `before`: the feed's position before the opening event; `at`: that event's time (ISO 8601). */
export interface Opened {
  readonly before: Position | undefined;
  readonly at: string;
}

/** An open instance whose state is unknown until its history is read. */
export interface Reopening {
  readonly cause: Cause;
  /** The step under which the instance is parked if reading fails. */
  readonly step: string;
  /** The instance's events since the reading started; `undefined` before that. */
  collected?: RecordedEvent[];
}

export interface Instances {
  readonly manager: AnyManager;
  readonly states: ReadonlyMap<string, unknown>;
  /** Marks of the open instances, in order of opening. */
  readonly opened: ReadonlyMap<string, Opened>;
  readonly reopening: ReadonlyMap<string, Reopening>;
  set(instance: string, state: unknown, opened: Opened): void;
  awaitHistory(instance: string, reopening: Reopening, opened: Opened): void;
  read(instance: string): void;
  /** @returns the events collected during the reading; `undefined`: the instance does not wait for its history */
  endReading(instance: string): readonly RecordedEvent[] | undefined;
  close(instance: string): void;
  byKey(key: string): unknown;
}

export function openInstances(manager: AnyManager): Instances {
  const states = new Map<string, unknown>();
  const opened = new Map<string, Opened>();
  const reopening = new Map<string, Reopening>();
  const instanceByKey = new Map<string, string>();

  const keysOf = (state: unknown): readonly string[] =>
    state === undefined ? NO_KEYS : (manager.keysOf?.(state) ?? NO_KEYS);

  /** Updates the index by key. Where two instances have the same key, the last one is found. */
  const index = (instance: string, before: unknown, after: unknown): void => {
    const [old, now] = [keysOf(before), keysOf(after)];
    if (old === now) return;
    for (const key of old) if (instanceByKey.get(key) === instance) instanceByKey.delete(key);
    for (const key of now) instanceByKey.set(key, instance);
  };

  const endReading = (instance: string): readonly RecordedEvent[] | undefined => {
    const waiting = reopening.get(instance);
    if (waiting === undefined) return undefined;
    reopening.delete(instance);
    return waiting.collected ?? [];
  };

  return {
    manager,
    states,
    opened,
    reopening,
    set(instance, state, mark) {
      index(instance, states.get(instance), state);
      states.set(instance, state);
      if (!opened.has(instance)) opened.set(instance, mark);
    },
    awaitHistory(instance, waiting, mark) {
      reopening.set(instance, waiting);
      opened.set(instance, mark);
    },
    read(instance) {
      const waiting = reopening.get(instance);
      if (waiting !== undefined) waiting.collected = [];
    },
    endReading,
    close(instance) {
      index(instance, states.get(instance), undefined);
      states.delete(instance);
      opened.delete(instance);
      endReading(instance);
    },
    byKey(key) {
      const instance = instanceByKey.get(key);
      return instance === undefined ? undefined : states.get(instance);
    },
  };
}

const NO_KEYS: readonly string[] = [];
