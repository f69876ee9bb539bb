/** The shape of a process manager, which docs/process-managers.md explains. */
import type { DomainEvent } from '../../domain/decider.js';
import type { ParkedName, ParkedWork } from '../../domain/parked.js';
import type { EventStore, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';
import type { Job, ParkAs } from './jobs.js';

export interface Intent {
  readonly do: string;
  readonly instance: string;
}

export interface Reaction<S, I extends Intent> {
  /** The instance's new state; `undefined`: nothing is left to do. */
  readonly state: S | undefined;
  readonly intents: readonly I[];
  /**
   * Set where the state must be rebuilt from the instance's history. The value is the step under which the instance is
   * parked if the history can't be read.
   */
  readonly reopen?: string;
}

type ParkedEntity = Pick<ParkedWork, 'entity' | 'transaction_id' | 'step'>;

export interface OpenStates {
  state<S>(manager: Stateful<S>, instance: string): S | undefined;
  /** The instance that has this key among its `keysOf`. */
  byKey<S>(manager: Stateful<S>, key: string): S | undefined;
}

export type Stateful<S> = Pick<ProcessManager<S, DomainEvent, Intent, never>, 'resume'>;

/** `S`: state of an instance; `E`: events; `I`: intents; `D`: dependencies of its jobs. */
export interface ProcessManager<S, E extends DomainEvent, I extends Intent, D> {
  readonly name: ParkedName;
  readonly steps: readonly string[];
  /** Types of the events that the manager follows; a missing type does not compile. */
  readonly events: Readonly<Record<E['type'], true>>;
  instancesOf(event: Recorded<E>): readonly string[];
  /** Folds an event. `state` undefined: the instance is not open. */
  react(state: S | undefined, event: E, instance: string, cause: Cause): Reaction<S, I>;
  /** The intents of an open instance, for a process that takes it over. */
  resume(state: S, instance: string): readonly I[];
  /** Called when the intent's job has ended well, since no event may follow. */
  done?(state: S, intent: I): Reaction<S, I>;
  parkAs(intent: I): ParkAs;
  /** The jobs of an intent, perhaps thousands: they are taken on in time slices. */
  jobs(intent: I, open: OpenStates, deps: D): Iterable<Job>;
  /** Whether parked work has ended since, with success or not. @throws UnavailableError */
  isSettled(events: EventStore, work: ParkedEntity): Promise<boolean>;
  /**
   * Whether the intent is settled, for the status: after a checkpoint the feed may lack the event that settled it.
   * @throws UnavailableError
   */
  settledBefore?(events: EventStore, intent: I): Promise<boolean>;
  /** Further keys of an instance, for `OpenStates.byKey`: the same array as long as they don't change. */
  keysOf?(state: S): readonly string[];
  /** For `reopen`: the events of an instance, in any order. @throws UnavailableError */
  history?(events: EventStore, instance: string): Promise<RecordedEvent[]>;
  /** Whether nothing is left to do after this event, whatever the history holds. */
  ends?(event: Recorded<E>, instance: string): boolean;
}

export type AnyManager<D = never> = ProcessManager<unknown, DomainEvent, Intent, D>;
