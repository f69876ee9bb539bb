/**
 * The shape of a process manager. The runner follows the feed for all of them, keeps their open work, and runs their
 * jobs; docs/process-managers.md explains how.
 */
import type { DomainEvent } from '../../domain/decider.js';
import type { ParkedName, ParkedWork } from '../../domain/parked.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';
import type { Job, ParkAs } from './jobs.js';

/** An event of the feed, as the log holds it. */
export type Recorded<E extends DomainEvent = DomainEvent> = E & Omit<RecordedEvent, 'type' | 'data'>;

/** What is to be done next for an instance. */
export interface Intent {
  readonly do: string;
  readonly instance: string;
}

/** What an event makes of an instance. */
export interface Reaction<S, I extends Intent> {
  /** `undefined`: nothing is left to do. */
  readonly state: S | undefined;
  readonly intents: readonly I[];
  /**
   * The instance is open again, but only its history tells its state. The value is the step under which it is parked
   * where the history can't be read.
   */
  readonly reopen?: string;
}

/** Work that is parked. */
export type ParkedEntity = Pick<ParkedWork, 'entity' | 'transaction_id' | 'step'>;

/** The open work of all process managers, as their jobs read it. */
export interface OpenStates {
  /** The state of an open instance. */
  state<S>(manager: Stateful<S>, instance: string): S | undefined;
  /** The state of the open instance that has this key among its `keysOf`. */
  byKey<S>(manager: Stateful<S>, key: string): S | undefined;
}

/** A process manager, to ask for its instances. */
export type Stateful<S> = Pick<ProcessManager<S, DomainEvent, Intent, never>, 'resume'>;

/**
 * One process manager: state `S` of an instance, events `E` that move it, intents `I`, and what its jobs work with,
 * `D`. All but `history`, `isSettled`, `settledBefore` and the jobs themselves is pure.
 */
export interface ProcessManager<S, E extends DomainEvent, I extends Intent, D> {
  /** Names its parked work (`parked-{name}`) and its status. */
  readonly name: ParkedName;
  /** Under which its work is parked and counted; no other manager has the same. Resends share those of notifications. */
  readonly steps: readonly string[];
  /** The types of its events. One that is missing does not compile. */
  readonly events: Readonly<Record<E['type'], true>>;
  /** The instances that an event concerns, as things stood before it. */
  instancesOf(event: Recorded<E>, open: OpenStates): readonly string[];
  /** `cause`: the event without its data. `state` undefined: the instance is not open. */
  react(state: S | undefined, event: E, instance: string, cause: Cause): Reaction<S, I>;
  /** What is to be done for an open instance by a process that takes it over. */
  resume(state: S, instance: string): readonly I[];
  /** The intent's job has found in the streams that nothing is left to do: the feed may not tell. */
  done?(state: S, intent: I): Reaction<S, I>;
  parkAs(intent: I): ParkAs;
  /** The jobs of an intent; consumed in slices, so there may be thousands. */
  jobs(intent: I, open: OpenStates, deps: D): Iterable<Job>;
  /** Whether parked work has been done since, well or not, as its streams tell. @throws UnavailableError */
  isSettled(events: EventStore, work: ParkedEntity): Promise<boolean>;
  /**
   * Whether an open intent is settled already. Asked by the status, which folds the feed from a checkpoint on: it may
   * lack what settled the intent. @throws UnavailableError
   */
  settledBefore?(events: EventStore, intent: I): Promise<boolean>;
  /** Further keys of an instance, by which `OpenStates.byKey` finds it. The same array as long as they are the same. */
  keysOf?(state: S): readonly string[];
  /**
   * Its instances are parts of another manager's: they live only while their owner is open, which is told of their
   * events, and are neither counted nor hold the checkpoint back.
   */
  readonly partOf?: { readonly manager: AnyManager; ownerOf(state: S): string };
  /**
   * All events of an instance and its parts that the feed has told, in any order. Needed where a reaction says
   * `reopen`. @throws UnavailableError
   */
  history?(events: EventStore, instance: string): Promise<RecordedEvent[]>;
  /** Whether nothing is left to do after this event, whatever the history of an instance tells. */
  ends?(event: Recorded<E>, instance: string): boolean;
}

/** Any process manager whose jobs work with `D`. */
export type AnyManager<D = never> = ProcessManager<unknown, DomainEvent, Intent, D>;
