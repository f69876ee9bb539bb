/**
 * The providers' settings (docs/deployment.md#engines-of-your-own). Faults name a variable and what it must be, never a
 * secret's value.
 */
import { createPrivateKey } from 'node:crypto';
import {
  type Kind,
  matching,
  oneOf,
  optional,
  type ReadText,
  readSettings,
  required,
  setting,
  type Values,
  webAddress,
} from '../lib/settings.js';
import type { FcmSettings } from './notifications/fcm.js';
import type { TwilioSettings } from './notifications/twilio.js';
import type { StripeSettings } from './payments/stripeClient.js';

export interface ProviderSettings extends Values<typeof CHOICES> {
  readonly stripe?: StripeSettings;
  /** Secret. Absent: no webhooks are accepted. */
  readonly stripeWebhookSecret?: string;
  readonly twilio?: TwilioSettings;
  readonly fcm?: FcmSettings;
  /** Warnings where a real provider's secret is set, and no setting says whether to use it. */
  readonly warnings?: readonly string[];
}

const STRIPE = 'PAYMENTS is stripe';
const REAL = 'NOTIFICATIONS is real';

/** A number in E.164, or an alphanumeric sender: up to 11 letters, digits and spaces, not digits only. */
const SENDER = /^(?:\+[1-9]\d{7,14}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/;

/** A web address of scheme, host and port only; faults never show the value. */
const origin: Kind<string> = (text, fault) => {
  const url = webAddress(text);
  if (url !== undefined && url.username === '' && url.pathname === '/') return url.origin;
  fault('must be an http or https address of scheme, host and port alone');
  return undefined;
};

/** A web address with its path; faults never show the value. */
const address: Kind<string> = (text, fault) => {
  if (webAddress(text)?.username === '') return text;
  fault('must be an http or https address without query');
  return undefined;
};

/** An RSA key. Line ends may be escaped, since most stores of variables need it on one line. */
const rsaKey: Kind<string> = (text, fault) => {
  const pem = text.replaceAll('\\n', '\n');
  if (!isRsaKey(pem)) fault('must be an RSA key in PEM (PKCS #8), with its line ends as they are or as \\n');
  return pem;
};

const PAYMENTS = ['stripe', 'simulated'] as const;
const NOTIFICATIONS = ['real', 'simulated'] as const;

const CHOICES = {
  payments: setting(
    'PAYMENTS',
    oneOf(PAYMENTS),
    'simulated',
    "`stripe`, or `simulated`: moves no money, follows Stripe's test cards. Must be set where `EVENTSTORE_URL` is; a start warns where it is not and a provider's secret is set",
  ),
  notifications: setting(
    'NOTIFICATIONS',
    oneOf(NOTIFICATIONS),
    'simulated',
    '`real` (SMS by Twilio, push by FCM), or `simulated`: a line in the log. Must be set where `EVENTSTORE_URL` is',
  ),
};

const STRIPE_WEBHOOKS = {
  stripeWebhookSecret: required(
    'STRIPE_WEBHOOK_SECRET',
    matching(/^whsec_\S+$/, 'the signing secret of a webhook endpoint of Stripe (whsec_…)'),
    STRIPE,
    'signing secret of the webhook endpoint at `{PUBLIC_URL}/webhooks/stripe` ([which events](payments.md))',
  ),
};

const STRIPE_API = {
  secretKey: required(
    'STRIPE_SECRET_KEY',
    matching(/^(?:sk|rk)_\w+$/, 'a secret or restricted key of Stripe (sk_… or rk_…)'),
    STRIPE,
    'secret or restricted key of Stripe',
  ),
  apiUrl: optional('STRIPE_API_URL', origin, 'scheme, host and port of its API', "Stripe's own"),
};

const TWILIO_ACCOUNT = {
  accountSid: required(
    'TWILIO_ACCOUNT_SID',
    matching(/^AC[0-9a-f]{32}$/i, 'the id of a Twilio account (AC and 32 hexadecimal digits)'),
    REAL,
    'id of the Twilio account',
  ),
  authToken: required(
    'TWILIO_AUTH_TOKEN',
    matching(/^\S{16,}$/, 'the auth token of the Twilio account'),
    REAL,
    'auth token of the Twilio account',
  ),
};

const TWILIO_SENDER = {
  from: optional(
    'TWILIO_FROM',
    matching(SENDER, 'a number such as +447700900000 or a name of up to 11 letters and digits'),
    "a number or a sender's name; this or `TWILIO_MESSAGING_SERVICE_SID` is required where `NOTIFICATIONS` is real",
  ),
  messagingServiceSid: optional(
    'TWILIO_MESSAGING_SERVICE_SID',
    matching(/^MG[0-9a-f]{32}$/i, 'MG and 32 hexadecimal digits'),
    'messaging service that chooses the sender',
  ),
  apiUrl: optional('TWILIO_API_URL', origin, 'scheme, host and port of its API', "Twilio's own"),
};

const FCM_ACCOUNT = {
  projectId: required(
    'FCM_PROJECT_ID',
    matching(/^[a-z0-9:.-]{3,64}$/, 'the id of a Firebase project'),
    REAL,
    'id of the Firebase project',
  ),
  clientEmail: required(
    'FCM_CLIENT_EMAIL',
    matching(/^\S+@\S+$/, 'the e-mail address of a service account'),
    REAL,
    'e-mail address of the service account',
  ),
  privateKey: required(
    'FCM_PRIVATE_KEY',
    rsaKey,
    REAL,
    'RSA key of the service account, in PEM; its line ends may be `\\n`',
  ),
};

const FCM_ACCOUNT_FILE = {
  account: optional<Readonly<Record<string, string | undefined>>>(
    'FCM_SERVICE_ACCOUNT',
    serviceAccount,
    'the JSON of a service account, as Google gives it, instead of the three variables below',
  ),
};

const FCM_API = {
  apiUrl: optional('FCM_API_URL', origin, 'scheme, host and port of its API', "Google's own"),
  tokenUrl: optional('FCM_TOKEN_URL', address, 'where access tokens are asked for', "Google's own"),
};

export const PROVIDER_SETTINGS = [
  CHOICES,
  STRIPE_API,
  STRIPE_WEBHOOKS,
  TWILIO_ACCOUNT,
  TWILIO_SENDER,
  FCM_ACCOUNT_FILE,
  FCM_ACCOUNT,
  FCM_API,
].flatMap((table) => Object.values(table));

/** Adds every fault to `faults`. */
export function providerSettings(text: ReadText, faults: string[]): ProviderSettings {
  const choices = readSettings(CHOICES, text, faults);
  if (text('EVENTSTORE_URL') !== undefined) {
    if (text('PAYMENTS') === undefined)
      faults.push(`PAYMENTS must be one of ${PAYMENTS.join(', ')} where EVENTSTORE_URL is set`);
    if (text('NOTIFICATIONS') === undefined)
      faults.push(`NOTIFICATIONS must be one of ${NOTIFICATIONS.join(', ')} where EVENTSTORE_URL is set`);
  }
  const stripe = choices.payments === 'stripe';
  return {
    ...choices,
    // With simulated payments too: webhooks are then taken as Stripe would send them.
    ...(stripe || text('STRIPE_WEBHOOK_SECRET') !== undefined ? readSettings(STRIPE_WEBHOOKS, text, faults) : {}),
    ...(stripe ? { stripe: readSettings(STRIPE_API, text, faults) } : {}),
    ...(choices.notifications === 'real'
      ? { twilio: twilioSettings(text, faults), fcm: fcmSettings(text, faults) }
      : {}),
    ...warningsOf(text),
  };
}

/**
 * Warns of real secrets without a choice of provider: an operator may believe that they are used. A drill sets
 * `simulated` alongside them, which gives no warning.
 */
function warningsOf(text: ReadText): Pick<ProviderSettings, 'warnings'> {
  const warnings = [
    { name: 'PAYMENTS', secrets: ['STRIPE_SECRET_KEY'], real: 'stripe', so: 'nobody is charged' },
    {
      name: 'NOTIFICATIONS',
      secrets: ['TWILIO_AUTH_TOKEN', 'FCM_SERVICE_ACCOUNT', 'FCM_PRIVATE_KEY'],
      real: 'real',
      so: 'nobody is told',
    },
  ].flatMap(({ name, secrets, real, so }) => {
    const set = text(name) === undefined ? secrets.filter((secret) => text(secret) !== undefined) : [];
    return set.length === 0
      ? []
      : [`${name} is not set though ${set.join(', ')} is, so ${so}: say ${name}=${real}, or ${name}=simulated`];
  });
  return warnings.length === 0 ? {} : { warnings };
}

function twilioSettings(text: ReadText, faults: string[]): TwilioSettings {
  const account = readSettings(TWILIO_ACCOUNT, text, faults);
  if ((text('TWILIO_FROM') === undefined) === (text('TWILIO_MESSAGING_SERVICE_SID') === undefined))
    faults.push(`TWILIO_FROM or TWILIO_MESSAGING_SERVICE_SID is required where ${REAL}, not both`);
  return { ...account, ...readSettings(TWILIO_SENDER, text, faults) };
}

function fcmSettings(text: ReadText, faults: string[]): FcmSettings {
  const { account } = readSettings(FCM_ACCOUNT_FILE, text, faults);
  return {
    ...readSettings(FCM_ACCOUNT, account === undefined ? text : (name) => account[name], faults),
    ...readSettings(FCM_API, text, faults),
  };
}

function serviceAccount(
  json: string,
  fault: (problem: string) => void,
): Readonly<Record<string, string | undefined>> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    parsed = undefined;
  }
  if (!(parsed instanceof Object)) {
    fault('must be the JSON of a service account');
    return undefined;
  }
  const field = (name: string): string | undefined => {
    const value = (parsed as Readonly<Record<string, unknown>>)[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    FCM_PROJECT_ID: field('project_id'),
    FCM_CLIENT_EMAIL: field('client_email'),
    FCM_PRIVATE_KEY: field('private_key'),
  };
}

function isRsaKey(pem: string): boolean {
  try {
    return pem.includes('-----BEGIN PRIVATE KEY-----') && createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}
