/** A client that has its events sent to it, and in the end holds them against the event feed (docs/api/webhooks.md). */
import { randomUUID, sleep } from '../../../src/lib/world.js';
import type { Finding } from '../model/finding.js';
import { type Answer, field, listField, textField } from '../model/history.js';
import { type Member, SKEW_MS } from '../service/member.js';
import type { Receivers } from '../service/receivers.js';
import { perform } from '../world/simulatedWorld.js';
import type { Simulation } from '../world/simulation.js';
import { CLIENT, openClient } from './client.js';

export interface Subscriber {
  /** Creates the endpoint, however often it must be tried. */
  subscribe(): Promise<void>;
  /** Waits until all events of the feed have come, and reports those that have not, or in another order. */
  findings(): Promise<readonly Finding[]>;
  /** Reads the feed from its beginning, and asks for what it lacks: the service was restored from a backup. */
  forgetSince(): void;
}

const URL = 'https://receiver.example/hook';
const PATH = '/api/v2/webhook-endpoints';
const RETRY_MS = 1_000;
const MAY_SETTLE: ReadonlySet<number> = new Set([401, 409, 429]);
/** Virtual ms in which everything must have come, once nothing fails any more. */
const WITHIN_MS = 1_800_000;
const PING_EVERY_MS = 60_000;
const MOST_SHOWN = 5;

interface FeedEvent {
  readonly id: string;
  readonly type: string;
  readonly position: string;
  readonly subject: string;
}

export function openSubscriber(simulation: Simulation, members: readonly Member[], receivers: Receivers): Subscriber {
  const client = openClient(simulation, { name: 'subscriber', members });
  // The clocks of processes may be behind.
  const began = new Date(simulation.now() - 2 * SKEW_MS).toISOString();
  let endpoint = '';
  let since: string | undefined;
  let restored = false;

  /** Asks until there is an answer. @throws Error for a refusal, which no repeat changes */
  async function ask(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(method === 'GET' ? {} : { 'idempotency-key': randomUUID() }),
    };
    for (;;) {
      const answer = await client.exchange(CLIENT, { method, path, headers, body });
      if (answer !== undefined && answer.status < 300) return answer;
      if (answer !== undefined && answer.status < 500 && !MAY_SETTLE.has(answer.status))
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await sleep(RETRY_MS);
    }
  }

  /** The events of the feed since the subscription. */
  async function feed(): Promise<FeedEvent[]> {
    const events: FeedEvent[] = [];
    for (let after = since; ;) {
      const from = after === undefined ? '' : `&after=${encodeURIComponent(after)}`;
      const { body } = await ask('GET', `/api/v2/events?limit=500${from}`);
      for (const one of listField(body, 'data'))
        events.push({
          id: textField(one, 'id') ?? '',
          type: textField(one, 'type') ?? '',
          position: textField(one, 'position') ?? '',
          subject: textField(one, 'data', 'gift_id') ?? textField(one, 'data', 'transaction_id') ?? '',
        });
      after = textField(body, 'next') ?? after;
      if (field(body, 'has_more') !== true) return events;
    }
  }

  function missing(events: readonly FeedEvent[]): FeedEvent[] {
    const come = new Set(receivers.received.map(({ id }) => id));
    return events.filter(({ id }) => !come.has(id));
  }

  /** Events of one gift or purchase whose first deliveries came in another order. */
  function disordered(events: readonly FeedEvent[]): string[] {
    const byId = new Map(events.map((event) => [event.id, event]));
    const latest = new Map<string, FeedEvent>();
    const found: string[] = [];
    for (const id of new Set(receivers.received.map((one) => one.id))) {
      const event = byId.get(id);
      if (event === undefined) continue;
      const before = latest.get(event.subject);
      if (before !== undefined && before.position > event.position)
        found.push(
          `${event.subject}: ${event.type} at ${event.position} came after ${before.type} at ${before.position}`,
        );
      else latest.set(event.subject, event);
    }
    return found;
  }

  return {
    async subscribe() {
      await perform(simulation, client.process, 'subscribe', async () => {
        const { body } = await ask('POST', PATH, { url: URL });
        endpoint = textField(body, 'data', 'id') ?? '';
        since = textField((await ask('GET', '/api/v2/events?after=end')).body, 'next');
      });
    },
    forgetSince() {
      since = undefined;
      restored = true;
    },
    async findings() {
      return perform(
        simulation,
        client.process,
        'hold deliveries against the feed',
        async () => {
          const until = simulation.ms() + WITHIN_MS;
          let events = await feed();
          if (restored) await ask('POST', `${PATH}/${endpoint}/recover`, { since: began });
          while (missing(events).length > 0 && simulation.ms() < until) {
            // Once an endpoint that failed answers, all that waits is due.
            await ask('POST', `${PATH}/${endpoint}/ping`);
            await sleep(PING_EVERY_MS);
            events = await feed();
          }
          // What is recovered may come after what has happened since.
          const [lost, moved] = [missing(events), restored ? [] : disordered(events)];
          const shown = lost
            .slice(0, MOST_SHOWN)
            .map(({ type, position, subject }) => `${type} of ${subject} at ${position}`);
          return [
            ...(lost.length === 0
              ? []
              : [
                  {
                    rule: 'webhooks',
                    text: `${lost.length} of ${events.length} events never came:\n${shown.join('\n')}`,
                  },
                ]),
            ...(moved.length === 0 ? [] : [{ rule: 'webhooks', text: moved.slice(0, MOST_SHOWN).join('\n') }]),
          ];
        },
        2 * WITHIN_MS,
      );
    },
  };
}
