/** The shape of a process manager; docs/process-managers.md explains how they work. */
import type { DomainEvent } from '../../domain/decider.js';
import type { ParkedName, ParkedWork } from '../../domain/parked.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';
import type { Job, ParkAs } from './jobs.js';

/** An event of the feed, as the log holds it. */
export type Recorded<E extends DomainEvent = DomainEvent> = E & Omit<RecordedEvent, 'type' | 'data'>;

export interface Intent {
  readonly do: string;
  readonly instance: string;
}

export interface Reaction<S, I extends Intent> {
  /** `undefined`: nothing is left to do. */
  readonly state: S | undefined;
  readonly intents: readonly I[];
  /**
   * Only the instance's history tells its state: it is open again once that is read. The value is the step under which
   * it is parked where the history can't be read.
   */
  readonly reopen?: string;
}

export type ParkedEntity = Pick<ParkedWork, 'entity' | 'transaction_id' | 'step'>;

/** The states of open instances. */
export interface OpenStates {
  state<S>(manager: Stateful<S>, instance: string): S | undefined;
  /** Of the instance that has this key among its `keysOf`. */
  byKey<S>(manager: Stateful<S>, key: string): S | undefined;
}

export type Stateful<S> = Pick<ProcessManager<S, DomainEvent, Intent, never>, 'resume'>;

/** State `S` of an instance, events `E` that move it, intents `I`, and what its jobs work with, `D`. */
export interface ProcessManager<S, E extends DomainEvent, I extends Intent, D> {
  /** Names its parked work (`parked-{name}`) and its status. */
  readonly name: ParkedName;
  /** Under which its work is parked and counted. */
  readonly steps: readonly string[];
  /** One that is missing does not compile. */
  readonly events: Readonly<Record<E['type'], true>>;
  /** The instances that an event concerns, as things stood before it. */
  instancesOf(event: Recorded<E>, open: OpenStates): readonly string[];
  /** `cause`: the event without its data. `state` undefined: the instance is not open. */
  react(state: S | undefined, event: E, instance: string, cause: Cause): Reaction<S, I>;
  /** For a process that takes an open instance over. */
  resume(state: S, instance: string): readonly I[];
  /** The intent's job has ended well: the feed may not tell. */
  done?(state: S, intent: I): Reaction<S, I>;
  parkAs(intent: I): ParkAs;
  /** Consumed in slices, so there may be thousands. */
  jobs(intent: I, open: OpenStates, deps: D): Iterable<Job>;
  /** Whether parked work is done by now, well or not. @throws UnavailableError */
  isSettled(events: EventStore, work: ParkedEntity): Promise<boolean>;
  /**
   * Whether an open intent is settled already. Asked by the status, since from a checkpoint on the feed may lack what
   * settled it. @throws UnavailableError
   */
  settledBefore?(events: EventStore, intent: I): Promise<boolean>;
  /** Further keys for `OpenStates.byKey`. Must be the same array as long as they don't change. */
  keysOf?(state: S): readonly string[];
  /**
   * Its instances are parts of another manager's. They live while their owner is open, which also gets their events;
   * they neither count nor hold the checkpoint back.
   */
  readonly partOf?: { readonly manager: AnyManager; ownerOf(state: S): string };
  /**
   * The events of an instance and its parts, in any order, for reactions that say `reopen`. @throws UnavailableError
   */
  history?(events: EventStore, instance: string): Promise<RecordedEvent[]>;
  /** Whether nothing is left to do after this event, whatever the history tells. */
  ends?(event: Recorded<E>, instance: string): boolean;
}

export type AnyManager<D = never> = ProcessManager<unknown, DomainEvent, Intent, D>;
