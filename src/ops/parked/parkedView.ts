import {
  type ParkedEvent,
  parkedId,
  type ParkedName,
  type ParkedState,
  PARKED_NAMES,
  parkedStream,
} from '../../domain/parked.js';
import type { Caller, EventStore, Position, Recorded, RecordedEvent } from '../../ports/eventStore.js';
import { foldDocument } from '../../runtime/readmodels/index.js';
import { type ParkedDocument, parkedProjection } from '../../projections/parked.js';
import type { FoundWork } from '../../commands/findParked.js';
import { type EventView, eventView, type Sight } from '../history/eventView.js';
import { streamBetween } from '../history/streamBetween.js';
import { isSettled } from '../../processors/managers.js';

export interface ParkedView {
  readonly id: string;
  readonly process: ParkedName;
  readonly step: string;
  /** The id of a transaction, gift, refund or dispute. */
  readonly entity: string;
  readonly transaction_id: string;
  readonly state: ParkedState;
  readonly cause: string;
  /** Number of times in a row that the work was parked. */
  readonly times: number;
  /** Time of the last parking. All times are ISO 8601, UTC, milliseconds. */
  readonly parked_at: string;
  readonly changed_at: string;
  readonly position: Position;
  /** Caller of the last retry or discard. */
  readonly by: Caller | null;
}

export interface ParkedEntry {
  readonly id: string;
  readonly document: ParkedDocument;
}

export function parkedView({ id, document }: ParkedEntry): ParkedView {
  return {
    id,
    process: document.name,
    step: document.step,
    entity: document.entity,
    transaction_id: document.transaction_id,
    state: document.state,
    cause: document.cause,
    times: document.times,
    parked_at: document.parked_at,
    changed_at: document.changed_at,
    position: document.changed,
    by: document.by,
  };
}

/** Parked work as its events describe it. @throws Error without events */
export function parkedEntry(id: string, events: readonly RecordedEvent[]): ParkedEntry {
  const document = foldDocument(parkedProjection, events, id);
  if (document === undefined) throw new Error('parked work has no event');
  return { id, document };
}

export interface ParkedWithEvents extends ParkedView {
  /** Reason of the last retry or discard; empty once it was erased. */
  readonly reason: string | null;
  readonly settled: boolean;
  readonly events: readonly EventView[];
}

export async function parkedWithEvents(events: EventStore, found: FoundWork, sight: Sight): Promise<ParkedWithEvents> {
  return {
    ...parkedView(parkedEntry(found.id, found.history)),
    reason: lastReason(found.history),
    settled: await isSettled(events, found),
    events: found.history.map((event) => eventView(event, sight)),
  };
}

/** Reason of the last retry or discard; null where there was none. @throws UnavailableError */
export function lastReason(history: readonly RecordedEvent[]): string | null {
  const decided = (history as readonly Recorded<ParkedEvent>[]).findLast(({ type }) => type !== 'WorkParked');
  return decided === undefined || decided.type === 'WorkParked' ? null : decided.data.reason;
}

/** All work ever parked by these process managers, ordered by its last event. @throws UnavailableError */
export async function parkedInLog(
  events: Pick<EventStore, 'read'>,
  names: readonly ParkedName[] = PARKED_NAMES,
): Promise<ParkedEntry[]> {
  const found = new Map<string, ParkedDocument>();
  for (const name of names) {
    for await (const page of streamBetween(events, parkedStream(name), '', undefined)) {
      for (const event of page) {
        const id = parkedId(name, (event.data as { readonly entity: string }).entity);
        found.set(id, parkedProjection.evolve(found.get(id), event, id, 0));
      }
    }
  }
  return [...found]
    .map(([id, document]) => ({ id, document }))
    .sort((one, other) => (one.document.changed < other.document.changed ? -1 : 1));
}
