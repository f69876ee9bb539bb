/** A payment provider's webhook messages, in this service's words. */
import type { PaymentNews } from '../../domain/paymentNews.js';

/** News of a transaction; where the message does not name it, the provider knows the payment's. */
export interface WebhookNews {
  /** The provider's id of the message: the same for each repeat. */
  readonly id: string;
  readonly transactionId: string | undefined;
  readonly paymentId: string;
  readonly news: PaymentNews;
}

/** A message of another kind. */
export interface OtherMessage {
  readonly id: string;
}

/** A signed message that is not as documented. Names the field, never its value. */
export class MalformedEventError extends Error {
  override readonly name = 'MalformedEventError';
}

/** Reads one message. @throws SignatureError, MalformedEventError */
export type EventReader = (bytes: Buffer, signature: string) => WebhookNews | OtherMessage;
