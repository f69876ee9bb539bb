import type { ProviderEvent } from '../../domain/purchase/providerEvent.js';

/** A provider event about a transaction. Where it names none, the provider can tell the payment's. */
export interface ProviderMessage {
  /** Id of the message, the same for each repeat of it. */
  readonly id: string;
  readonly transactionId: string | undefined;
  readonly paymentId: string;
  readonly providerEvent: ProviderEvent;
}

export interface OtherMessage {
  readonly id: string;
}

/** A signed message that is not as documented. The error names the field, never its value. */
export class MalformedEventError extends Error {
  override readonly name = 'MalformedEventError';
}

/** @throws SignatureError, MalformedEventError */
export type EventReader = (bytes: Buffer, signature: string) => ProviderMessage | OtherMessage;
