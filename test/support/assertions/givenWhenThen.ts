/** Reads as a specification: given these events, when this is decided, then these events or this refusal. */
import assert from 'node:assert/strict';
import { type Aggregate, type DomainEvent, type Happened, fold } from '../../../src/domain/decider.js';
import type { RefusalCode } from '../../../src/domain/errors.js';
import { Refusal } from '../../../src/domain/refusal.js';

/** When the given events happened, unless they say otherwise. */
export const GIVEN_AT = '2026-03-01T09:00:00.000Z';

/** A domain event as it stands in a log. */
export function happened<E extends DomainEvent>(event: E, at = GIVEN_AT): Happened<E> {
  return { ...event, at };
}

/** What a scenario expects. */
export interface Then<E> {
  /** Exactly these events. */
  then(...events: readonly E[]): void;
  /** This refusal. */
  refused(code: RefusalCode): void;
}

/** A scenario of an aggregate. */
export function given<S, E extends DomainEvent>(
  aggregate: Aggregate<S, E>,
  ...events: readonly (E | Happened<E>)[]
): { when(decide: (state: S) => readonly E[]): Then<E>; readonly state: S } {
  const state = fold(
    aggregate,
    events.map((event) => ('at' in event ? event : happened(event))),
  );
  return {
    state,
    when(decide) {
      return {
        then: (...expected) => assert.deepEqual(decide(state), expected),
        refused: (code) =>
          assert.throws(
            () => decide(state),
            (error: unknown) => error instanceof Refusal && error.code === code,
          ),
      };
    },
  };
}
