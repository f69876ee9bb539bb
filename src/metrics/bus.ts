import { ticks } from '../lib/world.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError, type Unsubscribe } from '../ports/bus.js';
import { UnavailableError } from '../ports/unavailable.js';
import { counts } from './counts.js';
import type { Exposition } from './exposition.js';
import { histograms } from './histogram.js';

export function measuredBus(bus: Bus, show: Exposition): Bus {
  const outcomes = counts(2);
  const durations = histograms();
  show.counter(
    {
      name: 'gift_bus_requests_total',
      help: 'Requests on the bus by subject and outcome: ok, no_responders, deadline, remote, unavailable, other',
      labels: ['subject', 'outcome'],
    },
    outcomes.samples,
  );
  show.histogram(
    {
      name: 'gift_bus_request_duration_seconds',
      help: 'Time from a request on the bus to its answer',
      labels: ['subject'],
    },
    durations.samples,
  );
  const answers = counts(2);
  show.counter(
    {
      name: 'gift_worker_answers_total',
      help: 'Answers of workers on the bus, by subject and outcome; retry_later, impossible: nothing was done; error: unknown',
      labels: ['subject', 'outcome'],
    },
    answers.samples,
  );
  return {
    ...bus,
    async request<R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R> {
      const began = ticks();
      try {
        const reply = await bus.request<R>(subject, payload, options);
        durations.of(subject).observe((ticks() - began) / 1000);
        outcomes.add(subject, 'ok');
        return reply;
      } catch (error) {
        outcomes.add(subject, outcomeOf(error));
        throw error;
      }
    },
    async serve<P>(subject: string, queue: string, handler: (payload: P) => Promise<object>): Promise<Unsubscribe> {
      return bus.serve<P>(subject, queue, async (payload) => {
        try {
          const reply = await handler(payload);
          answers.add(subject, 'outcome' in reply && typeof reply.outcome === 'string' ? reply.outcome : 'ok');
          return reply;
        } catch (error) {
          answers.add(subject, 'error');
          throw error;
        }
      });
    },
  };
}

function outcomeOf(error: unknown): string {
  if (error instanceof NoRespondersError) return 'no_responders';
  if (error instanceof DeadlineError) return 'deadline';
  if (error instanceof RemoteError) return 'remote';
  return error instanceof UnavailableError ? 'unavailable' : 'other';
}
