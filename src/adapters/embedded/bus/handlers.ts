import { bodyOf, failureText, payloadOf } from '../../busPayload.js';
import type { Header } from './frames.js';

type Send = (header: Header, body?: string) => void;
/** Compared by identity, as listeners are: each service needs its own function. */
type Handler = (payload: unknown) => Promise<object>;
type Listener = (payload: unknown) => void;

interface Handlers {
  /** @returns a function that ends the service, and returns whether it was withdrawn from the broker */
  serve(subject: string, queue: string, handler: Handler): () => boolean;
  /** @returns a function that ends the subscription, and returns whether it was withdrawn from the broker */
  subscribe(subject: string, listener: Listener): () => boolean;
  announce(): void;
  /** Withdraws everything. Resolves when running handlers have ended. */
  close(): Promise<unknown>;
  requested(header: Extract<Header, { t: 'ask' }>, body: string): void;
  heard(subject: string, body: string): void;
}

export function openHandlers(send: Send, onError: (error: unknown) => void): Handlers {
  const services = new Map<string, Map<string, Handler[]>>();
  const listeners = new Map<string, Set<Listener>>();
  const running = new Set<Promise<void>>();

  function received(body: string, subject: string): unknown {
    try {
      return payloadOf(body, subject);
    } catch (error) {
      onError(error);
      throw error;
    }
  }

  async function answer(id: number, subject: string, handler: Handler, body: string): Promise<void> {
    try {
      send({ t: 'rep', i: id }, bodyOf(await handler(received(body, subject))));
    } catch (error) {
      send({ t: 'err', i: id, m: failureText(error) });
    }
  }

  function announceAll(service: 'serve' | 'unserve', subscription: 'sub' | 'unsub'): void {
    for (const [subject, queues] of services)
      for (const queue of queues.keys()) send({ t: service, s: subject, q: queue });
    for (const subject of listeners.keys()) send({ t: subscription, s: subject });
  }

  return {
    serve(subject, queue, handler) {
      const queues = services.get(subject) ?? new Map<string, Handler[]>();
      const handlers = queues.get(queue) ?? [];
      services.set(subject, queues.set(queue, handlers));
      if (handlers.push(handler) === 1) send({ t: 'serve', s: subject, q: queue });
      return () => {
        const at = handlers.indexOf(handler);
        if (at < 0) return false;
        handlers.splice(at, 1);
        if (handlers.length > 0) return false;
        queues.delete(queue);
        send({ t: 'unserve', s: subject, q: queue });
        return true;
      };
    },
    subscribe(subject, listener) {
      const present = listeners.get(subject) ?? new Set();
      listeners.set(subject, present.add(listener));
      if (present.size === 1) send({ t: 'sub', s: subject });
      return () => {
        if (!present.delete(listener) || present.size > 0) return false;
        listeners.delete(subject);
        send({ t: 'unsub', s: subject });
        return true;
      };
    },
    announce: () => announceAll('serve', 'sub'),
    async close() {
      announceAll('unserve', 'unsub');
      services.clear();
      listeners.clear();
      return Promise.all(running);
    },
    requested({ i: id, s: subject, q: queue }, body) {
      const handlers = services.get(subject)?.get(queue);
      const handler = handlers?.shift();
      if (handlers === undefined || handler === undefined) return send({ t: 'none', i: id });
      handlers.push(handler);
      const run: Promise<void> = answer(id, subject, handler, body).finally(() => running.delete(run));
      running.add(run);
      return undefined;
    },
    heard(subject, body) {
      for (const listener of listeners.get(subject) ?? []) {
        try {
          listener(payloadOf(body, subject));
        } catch (error) {
          onError(error);
        }
      }
    },
  };
}
