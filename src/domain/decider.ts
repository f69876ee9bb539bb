/**
 * An aggregate's state is a fold of its events. Decisions are pure functions of that state; one that would change
 * nothing returns no events, so commands can be repeated.
 */

export interface DomainEvent<T extends string = string, D extends object = object> {
  readonly type: T;
  readonly data: D;
}

/** `at` is ISO 8601, UTC, with milliseconds. */
export type Happened<E extends DomainEvent> = E & { readonly at: string };

export interface Aggregate<S, E extends DomainEvent> {
  readonly initial: S;
  /** Unknown event types leave the state as it is. */
  evolve(state: S, event: Happened<E>): S;
}

/** Aggregate without a state, for decisions that rest on the history itself. */
export const HISTORY_ONLY: Aggregate<undefined, DomainEvent> = { initial: undefined, evolve: () => undefined };

export function fold<S, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  events: Iterable<Happened<DomainEvent>>,
  state: S = aggregate.initial,
): S {
  let after = state;
  for (const event of events) after = aggregate.evolve(after, event as Happened<E>);
  return after;
}
