/** One document for each entity with parked work. Reasons stay in the log, encrypted. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import {
  evolveParked,
  parkedId,
  type ParkedEvent,
  type ParkedName,
  parkedNameOf,
  type ParkedWork,
} from '../domain/parked.js';
import type { Caller, Position, Recorded, RecordedEvent } from '../ports/eventStore.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';

/** `{parkedId}`. */
export interface ParkedDocument extends ParkedWork {
  readonly name: ParkedName;
  /** Time of the last parking: ISO 8601, UTC, milliseconds. */
  readonly parked_at: string;
  /** Time of the last event; lists are in this order. */
  readonly changed_at: string;
  readonly changed: Position;
  /** The last person to retry or discard the work. */
  readonly by: Caller | null;
  /** Revisions of its events in `parked-{name}`, in order. */
  readonly revisions: readonly number[];
}

export const parkedProjection: Projection<ParkedDocument> = {
  name: 'parked',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [
    { fields: ['changed'] },
    { fields: ['state', 'changed'] },
    { fields: ['name', 'changed'] },
    { fields: ['name', 'state', 'changed'] },
  ],
  types: typesOf<ParkedEvent['type']>({ WorkParked: true, WorkRetried: true, WorkDiscarded: true }),
  documentIds(event) {
    return [parkedId(nameOf(event), (event.data as ParkedEvent['data']).entity)];
  },
  evolve(document, event) {
    const parked = event as Recorded<ParkedEvent>;
    const work = evolveParked(document, parked);
    const { entity, transaction_id, step, cause, times, state } = work;
    return {
      name: nameOf(event),
      entity,
      transaction_id,
      step,
      cause,
      times,
      state,
      parked_at: parked.type === 'WorkParked' ? event.at : (document?.parked_at ?? event.at),
      changed_at: event.at,
      changed: event.position,
      by: parked.type === 'WorkParked' ? (document?.by ?? null) : event.metadata.by,
      revisions: [...(document?.revisions ?? []), event.revision],
    };
  },
};

function nameOf({ type, stream }: RecordedEvent): ParkedName {
  const name = parkedNameOf(stream);
  if (name === undefined) throw new Error(`${type} stands in ${stream}, where no work is parked`);
  return name;
}
