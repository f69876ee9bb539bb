/** The real notification providers as one: SMS by the one, push by the other. */
import type { NotificationProvider } from './provider.js';

/** Sends by channel. */
export function byChannel(providers: {
  readonly sms: NotificationProvider;
  readonly push: NotificationProvider;
}): NotificationProvider {
  return {
    send: (request) => providers[request.channel].send(request),
    lookUp: (request) => providers[request.channel].lookUp(request),
  };
}
