/** Standard Webhooks, version 1 (https://github.com/standard-webhooks/standard-webhooks). */
import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';

export interface Signed {
  /** Id of the message, the same for every attempt, so that a receiver can recognise a repetition. */
  readonly id: string;
  /** Time of the attempt: seconds since the epoch. */
  readonly timestamp: number;
  readonly body: string;
}

/** @param secrets `whsec_` and base64; several during a rotation, since a receiver may hold any of them */
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
