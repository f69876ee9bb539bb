import type { PaymentNews } from '../../domain/paymentNews.js';

/** A webhook message about a transaction. Where it names none, the provider knows the payment's. */
export interface WebhookNews {
  /** The same for each repeat of the message. */
  readonly id: string;
  readonly transactionId: string | undefined;
  readonly paymentId: string;
  readonly news: PaymentNews;
}

export interface OtherMessage {
  readonly id: string;
}

/** A signed message that is not as documented. Names the field, never its value. */
export class MalformedEventError extends Error {
  override readonly name = 'MalformedEventError';
}

/** @throws SignatureError, MalformedEventError */
export type EventReader = (bytes: Buffer, signature: string) => WebhookNews | OtherMessage;
