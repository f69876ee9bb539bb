/** Who sends notifications: Twilio and FCM, or the simulated provider. */
import type { SendLookup, SendLookupReply, SendReply, SendRequest } from '../../messages/notifications.js';

export interface NotificationProvider {
  /** Sends, or repeats the answer for this attempt. @throws Error: ask again */
  send(request: SendRequest): Promise<SendReply>;
  /** The outcome of an attempt. */
  lookUp(request: SendLookup): Promise<SendLookupReply>;
}
