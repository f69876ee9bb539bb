/** The shape of an aggregate: its state is a fold of its events; decisions are pure functions of that state. */

/** An event as an aggregate knows it. */
export interface DomainEvent<T extends string = string, D extends object = object> {
  readonly type: T;
  readonly data: D;
}

/** A recorded event, with its time: ISO 8601, UTC, milliseconds. */
export type Happened<E extends DomainEvent> = E & { readonly at: string };

export interface Aggregate<S, E extends DomainEvent> {
  /** The state before the first event. */
  readonly initial: S;
  /** The state after one more event. Unknown event types leave it as it is. */
  evolve(state: S, event: Happened<E>): S;
}

/** Folds a stream, or what has come since `state`. The events are taken for the aggregate's. */
export function fold<S, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  events: Iterable<Happened<DomainEvent>>,
  state: S = aggregate.initial,
): S {
  let after = state;
  for (const event of events) after = aggregate.evolve(after, event as Happened<E>);
  return after;
}
