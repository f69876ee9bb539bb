/** One attempt to deliver one event to an endpoint. */
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { Waiting } from './backlog.js';
import { isSubscribed, type Message, type MessageDeps, messageOf } from './message.js';
import type { Outcome, Sender } from './sender.js';
import { signedHeaders } from './signature.js';

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
  // The system's clock, which a sandbox does not move: receivers refuse timestamps five minutes off their own clock.
  const timestamp = Math.floor(Date.now() / 1_000);
  const started = performance.now();
  const { url } = endpoint;
  const headers = signedHeaders(secrets, { ...message, timestamp });
  const outcome = await sender.send({ url, headers, body: message.body }, cut);
  // After a cut it is unknown whether the message arrived.
  if (cut.aborted && 'error' in outcome) return 'stopped';
  return { message, url, at, outcome, durationMs: Math.round(performance.now() - started) };
}
