import type { NotificationProvider } from './provider.js';

export function byChannel(providers: {
  readonly sms: NotificationProvider;
  readonly push: NotificationProvider;
}): NotificationProvider {
  return {
    send: (request) => providers[request.channel].send(request),
    lookUp: (request) => providers[request.channel].lookUp(request),
  };
}
