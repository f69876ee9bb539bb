/** What a payment provider tells by itself, as whoever takes its calls is told of it. */
import type { PaymentNews } from '../../domain/paymentNews.js';

/**
 * What a webhook is about: the transaction where it says so, else the payment, whose transaction the provider knows.
 */
export interface ToldNews {
  /** The provider's id of the message: the same however often it is sent. */
  readonly id: string;
  readonly transactionId: string | undefined;
  readonly paymentId: string;
  readonly news: PaymentNews;
}

/** A message that is none of those handled. */
export interface OtherMessage {
  readonly id: string;
}

/** The provider signed it, and it does not say what it should. Names the field, never its value. */
export class MalformedEventError extends Error {
  override readonly name = 'MalformedEventError';
}

/** Reads one message. @throws SignatureError, MalformedEventError */
export type EventReader = (bytes: Buffer, signature: string) => ToldNews | OtherMessage;
