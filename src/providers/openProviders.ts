/** Loads only the chosen providers: their libraries are large. */
import type { Logger } from 'pino';
import type { KeyedHash } from '../domain/keyedHash.js';
import { systemMs } from '../lib/world.js';
import type { Records } from '../ports/readStore.js';
import type { ProviderSettings } from './settings.js';
import type { CircuitBreakerOptions, ProviderCallWatch } from './circuitBreaker.js';
import { TWILIO_CALLBACK_PATH } from './notifications/callbacks.js';
import type { NotificationProvider } from './notifications/provider.js';
import type { PaymentProvider } from './payments/provider.js';

interface ProviderDeps {
  readonly records: Records;
  readonly hash: KeyedHash;
  readonly logger: Logger;
  /** The service's URL as providers call it, without a trailing slash. */
  readonly publicUrl?: string | undefined;
  readonly watch?: ProviderCallWatch;
}

/** The real providers; an absent one is simulated. */
export interface Providers {
  readonly payments?: PaymentProvider;
  readonly notifications?: NotificationProvider;
}

/** @throws UnavailableError when the records can't be reached */
export async function openProviders({ stripe, twilio, fcm }: ProviderSettings, deps: ProviderDeps): Promise<Providers> {
  const circuitBreaker = breakerOptions(deps);
  return {
    ...(stripe === undefined
      ? {}
      : {
          payments: (await import('./payments/stripe.js')).stripePayments(stripe, {
            ...deps,
            circuitBreaker,
            now: systemMs,
          }),
        }),
    ...(twilio === undefined || fcm === undefined
      ? {}
      : { notifications: await openNotifications({ twilio, fcm }, deps) }),
  };
}

async function openNotifications(
  { twilio, fcm }: Required<Pick<ProviderSettings, 'twilio' | 'fcm'>>,
  deps: ProviderDeps,
): Promise<NotificationProvider> {
  const { records, hash, logger, publicUrl } = deps;
  const [{ twilioSms }, { fcmPush }, { openLedger }, { smsLimits }] = await Promise.all([
    import('./notifications/twilio.js'),
    import('./notifications/fcm.js'),
    import('./notifications/ledger.js'),
    import('./notifications/smsLimits.js'),
  ]);
  const now = systemMs;
  const common = { logger, now, circuitBreaker: breakerOptions(deps) };
  const ledger = await openLedger(records, now, logger);
  const limits = smsLimits(records, hash, now);
  return byChannel({
    sms: twilioSms(twilio, {
      ...common,
      ledger,
      limits,
      ...(publicUrl === undefined ? {} : { callbackUrl: publicUrl + TWILIO_CALLBACK_PATH }),
    }),
    push: fcmPush(fcm, { ...common, ledger }),
  });
}

const breakerOptions = ({ watch }: ProviderDeps): CircuitBreakerOptions => (watch === undefined ? {} : { watch });

export function byChannel(providers: {
  readonly sms: NotificationProvider;
  readonly push: NotificationProvider;
}): NotificationProvider {
  return {
    send: (request) => providers[request.channel].send(request),
    lookUp: (request) => providers[request.channel].lookUp(request),
  };
}
