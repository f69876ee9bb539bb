import type { RecordedEvent } from '../ports/eventStore.js';
import { inSpan, type SpanDescription, tracingOn } from './spans.js';

/** Events of a batch whose traces are examined at most: larger batches, read while catching up, belong to no trace. */
const MOST_SCANNED = 64;

/** Runs work in a span that is part of the events' trace, or linked to each of several traces. */
export async function inBatchSpan(
  names: readonly string[],
  events: readonly RecordedEvent[],
  work: () => Promise<void>,
): Promise<void> {
  if (!tracingOn() || events.length === 0) return work();
  return inSpan(() => batchSpan(names, events), work);
}

function batchSpan(names: readonly string[], events: readonly RecordedEvent[]): SpanDescription {
  const spans =
    events.length > MOST_SCANNED ? [] : [...new Set(events.flatMap(({ metadata }) => metadata.traceparent ?? []))];
  const [first = ''] = spans;
  // The part of `00-{trace}-{span}-{flags}` before the span.
  const oneTrace = spans.every((span) => span.slice(0, 35) === first.slice(0, 35));
  return {
    name: 'projection batch',
    kind: 'consumer',
    parent: oneTrace ? first : '',
    links: oneTrace ? spans.slice(1) : spans,
    attributes: { 'gift.projections': names.join(' '), 'gift.event.count': events.length },
  };
}
