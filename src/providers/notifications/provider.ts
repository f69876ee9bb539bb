/** What tells receivers: Twilio and FCM, or the simulated one. */
import type { SendLookup, SendLookupReply, SendReply, SendRequest } from '../../messages/notifications.js';

/** Tells receivers. */
export interface NotificationProvider {
  /**
   * Sends, or answers what was answered for this telling before. @throws Error when the provider is in trouble: ask
   * again.
   */
  send(request: SendRequest): Promise<SendReply>;
  /** What became of a telling. */
  lookUp(request: SendLookup): Promise<SendLookupReply>;
}
