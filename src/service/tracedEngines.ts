/** Engines with spans for appends and bus messages. Both carry the trace's `traceparent`. */
import { kindOf } from '../domain/streamName.js';
import type { Engines } from '../ports/engines.js';
import type { Bus } from '../ports/bus.js';
import type { EventStore, NewEvent } from '../ports/eventStore.js';
import { currentTrace, inSpan, tracingOn } from '../tracing/spans.js';

/** The engines with spans if tracing is on at this moment, else the engines themselves. */
export function tracedEngines(engines: Engines): Engines {
  return tracingOn() ? { ...engines, events: tracedEventStore(engines.events), bus: tracedBus(engines.bus) } : engines;
}

/** An event store that writes the `traceparent` into the metadata of appended events. */
function tracedEventStore(events: EventStore): EventStore {
  return {
    ...events,
    append: async (stream, batch, expected) =>
      inSpan(
        () => ({
          name: `append ${kindOf(stream)}`,
          kind: 'client',
          attributes: {
            'gift.stream.kind': kindOf(stream),
            'gift.event.types': [...new Set(batch.map(({ type }) => type))].join(' '),
            'gift.event.count': batch.length,
          },
        }),
        async () => events.append(stream, marked(batch), expected),
      ),
  };
}

function marked(batch: readonly NewEvent[]): readonly NewEvent[] {
  const traceparent = currentTrace();
  return traceparent === undefined
    ? batch
    : batch.map((event) => ({ ...event, metadata: { ...event.metadata, traceparent } }));
}

/** The trace's field in a message's payload; ignored without tracing. */
interface Traced {
  readonly traceparent?: string;
}

function tracedBus(bus: Bus): Bus {
  return {
    ...bus,
    request: async <R>(subject: string, payload: object, options: { timeoutMs: number }) =>
      inSpan(
        () => ({ name: `${subject} ask`, kind: 'client', attributes: { 'messaging.destination.name': subject } }),
        async () => {
          const traceparent = currentTrace();
          return bus.request<R>(subject, traceparent === undefined ? payload : { ...payload, traceparent }, options);
        },
      ),
    serve: async <P>(subject: string, queue: string, handler: (payload: P) => Promise<object>) =>
      bus.serve<P & Traced>(subject, queue, async (message) => {
        const { traceparent, ...payload } = message;
        return inSpan(
          () => ({
            name: `${subject} answer`,
            kind: 'server',
            parent: typeof traceparent === 'string' ? traceparent : '',
            attributes: { 'messaging.destination.name': subject },
          }),
          async (span) => {
            const reply = await handler(payload as P);
            if ('outcome' in reply && typeof reply.outcome === 'string') span.set({ 'gift.outcome': reply.outcome });
            return reply;
          },
        );
      }),
  };
}
