/** Stand-ins for all real providers, the settings that name them, and workers that talk to them over HTTP. */
import pino from 'pino';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import type { Records } from '../../../src/ports/readStore.js';
import { fcmPush } from '../../../src/providers/notifications/fcm.js';
import { openLedger } from '../../../src/providers/notifications/ledger.js';
import { byChannel } from '../../../src/providers/openProviders.js';
import { type SmsLimitOptions, smsLimits } from '../../../src/providers/notifications/smsLimits.js';
import { twilioSms } from '../../../src/providers/notifications/twilio.js';
import { stripePayments } from '../../../src/providers/payments/stripe.js';
import type { WorkerDeps } from '../../../src/providers/workers.js';
import { type FcmServer, openFcmServer } from './fcmServer.js';
import type { Requested, Fault } from './standIn.js';
import { openStripeServer, type StripeServer } from './stripeServer.js';
import { openTwilioServer, type TwilioServer } from './twilioServer.js';

/** The stand-ins. */
export interface RealProviders {
  readonly stripe: StripeServer;
  readonly twilio: TwilioServer;
  readonly fcm: FcmServer;
  /** Those of a service that works with all three. */
  readonly settings: Readonly<Record<string, string>>;
  /** What one worker process has, with little retryPolicy. */
  workers(
    records: Records,
    limits?: SmsLimitOptions,
  ): Promise<Required<Pick<WorkerDeps, 'payments' | 'notifications'>>>;
  /** How all three treat requests from now on. */
  fault(choose: (requested: Requested) => Fault | undefined): void;
  close(): Promise<void>;
}

const TIMEOUT_MS = 200;
const SETTLE_MS = 350;
/** Far more than one test has: limits have tests of their own. */
const UNLIMITED = 1_000_000;

const SENDER = '+447700900000';

/** The settings of a service that charges by this stand-in. */
export function paymentSettings(stripe: StripeServer): Record<string, string> {
  return {
    PAYMENTS: 'stripe',
    STRIPE_SECRET_KEY: stripe.secretKey,
    STRIPE_WEBHOOK_SECRET: 'whsec_of_the_tests',
    STRIPE_API_URL: stripe.url,
  };
}

/** The settings of a service that tells receivers by these stand-ins. */
export function notificationSettings(twilio: TwilioServer, fcm: FcmServer): Record<string, string> {
  return {
    NOTIFICATIONS: 'real',
    TWILIO_ACCOUNT_SID: twilio.accountSid,
    TWILIO_AUTH_TOKEN: twilio.authToken,
    TWILIO_FROM: SENDER,
    TWILIO_API_URL: twilio.url,
    FCM_PROJECT_ID: fcm.projectId,
    FCM_CLIENT_EMAIL: fcm.clientEmail,
    FCM_PRIVATE_KEY: fcm.privateKey,
    FCM_API_URL: fcm.url,
    FCM_TOKEN_URL: fcm.tokenUrl,
  };
}

/** Opens them. */
export async function openRealProviders(): Promise<RealProviders> {
  const [stripe, twilio, fcm] = await Promise.all([openStripeServer(), openTwilioServer(), openFcmServer()]);
  const logger = pino({ level: 'silent' });
  return {
    stripe,
    twilio,
    fcm,
    settings: { ...paymentSettings(stripe), ...notificationSettings(twilio, fcm) },
    async workers(records, limits = { perNumber: UNLIMITED, perBuyer: UNLIMITED }) {
      const now = Date.now;
      const common = { logger, now, timeoutMs: TIMEOUT_MS, circuitBreaker: { failures: 20, openMs: 20 } };
      const ledger = await openLedger(records, now, logger);
      const hash = keyedHash(Buffer.alloc(32, 1));
      return {
        payments: stripePayments({ secretKey: stripe.secretKey, apiUrl: stripe.url }, common),
        notifications: byChannel({
          sms: twilioSms(
            { accountSid: twilio.accountSid, authToken: twilio.authToken, from: SENDER, apiUrl: twilio.url },
            { ...common, ledger, limits: smsLimits(records, hash, now, limits), settleMs: SETTLE_MS },
          ),
          push: fcmPush(
            {
              projectId: fcm.projectId,
              clientEmail: fcm.clientEmail,
              privateKey: fcm.privateKey,
              tokenUrl: fcm.tokenUrl,
              apiUrl: fcm.url,
            },
            { ...common, ledger, settleMs: SETTLE_MS },
          ),
        }),
      };
    },
    fault(choose) {
      for (const server of [stripe, twilio, fcm]) server.fault = choose;
    },
    async close() {
      await Promise.all([stripe, twilio, fcm].map((server) => server.close()));
    },
  };
}

/** Opens them, and closes them whatever becomes of their use. */
export async function withRealProviders(use: (providers: RealProviders) => Promise<void>): Promise<void> {
  const providers = await openRealProviders();
  try {
    await use(providers);
  } finally {
    await providers.close();
  }
}

/** Faults by chance: about four requests in ten. `chance`: numbers from 0 to 1. */
export function faultsByChance(chance: () => number): (requested: Requested) => Fault | undefined {
  const faults: readonly (readonly [share: number, fault: Fault])[] = [
    [0.04, { kind: 'silence', when: 'done' }],
    [0.04, { kind: 'silence', when: 'undone' }],
    [0.06, { kind: 'lost', when: 'done' }],
    [0.06, { kind: 'lost', when: 'undone' }],
    [0.06, { kind: 'error', when: 'done' }],
    [0.06, { kind: 'error', when: 'undone' }],
    [0.04, { kind: 'limited', retryAfter: '0' }],
    [0.04, { kind: 'twice' }],
    [0.05, { kind: 'slow', ms: 50 }],
  ];
  return () => {
    let drawn = chance();
    for (const [share, fault] of faults) {
      if (drawn < share) return fault;
      drawn -= share;
    }
    return undefined;
  };
}
