import type { Logger } from 'pino';
import type { PaymentQuestions } from '../../commands/paymentAction.js';
import { systemMs } from '../../lib/world.js';
import type { Engines } from '../../ports/engines.js';
import { twilioCallbacks } from '../../providers/notifications/callbacks.js';
import { openLedger } from '../../providers/notifications/ledger.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import type { Route } from '../pipeline/route.js';
import type { ApiSettings } from '../settings.js';
import { webhookRoutes } from './stripe.js';
import { twilioWebhookRoutes } from './twilio.js';

interface WebhookRouterDeps {
  readonly config: Pick<ApiSettings, 'stripeWebhookSecret' | 'payments' | 'twilio' | 'publicUrl'>;
  readonly engines: Pick<Engines, 'events' | 'store'>;
  readonly questions: PaymentQuestions;
  readonly logger: Logger;
  now(this: void): string;
}

/** @throws UnavailableError */
export async function webhookRouter(routerOf: RouterMaker, deps: WebhookRouterDeps): Promise<SubjectRouter> {
  return routerOf('/webhooks', [...(await stripeRoutes(deps)), ...(await twilioRoutes(deps))]);
}

/** Stripe's library is large, so it is loaded only where the secret is set. */
async function stripeRoutes({ config, engines, questions, logger, now }: WebhookRouterDeps): Promise<Route[]> {
  const secret = config.stripeWebhookSecret;
  if (secret === undefined) return [];
  const { stripeEvents } = await import('../../providers/payments/stripeEvents.js');
  return webhookRoutes({
    events: engines.events,
    questions,
    now,
    logger,
    read: stripeEvents(secret, config.payments),
    simulated: config.payments === 'simulated',
  });
}

/** Routes for Twilio's callbacks, only where Twilio sends the messages and can reach this service. */
async function twilioRoutes({ config, engines, logger, now }: WebhookRouterDeps): Promise<Route[]> {
  const { twilio, publicUrl } = config;
  if (twilio === undefined || publicUrl === undefined) return [];
  const read = await twilioCallbacks(twilio, publicUrl);
  const ledger = await openLedger(engines.store.records, systemMs, logger);
  return twilioWebhookRoutes({ events: engines.events, now, logger, read, ledger });
}
