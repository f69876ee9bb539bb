/** One attempt to deliver one event to an endpoint. */
import { systemMs, ticks } from '../lib/world.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Waiting } from './backlog.js';
import { isSubscribed, type Message, type MessageDeps, messageOf } from './message.js';
import type { Outcome, Sender } from './sender.js';
import { createHmac } from 'node:crypto';

export interface AttemptDeps extends MessageDeps {
  readonly sender: Pick<Sender, 'send'>;
  /** The present time: ISO 8601, UTC, with milliseconds. */
  readonly now: () => string;
  /** The endpoint's signing secrets (`whsec_…`), the newest first. @throws UnavailableError */
  readonly signingSecrets: (endpoint: EndpointDocument, at: string) => Promise<readonly string[]>;
  /** Whether the owner may be sent anything; checked before each attempt. @throws UnavailableError */
  readonly isOwnerActive: (owner: string) => Promise<boolean>;
}

export interface Attempted {
  readonly message: Message;
  /** URL that the message was sent to. */
  readonly url: string;
  readonly at: string;
  readonly outcome: Outcome;
  readonly durationMs: number;
}

/**
 * @param mayStart called just before the request
 * @returns `lost`: the feed no longer has the event; `unwanted`: the endpoint is not subscribed to the event's type;
 * `inactive`: the owner may be sent nothing; `stopped`: no request was made, or `cut` ended it
 * @throws UnavailableError where the message or a secret can't be read for now
 */
export async function attemptOnce(
  { sender, now, signingSecrets, isOwnerActive, ...deps }: AttemptDeps,
  endpoint: EndpointDocument,
  item: Waiting,
  { mayStart, cut }: { readonly mayStart: () => boolean; readonly cut: AbortSignal },
): Promise<Attempted | 'lost' | 'unwanted' | 'inactive' | 'stopped'> {
  const at = now();
  // The three reads run concurrently, since each waits for a turn of the event loop.
  const [active, message, secrets] = await Promise.all([
    isOwnerActive(endpoint.owner),
    messageOf(deps, item),
    signingSecrets(endpoint, at),
  ]);
  if (!active) return 'inactive';
  if (message === undefined) return 'lost';
  if (item.ping === undefined && !isSubscribed(endpoint, message)) return 'unwanted';
  if (!mayStart()) return 'stopped';
  const { url } = endpoint;
  const sent = await sendSigned(sender, url, secrets, message, cut);
  return sent === 'stopped' ? sent : { message, url, at, ...sent };
}

/**
 * Sends a message, signed now.
 * @returns `stopped`: `cut` ended the request, and it is unknown whether the message arrived
 */
export async function sendSigned(
  sender: Pick<Sender, 'send'>,
  url: string,
  secrets: readonly string[],
  { id, body }: Omit<Message, 'type'>,
  cut: AbortSignal,
): Promise<Pick<Attempted, 'outcome' | 'durationMs'> | 'stopped'> {
  // The system's clock, which a sandbox does not move: receivers refuse timestamps five minutes off their own clock.
  const timestamp = Math.floor(systemMs() / 1_000);
  const started = ticks();
  const outcome = await sender.send({ url, headers: signedHeaders(secrets, { id, timestamp, body }), body }, cut);
  if (cut.aborted && 'error' in outcome) return 'stopped';
  return { outcome, durationMs: Math.round(ticks() - started) };
}

const PREFIX = 'whsec_';

interface Signed {
  /** Id of the message, the same for every attempt, so that a receiver can recognise a repetition. */
  readonly id: string;
  /** Time of the attempt: seconds since the epoch. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * Headers of Standard Webhooks, version 1 (https://github.com/standard-webhooks/standard-webhooks).
 * @param secrets `whsec_` and base64; several during a rotation, since a receiver may hold any of them
 */
export function signedHeaders(secrets: readonly string[], { id, timestamp, body }: Signed): Record<string, string> {
  const signed = `${id}.${timestamp}.${body}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${hmacOf(secret, signed)}`).join(' '),
  };
}

function hmacOf(secret: string, signed: string): string {
  if (!secret.startsWith(PREFIX)) throw new Error('a signing secret without its prefix');
  return createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
    .update(signed)
    .digest('base64');
}
