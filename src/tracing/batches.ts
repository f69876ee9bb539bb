/** Batches of the log as traces see them. */
import type { RecordedEvent } from '../ports/eventStore.js';
import { inSpan, type SpanDescription, tracingOn } from './spans.js';

/** Events of a batch whose traces are looked at: catching up, when batches are large, belongs to nobody's trace. */
const LOOKED_AT = 64;

/** Runs what a projection batch does; a batch of one trace is part of it, one of several has links to each. */
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
    events.length > LOOKED_AT ? [] : [...new Set(events.flatMap(({ metadata }) => metadata.traceparent ?? []))];
  const [first = ''] = spans;
  // Of `00-{trace}-{span}-{flags}`, what comes before the span.
  const oneTrace = spans.every((span) => span.slice(0, 35) === first.slice(0, 35));
  return {
    name: 'projection batch',
    kind: 'consumer',
    parent: oneTrace ? first : '',
    links: oneTrace ? spans.slice(1) : spans,
    attributes: { 'gift.projections': names.join(' '), 'gift.event.count': events.length },
  };
}
