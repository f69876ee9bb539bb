/** A request's trace: what it led to, as a tree from the request to its notifications. */
import { useEffect, useState } from 'preact/hooks';
import type { EventView } from '../../src/ops/history/eventView.js';
import { Event } from '../parts/event.js';
import { Page, Problem } from '../parts/page.js';
import { messageOf } from '../service/attempt.js';
import { readToEnd } from '../service/pages.js';

interface Scan {
  readonly events: readonly EventView[];
  /** The position of the log that was searched up to; empty: its beginning. */
  readonly at: string;
  readonly state: 'searching' | 'stopped' | 'done';
  readonly error?: string;
}

const BEGINNING: Scan = { events: [], at: '', state: 'searching' };

/** @param id the request's id, which all events of its trace have as their correlation id */
export function Trace({ id }: { readonly id: string }) {
  const [{ events, at, state, error }, set] = useState(BEGINNING);
  useEffect(() => {
    if (state !== 'searching') return undefined;
    const gone = new AbortController();
    readToEnd<EventView>(
      { correlation_id: id, after: at },
      (rows, position) =>
        set((before) => ({ ...before, events: [...before.events, ...rows], at: position ?? before.at })),
      gone.signal,
    ).then(
      () => set((before) => ({ ...before, state: 'done' })),
      (failure: unknown) => {
        const message = messageOf(failure);
        if (!gone.signal.aborted) set((before) => ({ ...before, state: 'stopped', error: message }));
      },
    );
    return () => gone.abort();
  }, [id, state]);
  const goOn = (): void => set({ events, at, state: 'searching' });
  const ids = new Set(events.map((event) => event.id));
  const roots = events.filter(({ causation_id }) => causation_id === null || !ids.has(causation_id));
  return (
    <Page title="Trace" lead={`What the request ${id} has led to.`}>
      {error === undefined ? null : <Problem>{error}</Problem>}
      {state === 'done' ? null : (
        <p role="status">
          {state === 'searching' ? 'Searching the log' : 'The log was searched'}
          {at === '' ? '' : ` up to position ${at}`}
          {state === 'searching' ? '… ' : '. What is later is not shown. '}
          {state === 'searching' ? (
            <button type="button" class="outline small" onClick={() => set({ events, at, state: 'stopped' })}>
              Stop
            </button>
          ) : (
            <button type="button" class="outline small" onClick={goOn}>
              Go on
            </button>
          )}
        </p>
      )}
      {state === 'done' && events.length === 0 ? <p>No event has this request’s id.</p> : null}
      <Branch events={roots} all={events} />
    </Page>
  );
}

interface BranchProps {
  readonly events: readonly EventView[];
  readonly all: readonly EventView[];
}

function Branch({ events, all }: BranchProps) {
  if (events.length === 0) return null;
  return (
    <ul class="events">
      {events.map((event) => (
        <li key={event.id}>
          <Event event={event} />
          <Branch events={all.filter(({ causation_id }) => causation_id === event.id)} all={all} />
        </li>
      ))}
    </ul>
  );
}
