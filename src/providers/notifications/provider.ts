import type { SendLookup, SendLookupReply, SendReply, SendRequest } from '../../messages/notifications.js';

export interface NotificationProvider {
  /** @throws Error to be retried */
  send(request: SendRequest): Promise<SendReply>;
  lookUp(request: SendLookup): Promise<SendLookupReply>;
}
